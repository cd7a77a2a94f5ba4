"""The configuration explorer: TVM's search by model P, of which model V lets pass what it takes for valid."""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np
import numpy.typing as npt

from hilt.tune.annealing import Annealing
from hilt.tune.cost_model import Indices, Score

ValidityModel = Callable[[Indices], npt.NDArray[np.bool_]]
"""Whether the configurations with these indices (n,) are taken for valid (n,)."""


def explore(
    annealing: Annealing, score: Score, looks_valid: ValidityModel, count: int, allowed: Container[int]
) -> Indices:
    """`count` allowed configurations (n,) that look valid, by passes of search of which each leaves out what those
    before it found; the best scored of a pass first. A pass asks for twice as many as the one before it, for V may
    reject all that P likes best; where one comes by fewer, fewer are found."""
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
    """What is allowed and was not seen."""

    def __init__(self, allowed: Container[int], seen: set[int]) -> None:
        self._allowed = allowed
        self._seen = seen

    def __contains__(self, index: object) -> bool:
        return index not in self._seen and index in self._allowed
