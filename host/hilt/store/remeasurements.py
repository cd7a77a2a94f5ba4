"""Trials that were measured again: a reference, for the board's drift, and the best trials, to confirm the winner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

DRIFT_TOLERANCE = 0.02
"""A reference whose latency is so much off its first one is said to have drifted."""


class Purpose(StrEnum):
    DRIFT = "drift"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True)
class Remeasurement:
    """Trial `number` of a run, measured again in round `round` (from 0)."""

    purpose: Purpose
    round: int
    ordinal: int
    microseconds: float
    board: str


def confirmed_latencies(rows: Iterable[Remeasurement]) -> dict[int, float]:
    """Return the median microseconds of the confirmation by trial number."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if row.purpose is Purpose.CONFIRMATION:
            found.setdefault(row.ordinal, []).append(row.microseconds)
    return {ordinal: median(values) for ordinal, values in found.items()}


def largest_drift(rows: Iterable[Remeasurement]) -> float:
    """Return the largest relative move of the reference from its first latency on the same board, as in 0.02.

    It is 0.0 if the reference was not run again.
    """
    first: dict[tuple[int, str], float] = {}
    largest = 0.0
    for row in sorted((row for row in rows if row.purpose is Purpose.DRIFT), key=lambda row: row.round):
        start = first.setdefault((row.ordinal, row.board), row.microseconds)
        largest = max(largest, abs(row.microseconds / start - 1.0))
    return largest
