"""The candidates of a run, and the facts about each that need no lowering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilt.schedule.features import Features
from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.knobs import Knobs
from hilt.tune.model_guided.memories import prior_mean
from hilt.tune.problem import Indices, TuningProblem

Floats = npt.NDArray[np.float64]

MOST = 1 << 14
"""Candidates kept of a space that has more: the best by the analytic model."""
_AT_ONCE = 1 << 15
_LONGEST = 1 << 16
"""Most instructions of a program that is lowered for prediction.

Each instruction costs cycles of the board, and time here.
"""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates, rows 0..n-1."""

    indices: Indices
    """Indices into the space, (n,)."""
    hidden: Features
    smooth: Floats
    """Logarithms of the hidden features and the knobs (n, d), each column of deviation 1."""
    knobs: Knobs
    analytic_model: AnalyticModel
    short: npt.NDArray[np.bool_]
    """Rows (n,) that may be lowered for prediction; all rows, if none is short."""

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def row_of(self) -> dict[int, int]:
        """The row of each index."""
        return {index: row for row, index in enumerate(self.indices.tolist())}


def candidates_of(problem: TuningProblem) -> Candidates:
    """Return the configurations that compile: all of them, or the best MOST by the analytic model.

    Runs of one problem share the result.
    """
    return problem.once("hilt's candidates", lambda: _candidates(problem))


def _candidates(problem: TuningProblem) -> Candidates:
    compiles = np.flatnonzero(problem.compiles).astype(np.int64)
    if len(compiles) > MOST:
        estimate = np.concatenate(
            [_estimate(problem, compiles[first : first + _AT_ONCE]) for first in range(0, len(compiles), _AT_ONCE)]
        )
        compiles = np.sort(compiles[np.argsort(estimate, kind="stable")[:MOST]])
    hidden = problem.hidden_features(compiles)
    form = AnalyticModel(problem.accelerator, hidden)
    short = hidden.column("instructions.all") <= _LONGEST
    smooth, knobs = _smooth(problem, compiles, hidden), Knobs.of(problem, compiles)
    return Candidates(compiles, hidden, smooth, knobs, form, short | ~short.any())


def _estimate(problem: TuningProblem, indices: Indices) -> Floats:
    form = AnalyticModel(problem.accelerator, problem.hidden_features(indices))
    return form.cycles(prior_mean(problem.accelerator))


def _smooth(problem: TuningProblem, indices: Indices, hidden: Features) -> Floats:
    columns = [np.log2(1 + np.maximum(hidden.values.astype(np.float64), 0))]
    orders = problem.columns(indices).get("loop_order")
    if orders is not None:
        columns.append((orders[:, None] == np.unique(orders)).astype(np.float64))
    values = np.concatenate(columns, axis=1)
    if not len(values):
        return values
    deviation = values.std(axis=0)
    varies = deviation > 1e-9
    return np.asarray((values[:, varies] - values[:, varies].mean(axis=0)) / deviation[varies])
