"""Design exploration: VTA parameters for a network, by latency and area."""
