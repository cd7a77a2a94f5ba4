"""HW-aware initialisation of AutoTVM (Rieber et al. 2022).

The compiler's verdicts show the valid part of a space in advance. A balanced, spread-out first epoch is chosen from
them.
"""
