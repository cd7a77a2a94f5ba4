"""The GEMMs of one step of a row program: micro-ops, and the two loops around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hilt.schedule.rows.choices import FoldedLoop
from hilt.schedule.rows.geometry import Geometry, Span
from hilt.schedule.tiling import IntArray


@dataclass(frozen=True)
class RowLoop:
    """A loop's turns, and how far one moves in the accumulator, input and weight buffer."""

    extent: int
    dst: int = 0
    src: int = 0
    wgt: int = 0


@dataclass(frozen=True, eq=False)
class RowKernel:
    """Micro-ops `dst`, `src` and `wgt` (m,), counted from the start of the step's operands."""

    outer: RowLoop
    inner: RowLoop
    dst: IntArray
    src: IntArray
    wgt: IntArray


@dataclass(frozen=True)
class StepTile:
    """Rows, columns, and channel blocks of input and of output of a step."""

    height: int
    width: int
    ci: int
    co: int


def kernels(geometry: Geometry, tile: StepTile, rows: Span, columns: Span, fold: FoldedLoop) -> Iterator[RowKernel]:
    """Yield the GEMMs that leave out every product with padding.

    Taps are outermost in the micro-ops and columns innermost, so that updates of an element stay apart.
    """
    row_axis, column_axis = geometry.row_axis, geometry.column_axis
    taps = row_axis.kernel * column_axis.kernel
    ci = RowLoop(tile.ci, 0, rows.count * columns.count, taps)
    co = RowLoop(tile.co, tile.height * tile.width, 0, tile.ci * taps)
    if fold is FoldedLoop.ROWS:
        if rows.products:
            whole = [(kh, rows.outputs_of(kh)) for kh in range(row_axis.kernel)]
            yield RowKernel(ci, co, *_micro_ops(geometry, tile, rows, columns, whole, RowLoop(1)))
        return
    spelled, counted = (co, ci) if fold is FoldedLoop.OUTPUTS else (ci, co)
    step = row_axis.stride // row_axis.step * columns.count
    for first, length in rows.runs:
        low, end, _ = rows.taps[first]
        run = [(kh, range(first, first + 1)) for kh in range(low, end)]
        outer = RowLoop(length, tile.width, step, 0)
        yield RowKernel(outer, counted, *_micro_ops(geometry, tile, rows, columns, run, spelled))


def _micro_ops(
    geometry: Geometry,
    tile: StepTile,
    rows: Span,
    columns: Span,
    taps: list[tuple[int, range]],
    spelled: RowLoop,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return dst, src and wgt of the taps (row of the kernel, output rows), with another loop `spelled` out."""
    kernel_width = geometry.column_axis.kernel
    found: list[tuple[IntArray, IntArray, IntArray]] = []
    turns = np.arange(spelled.extent)[:, None, None]
    for kh, outputs in taps:
        y = np.array(outputs, dtype=np.int64)[None, :, None]
        row = np.array([rows.taps[place][2] for place in outputs], dtype=np.int64)[None, :, None] + kh
        for kw, (x, column) in enumerate(columns.meetings):
            dst = turns * spelled.dst + y * tile.width + x
            src = turns * spelled.src + row * columns.count + column
            wgt = (turns * spelled.wgt + (kh * kernel_width + kw)).repeat(dst[0].size)
            found.append((dst.ravel(), src.ravel(), wgt))
    dst, src, wgt = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return dst, src, wgt
