"""ML2Tuner (Cha et al. 2024): three models, P of performance, V of validity, and A of performance once the compiler has
said what it derives. Validity is what the board says."""
