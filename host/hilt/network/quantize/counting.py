"""Progress of quantising, phase by phase."""

from __future__ import annotations

from collections.abc import Callable

Counting = Callable[[str, str], Callable[[int, int], None]]
"""Called with a phase and its units; returns a function of the work done and of all, whose first call begins it."""


def uncounted(phase: str, units: str) -> Callable[[int, int], None]:
    """Count nothing."""
    return lambda done, count: None
