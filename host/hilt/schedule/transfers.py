"""Boxes of a tensor in memory as LOADs and STOREs, which move one two-dimensional block each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilt.schedule.segments import divided, ragged
from hilt.schedule.tiling import IntArray

Pads = tuple[IntArray, IntArray]
"""Zero elements before and after (boxes,)."""

_LEVELS = 4
"""The dimensions of a four-dimensional box: x, y, and the rest as separate transfers."""


@dataclass(frozen=True)
class DmaTransfers:
    """The transfers of boxes: how many each takes, and their sizes (boxes,), which are the same for all of a box.

    And of one box after another the offsets in elements (moves,) from the box's start on chip and in memory.
    """

    counts: IntArray
    y_size: IntArray
    x_size: IntArray
    x_stride: IntArray
    y_pads: Pads
    x_pads: Pads
    sram_offset: IntArray
    dram_offset: IntArray

    @property
    def fields(self) -> dict[str, IntArray]:
        """Return the fields of the instructions, except their start."""
        return {
            "y_size": self.y_size,
            "x_size": self.x_size,
            "x_stride": self.x_stride,
            "y_pad_0": self.y_pads[0],
            "y_pad_1": self.y_pads[1],
            "x_pad_0": self.x_pads[0],
            "x_pad_1": self.x_pads[1],
        }


def fold(
    dimensions: Sequence[tuple[IntArray, int | IntArray]], largest_stride: int, y_pads: Pads, x_pads: Pads
) -> DmaTransfers:
    """Return the fewest moves of each of some boxes.

    The boxes are (counts (boxes,), stride or strides) from the outermost dimension in. The two innermost are
    padded, and the
    innermost has stride 1.
    """
    *outer, (rows, row_stride), (columns, _) = dimensions
    y_padding, x_padding = y_pads[0] + y_pads[1], x_pads[0] + x_pads[1]
    y_padded = y_padding > 0
    boxes = np.arange(len(rows))
    # Level 0 is x, level 1 is y, the others are moves; `level` is the outermost that a box has so far.
    count = np.ones((_LEVELS, len(rows)), dtype=np.int64)
    stride = np.zeros_like(count)
    count[0], stride[0] = columns, 1
    count[1], stride[1] = np.where(y_padded, rows, 1), row_stride
    level = y_padded.astype(np.int64)
    closed = y_padded | (x_padding > 0)
    for extent, step in ((np.where(y_padded, 1, rows), row_stride), *reversed(outer)):
        adding = extent > 1
        innermost, apart = count[level, boxes], stride[level, boxes]
        spans = (innermost * apart == step) & ~closed
        level = level + (adding & ~spans)
        count[level, boxes] = np.where(adding, np.where(spans, innermost, 1) * extent, innermost)
        stride[level, boxes] = np.where(adding & ~spans, step, apart)
        closed &= ~adding

    x_size, x_stride = count[0], np.where(count[1] > 1, stride[1], 0)
    far = x_stride > largest_stride
    y_size = np.where(far, 1, count[1])
    loops = ((np.where(far, count[1], 1), stride[1]), *zip(count[2:], stride[2:], strict=True))
    counts = np.where(far, count[1], 1) * count[2:].prod(axis=0)
    box, number = ragged(counts)
    block = (y_padding + y_size) * (x_padding + x_size)
    dram_offset, rest = np.zeros(len(box), dtype=np.int64), number
    for extent, step in loops:
        if (extent > 1).any():
            rest, turn = divided(rest, extent.take(box))
            dram_offset += turn * step.take(box)
    return DmaTransfers(
        counts,
        y_size,
        x_size,
        np.where(far, 0, x_stride),
        y_pads,
        x_pads,
        sram_offset=number * block.take(box),
        dram_offset=dram_offset,
    )
