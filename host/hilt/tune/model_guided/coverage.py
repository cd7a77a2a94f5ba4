"""The choice of trials that most probably include one as good as the best.

The posterior gives draws of all latencies and of the validity of configurations. A configuration covers the draws in
which it is within NEAR of the draw's best. The share of draws that measured ones cover is the confidence that nothing
better remains. The next trial covers the most of the other draws. (This is greedy maximum coverage, which is within
1 - 1/e of the best set.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.shortlist import NEAR

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

AVERSION = 0.5
"""Cost of a failed trial as a share of the draws, while failures are predicted."""


def covering(latencies: Floats, valid: Bools) -> Bools:
    """Return the valid configurations within NEAR of the best valid one of their draw, (draws, n).

    `latencies` are logarithms (draws, n).
    """
    reachable = np.where(valid, latencies, np.inf)
    best = reachable.min(axis=1, keepdims=True)
    return np.asarray(valid & (reachable <= best + NEAR))


def confidence(covers: Bools, measured: Bools) -> float:
    """Return the share of draws with one of the `measured` (n,) among their best."""
    return float(covers[:, measured].any(axis=1).mean()) if measured.any() else 0.0


def choose(
    covers: Bools, asked: Bools, probability: Floats, mean: Floats, count: int, aversion: float = AVERSION
) -> list[int]:
    """Return up to `count` positions, the one that covers the most open draws first.

    A draw is open if none of the `asked` (n,) covers it. Among equals, the least `mean` (n,) logarithm is first. The
    choice ends once the gain is not worth the risk of a failed trial; `probability` (n,) is that of a valid one.
    """
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
