"""Every configuration in the order of its index, as TVM's GridSearchTuner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hilt.tune.feedback import Feedback
from hilt.tune.search_space import SearchSpace


@dataclass(frozen=True)
class GridOptions:
    """The options of grid search, which has none."""


class GridTuner:
    """A tuner that proposes index 0, 1, 2, ...: the first knob fastest. The seed and the results change nothing."""

    def __init__(self, space: SearchSpace, options: GridOptions) -> None:
        self._size = len(space)
        self._next = 0

    def ask(self, count: int) -> list[int]:
        first, self._next = self._next, min(self._next + count, self._size)
        return list(range(first, self._next))

    def tell(self, feedback: Sequence[Feedback]) -> None:
        pass
