"""The figures of the README: `python -m tests.bench` (or `make bench`) measures and prints them."""
