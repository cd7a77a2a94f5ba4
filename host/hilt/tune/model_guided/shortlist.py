"""The candidates that are predicted exactly: lowering costs milliseconds, so only possible best ones are lowered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from hilt.tune.model_guided.candidates import Candidates
from hilt.tune.model_guided.gaussian_process import GaussianProcess, Inputs, Kernel
from hilt.tune.model_guided.lowered import LoweredPrograms
from hilt.tune.model_guided.machines import Machine

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_BY_ESTIMATE = 24
_SPREAD = 32
_BY_SURROGATE = 32
_ROUNDS = 2
_MORE_ROUNDS = 8
"""Rounds if the risk of an overlooked best candidate is above _SMALL_RISK."""
_SMALL_RISK = 0.004
_SUPPORT = 240
"""Number of rows that the surrogate is fitted to, the fastest."""
_ERROR = Kernel(amplitude=0.08, length=0.7, noise=0.003)
"""Error of the analytic model against the exact one (as logarithms), besides an offset."""
_OFFSET = 0.3
_JUDGED = 24
"""Number of exact predictions from which the surrogate's deviations are scaled by its errors on them."""
_CAUTION = 1.5
"""Factor on the scale: other rows are less like the exact ones than these are like each other."""
_LEAST_DEVIATION = 0.1
"""Least scale of the surrogate's deviations."""
_HOPELESS = 0.5
"""Largest distance (as a logarithm) from the analytic model's best at which a row is considered."""
NEAR = 0.01
"""Largest distance from the best (as a logarithm) that counts as equally good."""
_UNKNOWN = 30.0
"""Logarithm of the cycles of a program that would never end."""


@dataclass(frozen=True, eq=False)
class RowPrediction:
    """Predictions of all candidates around one machine: arrays (n,), `slope` (n, d)."""

    base: Floats
    own: Floats
    """Deviation of each prediction from the machine's exact answer: 0 for a lowered program."""
    slope: Floats


