"""One measured figure, beside what was aimed at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """`goal` is in the unit of `value`; None where nothing was promised. Larger is better."""

    name: str
    value: float
    unit: str
    goal: float | None = None
