"""HW-aware initialisation of AutoTVM (Rieber et al. 2022): the compiler says beforehand where a space is valid, and a
balanced, spread-out first epoch is made of that."""
