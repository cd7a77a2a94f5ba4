"""The tuners that learn nothing from results: random search and grid search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilt.tune.feedback import Feedback
from hilt.tune.problem import TuningProblem
from hilt.tune.search_space import SearchSpace
from hilt.tune.untried import Untried


@dataclass(frozen=True)
class RandomOptions:
    """The options of random search, which has none."""


class RandomTuner:
    """A tuner for which every untried configuration is equally likely; results change nothing."""

    def __init__(self, space: SearchSpace, seed: int, options: RandomOptions) -> None:
        self._generator = np.random.default_rng(seed)
        self._untried = Untried(len(space))

    def ask(self, count: int) -> list[int]:
        return [self._untried.draw(self._generator) for _ in range(min(count, len(self._untried)))]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass


def random_tuner(problem: TuningProblem, seed: int, options: RandomOptions) -> RandomTuner:
    """Return random search over a problem's space."""
    return RandomTuner(problem.space, seed, options)


@dataclass(frozen=True)
class GridOptions:
    """The options of grid search, which has none."""


class GridTuner:
    """TVM's GridSearchTuner: index 0, 1, 2, ..., the first knob fastest. The seed and the results change nothing."""

    def __init__(self, space: SearchSpace, options: GridOptions) -> None:
        self._size = len(space)
        self._next = 0

    def ask(self, count: int) -> list[int]:
        first, self._next = self._next, min(self._next + count, self._size)
        return list(range(first, self._next))

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass


def grid_tuner(problem: TuningProblem, seed: int, options: GridOptions) -> GridTuner:
    """Return grid search over a problem's space."""
    return GridTuner(problem.space, options)
