"""Trials that were measured again: a reference, for the board's drift, and the best trials, to confirm the winner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist, fmean, median

from hilt.trial import Trial

ROUNDS = 5
"""Rounds of a confirmation, unless the noise chooses them."""
FEWEST_ROUNDS, MOST_ROUNDS = 3, 32
"""Bounds of a confirmation whose rounds the noise chooses."""
SURE_ENOUGH = 0.99
"""Certainty of the winner at which no more rounds are made then."""
NEAR = 0.01
"""A latency within this share of the best is as good."""
DRIFT_TOLERANCE = 0.02
"""A reference whose latency is so much off its first one is said to have drifted."""
_MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of many normal values."""


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


def certainty(confirmed: Mapping[int, Confirmed]) -> float:
    """Return the probability that the least median is truly within NEAR of each other one, by their noise.

    The errors of the medians count as normal and independent, with one relative deviation for all trials. The product
    over the others is a lower bound, as all are compared with one winner. At least one trial must be `confirmed`.
    """
    winner, *others = sorted(confirmed.values(), key=lambda each: each.microseconds)
    noise = _MEDIAN_ERROR * _relative_deviation(confirmed.values())
    sure = 1.0
    for other in others:
        error = noise * math.hypot(
            (1 + NEAR) * other.microseconds / math.sqrt(len(other.latencies)),
            winner.microseconds / math.sqrt(len(winner.latencies)),
        )
        if error:
            sure *= NormalDist(0.0, error).cdf((1 + NEAR) * other.microseconds - winner.microseconds)
    return sure


def _relative_deviation(confirmed: Iterable[Confirmed]) -> float:
    """Return the standard deviation of one latency as a share of its trial's mean, over all trials together."""
    squares, freedom = 0.0, 0
    for each in confirmed:
        middle = fmean(each.latencies)
        squares += sum((latency / middle - 1) ** 2 for latency in each.latencies)
        freedom += len(each.latencies) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


def with_noise(confidence: float | None, confirmed: Mapping[int, Confirmed]) -> float | None:
    """Return the probability that the named best is within NEAR of all; None where the tuner states none.

    It is the tuner's confidence, which takes latencies as measured, times the winner's certainty.
    """
    return confidence if confidence is None or not confirmed else confidence * certainty(confirmed)


def is_decided(rows: Iterable[Remeasurement], made: int, rounds: int | None) -> bool:
    """Return whether a confirmation needs no round after the first `made`.

    With `rounds` None the noise decides: from FEWEST_ROUNDS on, once the winner is certain to SURE_ENOUGH, at most
    MOST_ROUNDS. Rows of later rounds do not count, so a resumed run decides alike.
    """
    if rounds is not None:
        return made >= rounds
    if not FEWEST_ROUNDS <= made < MOST_ROUNDS:
        return made >= MOST_ROUNDS
    confirmed = confirmations(row for row in rows if row.round < made)
    return not confirmed or certainty(confirmed) >= SURE_ENOUGH


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
