"""Boxes of a tensor in memory as LOADs and STOREs, which move one two-dimensional block each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from hilt.schedule.tiling import IntArray

Pads = tuple[int, int]
"""Zero elements before and after."""


@dataclass(frozen=True, eq=False)  # equal ones are the same one: see fold
class Moves:
    """A box's transfers: offsets in elements (moves,) from the box's start on chip and in memory, and the sizes, which
    are the same for all."""

    sram_offset: IntArray
    dram_offset: IntArray
    y_size: int
    x_size: int
    x_stride: int
    y_pads: Pads = (0, 0)
    x_pads: Pads = (0, 0)

    @cached_property
    def fields(self) -> dict[str, int]:
        return {
            "y_size": self.y_size,
            "x_size": self.x_size,
            "x_stride": self.x_stride,
            "y_pad_0": self.y_pads[0],
            "y_pad_1": self.y_pads[1],
            "x_pad_0": self.x_pads[0],
            "x_pad_1": self.x_pads[1],
        }


@lru_cache(maxsize=1024)  # the boxes of a space have few sizes
def fold(
    dimensions: tuple[tuple[int, int], ...], largest_stride: int, y_pads: Pads = (0, 0), x_pads: Pads = (0, 0)
) -> Moves:
    """The fewest moves of a box of (count, stride) from the outermost dimension in, the two innermost being padded.

    On chip the box is dense, pads included. Neighbours merge where the outer's stride spans the inner, but for padded
    dimensions; a stride beyond x_stride leaves one row a move.
    """
    *outer, rows, columns = dimensions
    if any(y_pads):
        merged = _merge(outer)
        y, x = rows, columns
    else:
        merged = _merge([*outer, rows, columns]) if not any(x_pads) else [*_merge([*outer, rows]), columns]
        x = merged.pop() if merged[-1][1] == 1 else (1, 1)
        y = merged.pop() if merged else (1, 0)
    if y[0] == 1:
        y = (1, 0)
    elif y[1] > largest_stride:
        merged.append(y)
        y = (1, 0)
    offsets = np.zeros(1, dtype=np.int64)
    for count, stride in merged:
        offsets = (offsets[:, None] + np.arange(count) * stride).ravel()
    block = (sum(y_pads) + y[0]) * (sum(x_pads) + x[0])
    return Moves(np.arange(len(offsets)) * block, offsets, y[0], x[0], y[1], y_pads, x_pads)


@lru_cache(maxsize=1024)
def zeros(elements: int) -> Moves:
    """One move that writes zeros only: a row of padding above no rows."""
    nothing = np.zeros(1, dtype=np.int64)
    return Moves(nothing, nothing, y_size=0, x_size=elements, x_stride=0, y_pads=(1, 0))


def _merge(dimensions: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without dimensions of one element, and with neighbours made one where they lie end to end."""
    merged: list[tuple[int, int]] = []
    for count, stride in dimensions:
        if count == 1:
            continue
        if merged and merged[-1][1] == count * stride:
            merged[-1] = (merged[-1][0] * count, stride)
        else:
            merged.append((count, stride))
    return merged or [(1, 1)]
