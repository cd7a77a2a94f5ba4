"""The selection of good candidates that differ from each other (AutoTVM, equation 3)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def diversity_objective(scores: npt.NDArray[np.floating], positions: Ints, weight: float) -> float:
    """Return L(S) of the whole set.

    It is the sum of the scores (n,), larger is better, plus `weight` for each different value of each knob among the
    `positions` (n, knobs).
    """
    covered = sum(len(np.unique(column)) for column in positions.T)
    return float(scores.sum() + weight * covered)


def pick_diverse(scores: npt.NDArray[np.floating], positions: Ints, count: int, weight: float) -> Ints:
    """Return the rows of up to `count` candidates in the order of their choice.

    Each row adds the most to L(S) of those before it; among equals the first is taken. The greedy choice is within
    1 - 1/e of the best set if no score is negative (Nemhauser et al., 1978).
    """
    count = min(count, len(scores))
    gains = scores.astype(np.float64)
    is_new = [np.ones(int(column.max(initial=0)) + 1, dtype=np.bool_) for column in positions.T]
    picked = np.empty(count, dtype=np.int64)
    for place in range(count):
        added = sum(new[column] for new, column in zip(is_new, positions.T, strict=True))
        row = int(np.argmax(gains + weight * added))
        picked[place] = row
        gains[row] = -np.inf
        for new, value in zip(is_new, positions[row], strict=True):
            new[value] = False
    return picked
