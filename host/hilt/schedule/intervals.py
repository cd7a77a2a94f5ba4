"""Position and padding of the tiles' input boxes along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hilt.schedule.segments import ragged, starts
from hilt.schedule.tiling import IntArray, Tiling


@dataclass(frozen=True)
class Intervals:
    """The intervals of the tiles along each axis, arrays over lines.

    The rows of each program, then the columns of each.
    """

    tiles: IntArray
    """(lines,)"""
    first: IntArray
    """The first row (column) of the input in each box; this and `kind` line by line and tile by tile."""
    kind: IntArray
    """The index of the box's interval in its line."""
    kinds: IntArray
    """(lines,) Spans of each."""
    spans: IntArray
    """(3, spans) The different boxes of each line, line by line: how many rows (columns), and how many of them lie
    before and after the input."""

    @classmethod
    def of(cls, tiling: Tiling) -> Self:
        problem, workload = tiling.problem, tiling.problem.workload
        tiles = np.concatenate((tiling.h_tiles, tiling.w_tiles))
        tile = np.concatenate((tiling.height, tiling.width))
        line, number = ragged(tiles)
        tile = tile.take(line)
        step = (problem.row_step, 1)  # every so many-th row of the input is loaded
        of_axis = np.array(
            [
                (workload.height, workload.width),
                (problem.out_height, problem.out_width),
                workload.reach,
                workload.stride,
                workload.padding,
                step,
            ]
        )
        size, out, reach, stride, padding, step = of_axis.take((line >= len(tiles) // 2).astype(np.int64), axis=1)
        start = number * tile * stride - padding
        box = (np.minimum(tile, out - number * tile) - 1) * (stride // step) + reach
        before = np.minimum(np.maximum(-(start // step), 0), box)
        after = np.minimum(np.maximum(box + (start - size) // step, 0), box - before)
        radix = int(box.max()) + 1
        code = ((line * radix + box) * radix + before) * radix + after
        _, where, kind = np.unique(code, return_index=True, return_inverse=True)
        kinds = np.bincount(line.take(where), minlength=len(tiles))
        spans = np.stack((box, before, after)).take(where, axis=1)
        return cls(tiles, start + before * step, kind - starts(kinds).take(line), kinds, spans)

    def at(self, line: IntArray, number: IntArray) -> IntArray:
        """Return the place of a line's tile in `first` and `kind`, by its number along the axis."""
        return starts(self.tiles).take(line) + number

    @property
    def pairs(self) -> IntArray:
        """(programs,) Pairs of a span of rows and one of columns."""
        rows, columns = self.kinds.reshape(2, -1)
        return rows * columns
