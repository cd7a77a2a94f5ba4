"""Synthetic spaces with a known optimum, for tuners that must not depend on the source of results."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune import Feedback

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """A space with knobs of these many values, first knob fastest, and a latency for every valid point."""

    counts: tuple[int, ...]
    valid_share: float = 1.0
    seed: int = 0
    _latencies: npt.NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        generator = np.random.default_rng(self.seed)
        positions = self.positions(np.arange(len(self)))
        centre = generator.integers(0, self.counts)
        weights = generator.uniform(0.5, 2.0, len(self.counts))
        distance = (weights * (positions - centre) ** 2).sum(axis=1)
        latencies = 100.0 + 20.0 * distance + generator.uniform(0, 5, len(self))
        # Invalid configurations lie together, on the far side of a plane, as in the papers' spaces.
        plane = (positions * generator.normal(size=len(self.counts))).sum(axis=1) + 0.01 * latencies
        latencies[plane > np.quantile(plane, self.valid_share)] = np.inf
        object.__setattr__(self, "_latencies", latencies)

    def __len__(self) -> int:
        return int(np.prod(self.counts))

    @property
    def sizes(self) -> Ints:
        return np.array(self.counts)

    def positions(self, indices: Ints) -> Ints:
        return np.stack(np.unravel_index(indices, self.counts, order="F"), axis=1)

    def indices(self, positions: Ints) -> Ints:
        return np.asarray(np.ravel_multi_index(tuple(positions.T), self.counts, order="F"))

    def features(self, indices: Ints) -> npt.NDArray[np.float32]:
        return self.positions(indices).astype(np.float32)

    def latencies(self, indices: Ints) -> npt.NDArray[np.float64]:
        """Return the latencies, infinite if invalid."""
        return self._latencies[indices]

    @property
    def optimum(self) -> float:
        return float(self._latencies.min())

    def measure(self, index: int) -> Feedback:
        latency = float(self._latencies[index])
        if np.isinf(latency):
            return Feedback(index, Outcome.REJECTED)
        return Feedback(index, Outcome.OK, latency)
