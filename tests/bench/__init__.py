"""The benchmarks behind the README's figures, one file for each topic.

They assert only that the timed results are right.
"""
