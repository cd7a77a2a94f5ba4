"""Glimpse (Ahn et al., DAC 2022): search guided by a Blueprint of the hardware.

The Blueprint feeds a prior over each knob, a meta-learned acquisition function and an ensemble that refuses
configurations that are likely invalid. All are trained offline (training/) and run in numpy.
"""
