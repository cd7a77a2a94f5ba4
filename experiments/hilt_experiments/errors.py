"""The errors that keep an experiment from being held."""

from __future__ import annotations


class ExperimentError(ValueError):
    """An experiment that is not known, or that cannot be held with these settings; the message names the remedy."""
