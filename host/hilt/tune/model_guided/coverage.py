"""Which trials most probably include one that is as good as the best.

Given draws of all latencies (and of which configurations are valid) from what is believed, a configuration covers the
draws in which it is within NEAR of the draw's best. The share of draws that measured ones cover is the confidence that
nothing better remains; the next trial is what covers most of the others. (Greedy maximum coverage, which is within
1 - 1/e of the best set.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.shortlist import NEAR

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

AVERSION = 0.5
"""A failed trial costs as much as this share of the draws, while failures are foreseen."""


def covering(latencies: Floats, valid: Bools) -> Bools:
    """(draws, n) of logarithms (draws, n): what is valid and within NEAR of the best valid one of its draw."""
    reachable = np.where(valid, latencies, np.inf)
    best = reachable.min(axis=1, keepdims=True)
    return np.asarray(valid & (reachable <= best + NEAR))


def confidence(covers: Bools, measured: Bools) -> float:
    """The share of draws that have one of the `measured` (n,) among their best."""
    return float(covers[:, measured].any(axis=1).mean()) if measured.any() else 0.0


def choose(
    covers: Bools, asked: Bools, probability: Floats, mean: Floats, count: int, aversion: float = AVERSION
) -> list[int]:
    """Up to `count` positions, the one that covers most of what those asked (n,) leave open first; of equals the one
    with the least `mean` (n,) logarithm. Ends where the gain is not worth the risk that a trial fails, `probability`
    (n,) being that of a valid one."""
    open_draws = ~covers[:, asked].any(axis=1)
    free = ~asked
    picked: list[int] = []
    order = np.argsort(mean, kind="stable")
    while len(picked) < count and free.any():
        worth = covers[open_draws].sum(axis=0) / len(covers) - aversion * (1 - probability)
        worth[~free] = -np.inf
        best = int(order[np.argmax(worth[order])])
        if worth[best] <= 0:
            break
        picked.append(best)
        free[best] = False
        open_draws &= ~covers[:, best]
    return picked
