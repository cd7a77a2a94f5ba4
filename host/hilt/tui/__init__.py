"""The terminal user interface: a client of the engine's process."""
