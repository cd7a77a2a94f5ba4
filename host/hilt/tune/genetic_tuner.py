"""A genetic algorithm over the knobs, as TVM's GATuner: a generation is measured, its best and the elite breed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune.feedback import Feedback
from hilt.tune.options import require
from hilt.tune.problem import TuningProblem
from hilt.tune.search_space import SearchSpace
from hilt.tune.untried import Untried

_NO_CHANCE = 1e-12
"""Fitness of a failure over that of the best: a failure is a parent only if there is no other."""

_REDRAWS = 1000
"""Redraws of a child that was proposed before, until any untried configuration takes its place."""


@dataclass(frozen=True)
class GeneticOptions:
    """The options of the genetic algorithm; the defaults are TVM v0.9's."""

    population: int = 100
    """Configurations of a generation."""
    elite: int = 3
    """The best of all so far, which stay parents from generation to generation."""
    mutation: float = 0.1
    """Probability that a knob of a child is drawn anew."""

    def __post_init__(self) -> None:
        require(self.population >= 1, f"population is at least 1, not {self.population}")
        require(0 <= self.elite <= self.population, f"elite is 0 to population ({self.population}), not {self.elite}")
        require(0 <= self.mutation <= 1, f"mutation is between 0 and 1, not {self.mutation}")


class GeneticTuner:
    """The genetic algorithm as a tuner.

    The first generation is random. A later one is bred from the results so far as soon as the last one is fully
    proposed. Results that come later join the parents of the next generation.
    """

    def __init__(self, space: SearchSpace, seed: int, options: GeneticOptions) -> None:
        self._space = space
        self._generator = np.random.default_rng(seed)
        self._options = options
        self._untried = Untried(len(space))
        self._generation: deque[int] = deque()
        self._elite: dict[int, float] = {}
        self._told: dict[int, float] = {}

    def ask(self, count: int) -> list[int]:
        asked: list[int] = []
        while len(asked) < count:
            if not self._generation:
                self._generation.extend(self._breed())
            if not self._generation:
                break
            asked.append(self._generation.popleft())
        return asked

    def tell(self, feedback: Sequence[Feedback]) -> None:
        for item in feedback:
            if item.outcome is not Outcome.BOARD_LOST:
                self._told[item.index] = 0.0 if item.microseconds is None else 1.0 / item.microseconds

    def _breed(self) -> list[int]:
        """Return the next generation's indices, marked as tried; none when the space is used up."""
        size = min(self._options.population, len(self._untried))
        parents = self._elite | self._told
        if len(parents) < 2:
            return [self._untried.draw(self._generator) for _ in range(size)]
        self._told = {}
        by_fitness = sorted(parents.items(), key=lambda item: (-item[1], item[0]))
        self._elite = dict(by_fitness[: self._options.elite])
        indices, fitness = (np.array(column) for column in zip(*parents.items(), strict=True))
        genes = self._space.positions(indices)
        mothers, fathers = draw_parents(fitness, size, self._generator)
        children = cross_over(genes[mothers], genes[fathers], self._generator)
        children = mutate(children, self._space.sizes, self._options.mutation, self._generator)
        return [self._place(child) for child in children]

    def _place(self, child: npt.NDArray[np.int64]) -> int:
        """Return the child's index or, if it was proposed before, that of a point some redrawn knobs away."""
        sizes = self._space.sizes
        for _ in range(_REDRAWS):
            index = int(self._space.indices(child[None])[0])
            if index in self._untried:
                self._untried.take(index)
                return index
            knob = self._generator.integers(len(sizes))
            child[knob] = self._generator.integers(sizes[knob])
        return self._untried.draw(self._generator)


def draw_parents(
    fitness: npt.NDArray[np.float64], count: int, generator: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Draw two different parents for each of `count` children, as places in `fitness` (n >= 2,), each (count,).

    The two are drawn one after the other without replacement, with a probability proportional to the fitness.
    """
    best = fitness.max()
    chances = np.maximum(fitness / best, _NO_CHANCE) if best > 0 else np.ones(len(fitness))
    # The first two of exponential waits with these rates are distributed as two draws without replacement.
    waits = generator.exponential(size=(count, len(fitness))) / chances
    first_two = np.argpartition(waits, 1, axis=1)[:, :2]
    return first_two[:, 0], first_two[:, 1]


def cross_over(
    mothers: npt.NDArray[np.int64], fathers: npt.NDArray[np.int64], generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Cross over parents at a single point: the knobs (n, knobs) before it are the mother's, the rest the father's.

    At point 0 all knobs are the father's.
    """
    knobs = mothers.shape[1]
    points = generator.integers(knobs, size=(len(mothers), 1))
    return np.where(np.arange(knobs) < points, mothers, fathers)


def mutate(
    children: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], probability: float, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw each knob anew, perhaps to the value it has, with this probability."""
    redrawn = generator.integers(0, sizes, size=children.shape)
    return np.where(generator.random(children.shape) < probability, redrawn, children)


def genetic_tuner(problem: TuningProblem, seed: int, options: GeneticOptions) -> GeneticTuner:
    """Return the genetic algorithm over a problem's space."""
    return GeneticTuner(problem.space, seed, options)
