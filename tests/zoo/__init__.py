"""Public networks, quantised and compiled: `make zoo` writes docs/zoo.md."""
