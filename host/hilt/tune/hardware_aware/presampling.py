"""The first epoch: validity checks of a sample of the space, and a balanced choice from it.

Rieber et al. 2022, sections IV-A and IV-B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Indices
from hilt.tune.search_space import SearchSpace

ValidityCheck = Callable[[Indices], npt.NDArray[np.bool_]]
"""A check whether the configurations with these indices (n,) are valid (n,); the paper uses the compiler."""
Rows = npt.NDArray[np.int64]


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


def balanced_epoch(space: SearchSpace, presamples: Presamples, epoch: int) -> Indices:
    """Return E0, valid configurations first.

    There are min(|valid|, epoch / 2) valid and min(|invalid|, epoch - valid ones) invalid configurations. Each kind is
    chosen for the sum of the Manhattan distances between its members.
    """
    valid = presamples.indices[presamples.valid]
    invalid = presamples.indices[~presamples.valid]
    chosen = valid[spread(space.positions(valid), min(len(valid), epoch // 2))]
    others = invalid[spread(space.positions(invalid), min(len(invalid), epoch - len(chosen)))]
    return np.concatenate((chosen, others))


def spread(positions: npt.NDArray[np.int64], count: int) -> Rows:
    """Return `count` rows of `positions` (n, knobs), ascending, with a large summed pairwise Manhattan distance.

    Rows are chosen one by one, each the farthest from those before, then exchanged until no exchange of one row for
    another improves the sum. The paper gives the aim and no method. Such a set is at least half as spread as the best
    one.
    """
    distances = _distances(positions)
    chosen = np.zeros(len(positions), dtype=np.bool_)
    to_chosen = np.zeros(len(positions), dtype=np.int64)
    for turn in range(count):
        far = distances.sum(axis=1, dtype=np.int64) if turn == 0 else to_chosen
        row = int(np.argmax(np.where(chosen, -1, far)))
        chosen[row] = True
        to_chosen += distances[row]
    while True:
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        if len(inside) == 0 or len(outside) == 0:
            return inside
        gains = to_chosen[outside][:, None] - distances[np.ix_(outside, inside)] - to_chosen[inside]
        best = int(np.argmax(gains))
        if gains.flat[best] <= 0:
            return inside
        enters, leaves = outside[best // len(inside)], inside[best % len(inside)]
        chosen[enters], chosen[leaves] = True, False
        to_chosen += distances[enters] - distances[leaves]


def _distances(positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the Manhattan distances (n, n), added knob by knob.

    All knobs at once would take the memory of as many tables.
    """
    table = np.zeros((len(positions),) * 2, dtype=np.int32)
    for knob in positions.astype(np.int32).T:
        table += np.abs(knob[:, None] - knob)
    return table