class Shortlist:
    """The rows that one machine model predicted exactly, and a surrogate of it for the others."""

    def __init__(self, candidates: Candidates, lowered: LoweredPrograms, machine: Machine) -> None:
        self._candidates = candidates
        self._lowered = lowered
        self._machine = machine
        self._same = np.full(len(candidates), -1, dtype=np.int64)
        """The predicted row with the same program (n,); -1 if not known, -2 if it cannot run."""
        self._first_with: dict[bytes, int] = {}
        self.rows: Rows = np.zeros(0, dtype=np.int64)
        """Rows with distinct programs, in the order of their addition."""

    def copy(self) -> Shortlist:
        """Return a copy that continues from here; this one stays unchanged."""
        other = Shortlist(self._candidates, self._lowered, self._machine)
        other._same, other._first_with, other.rows = self._same.copy(), dict(self._first_with), self.rows
        return other

    def open(self, coordinates: Floats, rounds: int = _MORE_ROUNDS) -> None:
        """Add the first rows for machines (m, d): the analytic model's best of each, and some of all kinds."""
        for point in coordinates:
            order = np.argsort(self._machine.estimate(point), kind="stable")
            order = order[self._candidates.short[order]]
            self._add(order[:_BY_ESTIMATE])
        better_half = order[: max(len(order) // 2, 1)]
        self._add(better_half[np.linspace(0, len(better_half) - 1, _SPREAD).astype(np.int64)])
        for point in coordinates:
            self.extend(point, rounds)

    def extend(self, coordinates: Floats, rounds: int = _MORE_ROUNDS) -> None:
        """Add rows that are as good as the best at `coordinates` (d,) by the surrogate.

        The search ends if no such row remains or after `rounds`.
        """
        estimate = self._machine.estimate(coordinates)
        cycles = self._exact(self.rows, coordinates)
        for turn in range(rounds):
            unseen = np.flatnonzero(
                self._candidates.short & (self._same == -1) & (estimate < estimate[self.rows].min() + _HOPELESS)
            )
            if not len(unseen) or not np.isfinite(cycles).any():
                return
            mean, deviation = self._surrogate(estimate, cycles, unseen)
            threshold = cycles.min() - NEAR
            below = ndtr((threshold - mean) / np.maximum(deviation, 1e-9))
            in_vain = len(cycles) - 1 - int(np.flatnonzero(cycles <= cycles.min() + NEAR)[0])
            risk = min(float(below.sum()), 1 / (in_vain + 2))
            hopeful = mean - deviation < threshold + 2 * NEAR
            if risk < _SMALL_RISK and (turn >= _ROUNDS or not hopeful.any()):
                return
            order = np.argsort(mean - deviation, kind="stable")[:_BY_SURROGATE]
            added = self._add(unseen[order])
            cycles = np.concatenate((cycles, self._exact(added, coordinates)))

    def include(self, rows: Rows) -> Rows:
        """Add these rows as well, and return those that can be predicted exactly."""
        self._add(rows[self._candidates.short[rows]])
        return rows[self._same[rows] >= 0]

    def sharpen(self, prediction: RowPrediction, rows: Rows, coordinates: Floats) -> None:
        """Put exact predictions of these rows into `prediction`, which is for `coordinates` (d,).

        The derivatives and the surrogate of the other rows stay.
        """
        estimated = rows[prediction.own[rows] > 0]
        known = self.include(estimated)
        if len(known):
            prediction.base[known] = np.minimum(self.exact(known, coordinates[None])[:, 0], _UNKNOWN)
        prediction.base[estimated[self._same[estimated] == -2]] = _UNKNOWN
        prediction.own[estimated[self._same[estimated] != -1]] = 0

    def exact(self, rows: Rows, coordinates: Floats) -> Floats:
        """Return logarithms (rows, m) at coordinates (m, d), of rows that `include` returned."""
        return self._machine.log_cycles(self._same[rows].tolist(), coordinates)

    def derivatives(self, rows: Rows, coordinates: Floats) -> tuple[Floats, Floats]:
        """Return logarithms (rows,) and derivatives (rows, d) at coordinates (d,), of rows that `include` returned."""
        return self._machine.derivatives(self._same[rows].tolist(), coordinates)

    def predict(self, coordinates: Floats) -> RowPrediction:
        """Return predictions of all candidates with their derivatives at coordinates (d,)."""
        machine = self._machine
        base, slope = machine.estimate(coordinates), machine.rough_derivatives(coordinates)
        own = np.zeros(len(base))
        exact = self._exact(self.rows, coordinates)
        unseen = np.flatnonzero(self._same < 0)
        if len(unseen) and np.isfinite(exact).any():
            mean, own[unseen] = self._surrogate(base, exact, unseen)
            base[unseen] = mean
        base[self.rows] = np.minimum(exact, _UNKNOWN)
        base[self._same == -2] = _UNKNOWN
        finite = np.isfinite(exact)
        if finite.any():
            order = np.argsort(exact, kind="stable")[: machine.affordable(float(np.exp(exact[finite].min())))]
            near = self.rows[order[np.isfinite(exact[order])]]
            slope[near] = machine.derivatives(near.tolist(), coordinates)[1]
        seen = np.flatnonzero(self._same >= 0)
        base[seen], slope[seen] = base[self._same[seen]], slope[self._same[seen]]
        return RowPrediction(base, own, slope)

    def _exact(self, rows: Rows, coordinates: Floats) -> Floats:
        return self._machine.log_cycles(rows.tolist(), coordinates[None])[:, 0] if len(rows) else np.zeros(0)

    def _surrogate(self, estimate: Floats, cycles: Floats, rows: Rows) -> tuple[Floats, Floats]:
        support = np.argsort(cycles, kind="stable")[:_SUPPORT]
        support = support[np.isfinite(cycles[support])]
        known = self.rows[support]
        errors = cycles[support] - estimate[known]
        offset = float(np.median(errors))
        fitted = GaussianProcess(_ERROR, self._inputs(known), errors - offset)
        mean, deviation = fitted.predict(self._inputs(rows))
        if len(known) >= _JUDGED:
            deviation = deviation * max(_CAUTION * fitted.misjudgement(), _LEAST_DEVIATION)
        return estimate[rows] + offset + mean, deviation

    def _inputs(self, rows: Rows) -> Inputs:
        return Inputs(self._candidates.smooth[rows], np.full((len(rows), 1), _OFFSET))

    def _add(self, rows: Rows) -> Rows:
        new = [row for row in dict.fromkeys(rows.tolist()) if self._same[row] == -1]
        added = []
        for row, digest in zip(new, self._lowered.digests(new), strict=True):
            if digest is None:
                self._same[row] = -2
                continue
            first = self._first_with.setdefault(digest, row)
            self._same[row] = first
            if first == row:
                added.append(row)
        distinct = np.array(added, dtype=np.int64)
        self.rows = np.concatenate((self.rows, distinct))
        return distinct
