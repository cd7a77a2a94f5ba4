"""The first epoch: as many valid as invalid configurations, far apart (Rieber et al. 2022, section IV-B)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Indices
from hilt.tune.hardware_aware.presampling import Presamples
from hilt.tune.search_space import SearchSpace

Rows = npt.NDArray[np.int64]


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
