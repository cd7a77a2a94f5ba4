"""The papers' experiments, and ours, on recorded datasets: the same space, measurements and seeds for every tuner."""
