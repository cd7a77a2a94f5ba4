"""The selection of candidates to measure, and their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilt.tune.untried import Untried


class EpsilonGreedyPlan:
    """Candidates best first, then random ones: the last `random_share` of a plan, and all after its end.

    Source: AutoTVM; int(0.05 * 64) = 3 of a full plan of 64 are random (TVM_FACTS section 4).
    """

    def __init__(self, candidates: Sequence[int], plan_size: int, random_share: float) -> None:
        greedy = len(candidates) - int(random_share * plan_size)
        self._candidates = list(candidates[: max(greedy, 0)])[::-1]

    def take(self, untried: Untried, generator: np.random.Generator) -> int:
        """Return the next index to measure, taken from `untried`, which must not be empty."""
        while self._candidates:
            index = self._candidates.pop()
            if index in untried:
                untried.take(index)
                return index
        return untried.draw(generator)
