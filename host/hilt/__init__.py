"""hilt: the hardware-in-the-loop tuner (host side)."""
