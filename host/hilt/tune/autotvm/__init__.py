"""The parts of AutoTVM (Learning to Optimize Tensor Programs, 2018) that no other tuner uses.

The shared parts lie one folder up: annealing, boosted trees, plans, labels.
"""
