"""The verdict on a series of samples: is it flat?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Growth:
    """The growth of one quantity, from its second tenth (start-up is over) to its last."""

    name: str
    unit: str
    early: float
    late: float
    allowed: float

    @property
    def grown(self) -> float:
        return self.late - self.early

    @property
    def flat(self) -> bool:
        return self.grown <= self.allowed


def growth(name: str, unit: str, values: Sequence[float], allowed: float) -> Growth:
    """Compare medians of two tenths of at least twenty samples.

    Raises:
        ValueError: There are fewer samples.
    """
    if len(values) < 20:
        raise ValueError(f"{name} has {len(values)} samples; a verdict needs at least 20")
    tenth = len(values) // 10
    early, late = statistics.median(values[tenth : 2 * tenth]), statistics.median(values[-tenth:])
    return Growth(name, unit, early, late, allowed)
