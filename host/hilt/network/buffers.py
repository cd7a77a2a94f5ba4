"""The places of tensors and constants in the board's contiguous memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PAGE = 4096
"""Every buffer starts at a page: VTA's cycles depend on addresses modulo a page only."""


def pages(size: int) -> int:
    """Return a size in bytes, rounded up to whole pages."""
    return -(-max(size, 1) // PAGE) * PAGE


@dataclass(frozen=True)
class Life:
    """A tensor in memory: its bytes, and the times from the one that writes it to the last one that reads it."""

    name: str
    bytes: int
    first: int
    last: int


def one_behind_another(sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Return an offset for each buffer by name, and the bytes of all."""
    offsets: dict[str, int] = {}
    free = 0
    for name, size in sizes.items():
        offsets[name] = free
        free += pages(size)
    return offsets, free


def shared(lives: Sequence[Life]) -> tuple[dict[str, int], int]:
    """Return an offset for each tensor by name, and the bytes of all.

    Tensors that are never alive at the same time may share memory. The largest is placed first, each at the lowest
    offset that is free while it lives.
    """
    placed: list[tuple[Life, int]] = []
    for life in sorted(lives, key=lambda life: (-life.bytes, life.first, life.name)):
        taken = sorted(
            (offset, offset + pages(other.bytes))
            for other, offset in placed
            if other.first <= life.last and life.first <= other.last
        )
        offset = 0
        for start, end in taken:
            if offset + pages(life.bytes) <= start:
                break
            offset = max(offset, end)
        placed.append((life, offset))
    end = max((offset + pages(life.bytes) for life, offset in placed), default=0)
    return {life.name: offset for life, offset in placed}, end
