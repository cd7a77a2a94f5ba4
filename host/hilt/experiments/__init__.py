"""The papers' experiments, and ours, on recorded landscapes: the same space, measurements and seeds for every tuner."""
