"""Parallel simulated annealing over a space of knobs, as AutoTVM searches (TVM_FACTS section 4), all points at once."""

from __future__ import annotations

import heapq
from collections.abc import Container
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Indices, Score, Scores
from hilt.tune.search_space import SearchSpace

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AnnealingSchedule:
    """The iterations, the parallel points, and the iterations without a better candidate after which the walk ends."""

    iterations: int = 500
    points: int = 128
    patience: int = 50

    def temperature(self, iteration: int) -> float:
        """Return the temperature, which falls linearly from 1 at iteration 0 towards 0 at `iterations + 1`."""
        return 1.0 - iteration / (self.iterations + 1)


def acceptance_probability(old: Scores, new: Scores, temperature: float) -> Floats:
    """Return exp(min((new - old) / (temperature + 1e-5), 1)), shape (n,).

    It is 1 or more (always accepted) for a step that is not worse.
    """
    gain = new.astype(np.float64) - old.astype(np.float64)
    return np.exp(np.minimum(gain / (temperature + 1e-5), 1.0))


class KnobMoves:
    """Steps to a neighbour: one knob, drawn uniformly, gets another of its values.

    The draw of a knob and a value is not repeated until the point moves. Instead the knob is drawn with a weight of
    (size - 1) / size and then one of its other values, which gives the same distribution.
    """

    def __init__(self, sizes: Positions) -> None:
        """Take the number of values of each knob (knobs,), at least one of them more than 1."""
        weights = (sizes - 1) / sizes
        self._sizes = sizes
        self._bounds = np.maximum(sizes, 2)
        self._chances = np.cumsum(weights / weights.sum())
        self._chances /= self._chances[-1]

    def draw(self, positions: Positions, generator: np.random.Generator) -> tuple[Positions, Positions, Positions]:
        """Draw one step for each row of `positions` (n, knobs).

        Returns:
            The knobs (n,), their present positions (n,) and their new positions (n,).
        """
        knobs = self._chances.searchsorted(generator.random(len(positions)), side="right")
        steps = generator.integers(1, self._bounds[knobs])
        before = positions[np.arange(len(positions)), knobs]
        return knobs, before, (before + steps) % self._sizes[knobs]


class Annealing:
    """A walk through a space for the points of the highest score. The points keep their places between two searches."""

    def __init__(self, space: SearchSpace, schedule: AnnealingSchedule, generator: np.random.Generator) -> None:
        self._space = space
        self._schedule = schedule
        self._generator = generator
        self._points: Positions | None = None
        self.steps = 0
        """Moves of all points together so far, in all searches."""

    def search(self, score: Score, count: int, allowed: Container[int]) -> list[tuple[float, int]]:
        """Return up to `count` (score, index) of the best allowed configurations that the walk met, best first."""
        points = self._start() if self._points is None else self._points
        indices = self._space.indices(points)
        scores = score(indices)
        best = _Best(count, allowed)
        best.offer(scores, indices)
        self._points = points
        if len(self._space) > 1:
            self._walk(points, indices, scores, score, best)
        return best.sorted()

    def _walk(self, points: Positions, indices: Indices, scores: Scores, score: Score, best: _Best) -> None:
        """Move the points (n, knobs), which have these indices and scores (n,)."""
        moves, strides = KnobMoves(self._space.sizes), _strides(self._space)
        indices, scores = indices.copy(), scores.copy()
        last_change = 0
        for iteration in range(self._schedule.iterations):
            if iteration >= last_change + self._schedule.patience:
                break
            self.steps += 1
            knobs, before, after = moves.draw(points, self._generator)
            moved_indices = indices + (after - before) * strides[knobs]
            moved_scores = score(moved_indices)
            probability = acceptance_probability(scores, moved_scores, self._schedule.temperature(iteration))
            accepted = np.flatnonzero(self._generator.random(len(points)) < probability)
            points[accepted, knobs[accepted]] = after[accepted]
            indices[accepted], scores[accepted] = moved_indices[accepted], moved_scores[accepted]
            if best.offer(moved_scores, moved_indices):
                last_change = iteration

    def _start(self) -> Positions:
        count = min(self._schedule.points, len(self._space))
        indices = self._generator.choice(len(self._space), size=count, replace=False)
        return self._space.positions(indices)


def _strides(space: SearchSpace) -> Positions:
    """Return the growth of the index with one position on each knob (knobs,)."""
    last = np.diag(space.sizes - 1)
    return np.asarray((space.indices(last) - space.indices(0 * last)) // np.maximum(space.sizes - 1, 1))


class _Best:
    """The `count` highest-scored distinct indices among those offered and allowed."""

    def __init__(self, count: int, allowed: Container[int]) -> None:
        self._count = count
        self._allowed = allowed
        self._heap: list[tuple[float, int]] = []
        self._looked_at: set[int] = set()
        """Indices that need no second look: each is held, was not allowed, or scores below all held ones.

        A rejected index stays rejected: neither reason changes.
        """

    def offer(self, scores: Scores, indices: Indices) -> bool:
        """Add the allowed indices that score among the best, and return whether any was added.

        An index must have the same score whenever it is offered.
        """
        changed = False
        threshold = self._threshold()
        worth_a_look = np.flatnonzero(scores > threshold)
        for value, index in zip(scores[worth_a_look].tolist(), indices[worth_a_look].tolist(), strict=True):
            if value > threshold and index not in self._looked_at:
                self._looked_at.add(index)
                if index in self._allowed:
                    self._add(value, index)
                    threshold = self._threshold()
                    changed = True
        return changed

    def sorted(self) -> list[tuple[float, int]]:
        return sorted(self._heap, key=lambda item: (-item[0], item[1]))

    def _threshold(self) -> float:
        return self._heap[0][0] if len(self._heap) == self._count else -np.inf

    def _add(self, value: float, index: int) -> None:
        if len(self._heap) < self._count:
            heapq.heappush(self._heap, (value, index))
        else:
            heapq.heapreplace(self._heap, (value, index))
