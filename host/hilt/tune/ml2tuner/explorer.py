"""The configuration explorer: TVM's search by model P, of which model V lets pass what it takes for valid."""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np
import numpy.typing as npt

from hilt.tune.annealing import Annealing
from hilt.tune.cost_model import Indices, Score

ValidityModel = Callable[[Indices], npt.NDArray[np.bool_]]
"""Whether the configurations with these indices (n,) are taken for valid (n,)."""

MOST_PASSES = 20
"""The paper searches until it has enough. Where V rejects all that P likes, random trials tell more than going on."""


def explore(
    annealing: Annealing, score: Score, looks_valid: ValidityModel, count: int, allowed: Container[int]
) -> Indices:
    """Up to `count` allowed configurations (n,) that look valid, by passes of search each of which leaves out what the
    passes before it found; the best scored of a pass first."""
    found: list[int] = []
    seen: set[int] = set()
    for _ in range(MOST_PASSES):
        ranked = [index for _, index in annealing.search(score, count, _Without(allowed, seen))]
        if not ranked:
            break
        seen.update(ranked)
        candidates = np.array(ranked, dtype=np.int64)
        found += candidates[looks_valid(candidates)].tolist()
        if len(found) >= count:
            break
    return np.array(found[:count], dtype=np.int64)


class _Without(Container[int]):
    """What is allowed and was not seen."""

    def __init__(self, allowed: Container[int], seen: set[int]) -> None:
        self._allowed = allowed
        self._seen = seen

    def __contains__(self, index: object) -> bool:
        return index not in self._seen and index in self._allowed
