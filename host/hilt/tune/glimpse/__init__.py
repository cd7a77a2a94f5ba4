"""Glimpse (Ahn et al., DAC 2022): search guided by a Blueprint of the hardware: a prior over each knob, a meta-learned
acquisition function and an ensemble that refuses what is likely invalid. Trained offline (training/), run in numpy."""
