"""The parts that only a virtual board's agent has: its device, made of a model, and its injected faults."""
