"""AutoTVM (Learning to Optimize Tensor Programs, 2018): what belongs to it alone. What other tuners share lies one
folder up: annealing, boosted trees, plans, labels."""
