"""Validity checks of a sample of the space before any measurement (Rieber et al. 2022, section IV-A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Indices
from hilt.tune.search_space import SearchSpace

ValidityCheck = Callable[[Indices], npt.NDArray[np.bool_]]
"""A check whether the configurations with these indices (n,) are valid (n,); the paper uses the compiler."""


@dataclass(frozen=True, eq=False)
class Presamples:
    """The paper's N: `indices` (n,), each once, in the order of the checks, and `valid` (n,), their verdicts."""

    indices: Indices
    valid: npt.NDArray[np.bool_]


def presample(
    space: SearchSpace, check: ValidityCheck, count: int, parallel: int, generator: np.random.Generator
) -> Presamples:
    """Check `count` configurations by Algorithm 1 (all if there are fewer), `parallel` at a time.

    A valid configuration makes its neighbours candidates of the next turn, an invalid one a random configuration. The
    paper does not cover a turn without candidates. After such a turn, the next one starts from random configurations.
    """
    count = min(count, len(space))
    known: Indices = np.empty(0, dtype=np.int64)
    verdicts: list[npt.NDArray[np.bool_]] = []
    points = _draw_outside(len(space), min(parallel, count), known, generator)
    while True:
        valid = check(points)
        known = np.concatenate((known, points))
        verdicts.append(valid)
        missing = min(parallel, count - len(known))
        if missing == 0:
            return Presamples(known, np.concatenate(verdicts))
        candidates = np.setdiff1d(neighbours(space, points[valid]), known)
        strangers = _draw_outside(len(space), len(valid) - int(valid.sum()), np.union1d(candidates, known), generator)
        candidates = np.concatenate((candidates, strangers))
        if len(candidates) == 0:
            candidates = _draw_outside(len(space), missing, known, generator)
        points = generator.choice(candidates, size=min(missing, len(candidates)), replace=False)


def sample_uniformly(
    space: SearchSpace, check: ValidityCheck, count: int, generator: np.random.Generator
) -> Presamples:
    """Check `count` configurations, all equally likely: the baseline of Algorithm 1."""
    points = _draw_outside(len(space), min(count, len(space)), np.empty(0, dtype=np.int64), generator)
    return Presamples(points, check(points))


def neighbours(space: SearchSpace, indices: Indices) -> Indices:
    """Return all configurations at Manhattan distance 1 of any of these (n,), each once, ascending."""
    positions = space.positions(indices)
    steps = np.eye(len(space.sizes), dtype=np.int64)
    around = (positions[:, None, :] + np.concatenate((steps, -steps))).reshape(-1, len(space.sizes))
    inside = ((around >= 0) & (around < space.sizes)).all(axis=1)
    return np.unique(space.indices(around[inside]))


def _draw_outside(size: int, count: int, excluded: Indices, generator: np.random.Generator) -> Indices:
    """Draw `count` different indices below `size` and not in `excluded` (each once), or all, in random order."""
    if size <= 2 * (len(excluded) + count):
        free = np.setdiff1d(np.arange(size), excluded)
        return generator.permutation(free)[:count]
    drawn: Indices = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        more = generator.integers(size, size=count - len(drawn))
        more = more[np.sort(np.unique(more, return_index=True)[1])]
        drawn = np.concatenate((drawn, more[~np.isin(more, excluded) & ~np.isin(more, drawn)]))
    return drawn
