"""Parallel simulated annealing over a space of knobs, as AutoTVM searches (TVM_FACTS section 4), all points at once."""

from __future__ import annotations

import heapq
from collections.abc import Container
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Indices, Score, Scores
from hilt.tune.space import SearchSpace

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AnnealingSchedule:
    """Iterations, points that walk side by side, and iterations without a better candidate after which it ends."""

    iterations: int = 500
    points: int = 128
    patience: int = 50

    def temperature(self, iteration: int) -> float:
        """Linear from 1 at iteration 0 towards 0 at `iterations + 1`."""
        return 1.0 - iteration / (self.iterations + 1)


def acceptance_probability(old: Scores, new: Scores, temperature: float) -> Floats:
    """exp(min((new - old) / (temperature + 1e-5), 1)), shape (n,): 1 or more (always) for a step that is not worse."""
    gain = new.astype(np.float64) - old.astype(np.float64)
    return np.exp(np.minimum(gain / (temperature + 1e-5), 1.0))


def redraw_one_knob(positions: Positions, sizes: Positions, generator: np.random.Generator) -> Positions:
    """A neighbour of each row of `positions` (n, knobs): one knob, drawn uniformly, gets another of its `sizes` values.

    Drawing a knob and a value until the point has moved is the same as drawing the knob with a weight of
    (size - 1) / size and then one of its other values. Rows of a space of one point stay where they are.
    """
    weights = (sizes - 1) / sizes
    if not weights.any():
        return positions.copy()
    rows = np.arange(len(positions))
    knobs = generator.choice(len(sizes), size=len(positions), p=weights / weights.sum())
    steps = generator.integers(1, np.maximum(sizes[knobs], 2))
    moved = positions.copy()
    moved[rows, knobs] = (positions[rows, knobs] + steps) % sizes[knobs]
    return moved


class Annealing:
    """Walks a space for the points of the highest score. The points stay where they are between two searches."""

    def __init__(self, space: SearchSpace, schedule: AnnealingSchedule, generator: np.random.Generator) -> None:
        self._space = space
        self._schedule = schedule
        self._generator = generator
        self._points: Positions | None = None

    def search(self, score: Score, count: int, allowed: Container[int]) -> list[tuple[float, int]]:
        """Up to `count` (score, index) of the best allowed configurations it came by, best first."""
        points = self._start() if self._points is None else self._points
        indices = self._space.indices(points)
        scores = score(indices)
        best = _Best(count, allowed)
        best.offer(scores, indices)
        last_change = 0
        for iteration in range(self._schedule.iterations):
            if iteration >= last_change + self._schedule.patience:
                break
            moved = redraw_one_knob(points, self._space.sizes, self._generator)
            moved_indices = self._space.indices(moved)
            moved_scores = score(moved_indices)
            probability = acceptance_probability(scores, moved_scores, self._schedule.temperature(iteration))
            accepted = self._generator.random(len(points)) < probability
            points = np.where(accepted[:, None], moved, points)
            scores = np.where(accepted, moved_scores, scores)
            if best.offer(moved_scores, moved_indices):
                last_change = iteration
        self._points = points
        return best.sorted()

    def _start(self) -> Positions:
        count = min(self._schedule.points, len(self._space))
        indices = self._generator.choice(len(self._space), size=count, replace=False)
        return self._space.positions(indices)


class _Best:
    """The `count` highest-scored distinct indices among those offered and allowed."""

    def __init__(self, count: int, allowed: Container[int]) -> None:
        self._count = count
        self._allowed = allowed
        self._heap: list[tuple[float, int]] = []
        self._held: set[int] = set()

    def offer(self, scores: Scores, indices: Indices) -> bool:
        """Whether any of them got in."""
        changed = False
        worth_a_look = scores > self._threshold()
        for value, index in zip(scores[worth_a_look].tolist(), indices[worth_a_look].tolist(), strict=True):
            if value > self._threshold() and index not in self._held and index in self._allowed:
                self._add(value, index)
                changed = True
        return changed

    def sorted(self) -> list[tuple[float, int]]:
        return sorted(self._heap, key=lambda item: (-item[0], item[1]))

    def _threshold(self) -> float:
        return self._heap[0][0] if len(self._heap) == self._count else -np.inf

    def _add(self, value: float, index: int) -> None:
        self._held.add(index)
        if len(self._heap) < self._count:
            heapq.heappush(self._heap, (value, index))
        else:
            _, dropped = heapq.heapreplace(self._heap, (value, index))
            self._held.remove(dropped)
