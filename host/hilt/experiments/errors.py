"""What keeps an experiment from being held."""

from __future__ import annotations


class ExperimentError(ValueError):
    """An experiment that is not known, or that cannot be held with what was asked for; the line says what to do."""
