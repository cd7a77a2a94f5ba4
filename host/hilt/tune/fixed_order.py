"""The tuner `order`: configurations that compile, in an order that no result changes; a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilt.simulator.device import MemoryModel
from hilt.tune.feedback import Feedback
from hilt.tune.model_guided.analytic_model import AnalyticModel, bytes_moved
from hilt.tune.model_guided.memories import prior_mean
from hilt.tune.options import require
from hilt.tune.problem import Indices, TuningProblem

Floats = npt.NDArray[np.float64]

_AT_ONCE = 1 << 15
_MOST_SIMULATED = 4096
"""Configurations that the twin orders: the best by the formula. The rest follow in the formula's order."""


@dataclass(frozen=True)
class OrderOptions:
    """The options of the tuner order."""

    by: str = "formula"
    """The order: random, bytes (moved), formula (cycles in closed form), twin (cycles of the timing model)."""

    def __post_init__(self) -> None:
        require(self.by in ORDERS, f"order by {self.by!r} is none of {', '.join(ORDERS)}")


class OrderTuner:
    """A tuner that proposes the rows that compile in a fixed order, then the rest by index. Results change nothing."""

    def __init__(self, problem: TuningProblem, seed: int, options: OrderOptions) -> None:
        self._problem = problem
        self._seed = seed
        self._options = options
        self._next = 0

    def ask(self, count: int) -> list[int]:
        first, self._next = self._next, min(self._next + count, len(self._order))
        return [int(index) for index in self._order[first : self._next]]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass

    @cached_property
    def _order(self) -> Indices:
        compiles = np.flatnonzero(self._problem.compiles).astype(np.int64)
        refused = np.flatnonzero(~self._problem.compiles).astype(np.int64)
        cost = ORDERS[self._options.by](self._problem, compiles, self._seed)
        return np.concatenate((compiles[np.argsort(cost, kind="stable")], refused))


def _random(problem: TuningProblem, indices: Indices, seed: int) -> Floats:
    return np.random.default_rng(seed).random(len(indices))


def _bytes(problem: TuningProblem, indices: Indices, seed: int) -> Floats:
    return _in_parts(lambda some: bytes_moved(problem.accelerator, problem.hidden_features(some)), indices)


def _formula(problem: TuningProblem, indices: Indices, seed: int) -> Floats:
    memory = prior_mean(problem.accelerator)
    return _in_parts(
        lambda some: AnalyticModel(problem.accelerator, problem.hidden_features(some)).cycles(memory), indices
    )


def _twin(problem: TuningProblem, indices: Indices, seed: int) -> Floats:
    cost = _formula(problem, indices, seed)
    best = np.argsort(cost, kind="stable")[:_MOST_SIMULATED]
    cycles = problem.predicted_cycles(indices[best], [MemoryModel()])[:, 0]
    behind = np.nanmax(cycles, initial=0.0) + 1.0
    cost = behind + cost
    cost[best] = np.where(np.isnan(cycles), behind, cycles)
    return cost


def _in_parts(of: Callable[[Indices], Floats], indices: Indices) -> Floats:
    """Return one figure for each index, some at a time: a large space's features do not fit in memory."""
    parts = [of(indices[first : first + _AT_ONCE]) for first in range(0, len(indices), _AT_ONCE)]
    return np.concatenate(parts) if parts else np.zeros(0)


ORDERS: dict[str, Callable[[TuningProblem, Indices, int], Floats]] = {
    "random": _random,
    "bytes": _bytes,
    "formula": _formula,
    "twin": _twin,
}
"""The cost of each configuration by order: the cheapest is proposed first."""
