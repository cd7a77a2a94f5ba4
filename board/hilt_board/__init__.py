"""The board agent: Python 3.8 syntax, needs only numpy and pynq. Imports nothing of hilt."""
