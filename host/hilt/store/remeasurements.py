"""Trials that were measured again: a reference, for the board's drift, and the best trials, to confirm the winner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from hilt.trial import Trial

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


@dataclass(frozen=True)
class Confirmed:
    """The latencies of a trial that was measured again at the end of a run, in microseconds."""

    latencies: tuple[float, ...]

    @property
    def microseconds(self) -> float:
        """The median."""
        return median(self.latencies)

    @property
    def spread(self) -> float:
        """Half of the range over the median, as in 0.02."""
        return (max(self.latencies) - min(self.latencies)) / 2 / self.microseconds

    def replacing(self, trial: Trial) -> Trial:
        """Return the trial with these latencies in place of the first, luckiest ones."""
        return replace(trial, microseconds=self.microseconds, repeats=self.latencies)


def confirmations(rows: Iterable[Remeasurement]) -> dict[int, Confirmed]:
    """Return the confirmation by trial number."""
    found: dict[int, list[float]] = {}
    for row in rows:
        if row.purpose is Purpose.CONFIRMATION:
            found.setdefault(row.ordinal, []).append(row.microseconds)
    return {ordinal: Confirmed(tuple(values)) for ordinal, values in found.items()}


def with_confirmations(trials: Iterable[Trial], rows: Iterable[Remeasurement]) -> list[Trial]:
    """Return trials with confirmed latencies where there are any.

    A latency below that of the confirmed best that was not measured again is luck: such a trial is left out.
    """
    confirmed = confirmations(rows)
    best = min((each.microseconds for each in confirmed.values()), default=0.0)
    found = []
    for trial in trials:
        if trial.ordinal in confirmed:
            found.append(confirmed[trial.ordinal].replacing(trial))
        elif trial.microseconds is None or trial.microseconds >= best:
            found.append(trial)
    return found


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
