"""Uniform random search without replacement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilt.tune.feedback import Feedback
from hilt.tune.search_space import SearchSpace
from hilt.tune.untried import Untried


@dataclass(frozen=True)
class RandomOptions:
    """The options of random search, which has none."""


class RandomTuner:
    """A tuner for which every untried configuration is equally likely; results change nothing."""

    def __init__(self, space: SearchSpace, seed: int, options: RandomOptions) -> None:
        self._generator = np.random.default_rng(seed)
        self._untried = Untried(len(space))

    def ask(self, count: int) -> list[int]:
        return [self._untried.draw(self._generator) for _ in range(min(count, len(self._untried)))]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass
