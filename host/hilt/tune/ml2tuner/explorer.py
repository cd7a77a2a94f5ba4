"""The configuration explorer: TVM's search by model P, filtered by model V."""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np
import numpy.typing as npt

from hilt.tune.annealing import Annealing
from hilt.tune.cost_model import Indices, Score

ValidityModel = Callable[[Indices], npt.NDArray[np.bool_]]
"""A check whether the configurations with these indices (n,) are predicted to be valid (n,)."""


def explore(
    annealing: Annealing, score: Score, looks_valid: ValidityModel, count: int, allowed: Container[int]
) -> Indices:
    """Return `count` allowed configurations (n,) that look valid, the best scored of each pass first.

    Each pass of the search leaves out the results of earlier passes. It requests twice as many as the one before,
    because
    V may reject all of P's favourites. If a pass returns fewer than requested, the search ends with fewer results.
    """
    found: list[int] = []
    seen: set[int] = set()
    wanted = count
    while len(found) < count:
        ranked = [index for _, index in annealing.search(score, wanted, _Without(allowed, seen))]
        seen.update(ranked)
        candidates = np.array(ranked, dtype=np.int64)
        found += candidates[looks_valid(candidates)].tolist() if ranked else []
        if len(ranked) < wanted:
            break
        wanted *= 2
    return np.array(found[:count], dtype=np.int64)


class _Without(Container[int]):
    """The allowed indices that no pass has returned yet."""

    def __init__(self, allowed: Container[int], seen: set[int]) -> None:
        self._allowed = allowed
        self._seen = seen

    def __contains__(self, index: object) -> bool:
        return index not in self._seen and index in self._allowed
