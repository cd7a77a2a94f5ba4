"""ML2Tuner (Cha et al. 2024): three models of configurations.

P predicts performance, V validity, and A performance from the features that compilation derives. A configuration is
valid if the board accepts it.
"""
