"""The part of a space that was not proposed yet, for spaces of any size."""

from __future__ import annotations

from collections.abc import Container

import numpy as np


class Untried(Container[int]):
    """Indices 0..size-1 that can still be proposed; each is taken at most once.

    The class stores the taken indices, and lists the free ones only once they are fewer. A space of a billion points
    therefore costs nothing to open, and a draw from a nearly used-up space needs no search.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken: set[int] = set()
        self._free: list[int] | None = None  # None until half are taken; may hold indices taken later

    def __len__(self) -> int:
        return self._size - len(self._taken)

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and 0 <= index < self._size and index not in self._taken

    def take(self, index: int) -> None:
        """Mark one index as proposed. Raises ValueError if it was taken before or is outside the space."""
        if index not in self:
            raise ValueError(f"configuration {index} is not free to be asked, of a space of {self._size}")
        self._taken.add(index)

    def draw(self, generator: np.random.Generator) -> int:
        """Take one of the remaining indices, all equally likely. Raises IndexError if none remains."""
        if not self:
            raise IndexError("every configuration of the space was asked")
        if self._free is None and 2 * len(self._taken) >= self._size:
            self._free = [index for index in range(self._size) if index not in self._taken]
        index = self._propose(generator)
        while index in self._taken:
            index = self._propose(generator)
        self._taken.add(index)
        return index

    def _propose(self, generator: np.random.Generator) -> int:
        if self._free is None:
            return int(generator.integers(self._size))
        position = int(generator.integers(len(self._free)))
        self._free[position], self._free[-1] = self._free[-1], self._free[position]
        return self._free.pop()
