"""Which candidates are predicted: lowering costs milliseconds, so only what may be among the best is lowered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from hilt.tune.model_guided.candidates import Candidates
from hilt.tune.model_guided.gaussian_process import GaussianProcess, Inputs, Kernel
from hilt.tune.model_guided.prediction import Predictor

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

_BY_ESTIMATE = 24
_SPREAD = 32
_BY_SURROGATE = 32
_ROUNDS = 2
_MORE_ROUNDS = 8
"""As many where the risk of having overlooked something is above _SMALL_RISK."""
_SMALL_RISK = 0.004
_SUPPORT = 240
"""Rows that the surrogate is fitted to, the fastest."""
_ERROR = Kernel(amplitude=0.08, length=0.7, noise=0.003)
"""Of the closed form against the twin (as logarithms), besides an offset."""
_OFFSET = 0.3
_HOPELESS = 0.5
"""By how much (as a logarithm) the closed form may be behind its best."""
NEAR = 0.01
"""How close to the best (as a logarithm) is as good as the best."""


class Shortlist:
    """Rows that were predicted, and a surrogate of the prediction for those that were not."""

    def __init__(self, candidates: Candidates, predictor: Predictor) -> None:
        self._candidates = candidates
        self._predictor = predictor
        self._seen = np.zeros(len(candidates), dtype=np.bool_)
        self._first_with: dict[bytes, int] = {}
        self.rows: Rows = np.zeros(0, dtype=np.int64)
        """Distinct programs, in the order in which they were added."""

    def copy(self) -> Shortlist:
        """One that goes on from here; this one stays as it is."""
        other = Shortlist(self._candidates, self._predictor)
        other._seen, other._first_with, other.rows = self._seen.copy(), dict(self._first_with), self.rows
        return other

    def open(self, coordinates: Floats) -> None:
        """The first rows, for memories (m, 3): the best by the closed form with each, and some of all kinds."""
        for each in coordinates:
            order = np.argsort(self._candidates.analytic_model.cycles(each), kind="stable")
            order = order[self._candidates.short[order]]
            self._add(order[:_BY_ESTIMATE])
        better_half = order[: max(len(order) // 2, 1)]
        self._add(better_half[np.linspace(0, len(better_half) - 1, _SPREAD).astype(np.int64)])
        for each in coordinates:
            self.extend(each)

    def extend(self, coordinates: Floats) -> tuple[float, Floats]:
        """Adds what the surrogate takes to be as good as the best with the memory at `coordinates` (3,), until there
        is nothing more of it or the rounds are used up.

        Returns the expected number of those left behind that are better by NEAR (as the surrogate has it; or, where
        that is less, by the rule of succession from how many were lowered in vain since the first that is as good as
        the best), and the cycles (logarithms, (n,)) of all rows.
        """
        estimate = np.log(self._candidates.analytic_model.cycles(coordinates))
        cycles = self._predictor.log_cycles(self.rows.tolist(), coordinates[None])[:, 0]
        risk, left = 0.0, self._candidates.short
        for turn in range(_MORE_ROUNDS + 1):
            unseen = np.flatnonzero(left & ~self._seen & (estimate < estimate[self.rows].min() + _HOPELESS))
            if not len(unseen) or not np.isfinite(cycles).any():
                return 0.0, cycles
            mean, deviation = self._surrogate(estimate, cycles, unseen)
            threshold = cycles.min() - NEAR
            below = ndtr((threshold - mean) / np.maximum(deviation, 1e-9))
            in_vain = len(cycles) - 1 - int(np.flatnonzero(cycles <= cycles.min() + NEAR)[0])
            risk = min(float(below.sum()), 1 / (in_vain + 2))
            hopeful = mean - deviation < threshold + 2 * NEAR
            enough = risk < _SMALL_RISK and (turn >= _ROUNDS or not hopeful.any())
            if enough or turn == _MORE_ROUNDS:
                break
            order = np.argsort(mean - deviation, kind="stable")[:_BY_SURROGATE]
            added = self._add(unseen[order])
            cycles = np.concatenate((cycles, self._predictor.log_cycles(added, coordinates[None])[:, 0]))
        return risk, cycles

    def include(self, rows: Rows) -> Rows:
        """Has these rows as well, and returns those of them that are distinct programs."""
        self._add(rows[self._candidates.short[rows]])
        return rows[np.isin(rows, self.rows)]

    def _surrogate(self, estimate: Floats, cycles: Floats, rows: Rows) -> tuple[Floats, Floats]:
        support = np.argsort(cycles, kind="stable")[:_SUPPORT]
        support = support[np.isfinite(cycles[support])]
        known = self.rows[support]
        errors = cycles[support] - estimate[known]
        offset = float(np.median(errors))
        fitted = GaussianProcess(_ERROR, self._inputs(known), errors - offset)
        mean, deviation = fitted.predict(self._inputs(rows))
        return estimate[rows] + offset + mean, deviation

    def _inputs(self, rows: Rows) -> Inputs:
        return Inputs(self._candidates.smooth[rows], np.full((len(rows), 1), _OFFSET))

    def _add(self, rows: Rows) -> list[int]:
        new = [row for row in dict.fromkeys(rows.tolist()) if not self._seen[row]]
        self._seen[new] = True
        programs = zip(new, self._predictor.programs(new), strict=True)
        distinct = [
            row for row, program in programs if program is not None and self._first_with.setdefault(program, row) == row
        ]
        self.rows = np.concatenate((self.rows, np.array(distinct, dtype=np.int64)))
        return distinct
