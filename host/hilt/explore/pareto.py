"""The Pareto front of designs: none is better in one measure without being worse in another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def pareto_front(measures: Sequence[Sequence[float]]) -> list[int]:
    """Return the rows that no other row beats, ordered by the first measure; less is better in each.

    Args:
        measures: One row for each design, shape (designs, measures). Equal rows count once, the first of them.
    """
    if not len(measures):
        return []
    values: npt.NDArray[np.float64] = np.asarray(measures, dtype=np.float64)
    _, first = np.unique(values, axis=0, return_index=True)
    distinct = sorted(first.tolist())
    front = []
    for row in distinct:
        others = values[distinct]
        beaten = np.all(others <= values[row], axis=1) & np.any(others < values[row], axis=1)
        if not beaten.any():
            front.append(row)
    return sorted(front, key=lambda row: tuple(values[row]))
