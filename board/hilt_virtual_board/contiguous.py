"""Contiguous memory, handed out in pages as the kernel of a board does."""

from __future__ import annotations

from typing import List, Tuple

_PAGE = 4096


class ContiguousAllocator:
    """First fit over [0, size), in bytes; whole pages of 4096."""

    def __init__(self, size: int) -> None:
        self._free: List[Tuple[int, int]] = [(0, size)]

    def take(self, count: int) -> int:
        """Return the offset of `count` bytes, page aligned. Raises MemoryError."""
        count = -(-max(count, 1) // _PAGE) * _PAGE
        for index, (start, length) in enumerate(self._free):
            if length >= count:
                self._free[index : index + 1] = [(start + count, length - count)] if length > count else []
                return start
        raise MemoryError("no {} contiguous bytes are free".format(count))

    @property
    def free(self) -> int:
        """Bytes of the largest piece that `take` can give."""
        return max((length for _, length in self._free), default=0)

    def give(self, start: int, count: int) -> None:
        """Take back a range from `take`, and join it with its free neighbours."""
        count = -(-max(count, 1) // _PAGE) * _PAGE
        merged: List[Tuple[int, int]] = []
        for each_start, each_length in sorted([*self._free, (start, count)]):
            if merged and merged[-1][0] + merged[-1][1] == each_start:
                merged[-1] = (merged[-1][0], merged[-1][1] + each_length)
            else:
                merged.append((each_start, each_length))
        self._free = merged
