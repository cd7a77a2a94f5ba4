"""Plots, reports and traces of finished and running work."""
