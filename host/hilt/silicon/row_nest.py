"""GEMM kernels that follow the rows of an output tile and leave out every product with padding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from hilt.silicon.packed_task import PackedTask
from hilt.silicon.tvm_nest import Loop, TvmKernel

_RESET_MICRO_OPS = 512


@dataclass(frozen=True)
class RowTile:
    """Output rows of a tile over the full width, and blocks of output and input channels of a step."""

    height: int
    co: int
    ci: int


@dataclass(frozen=True)
class InputRows:
    """Rows of the input on chip for the output rows from `first_output` on: no padding among them."""

    first: int
    count: int
    first_output: int


def input_rows(task: PackedTask, tile: RowTile, number: int) -> InputRows:
    """Return the rows of the input that tile `number` of the rows needs."""
    start = number * tile.height * task.slide[0] - task.pads[0]
    end = start + (tile.height - 1) * task.slide[0] + task.kernel[0]
    first = max(start, 0)
    return InputRows(first, min(end, task.input_size[0]) - first, number * tile.height)


def row_kernels(task: PackedTask, tile: RowTile, rows: InputRows) -> Iterator[TvmKernel]:
    """Yield a kernel for each run of output rows that meet the same rows of the kernel.

    Rows and the longer of the channel loops are iterations; everything else is micro-ops, columns fastest.
    """
    taps = [_taps(task, rows, rows.first_output + row) for row in range(tile.height)]
    width, columns = task.input_size[1], task.output_size[1]
    plane = rows.count * width
    kernel_taps = task.kernel[0] * task.kernel[1]
    ci = Loop(tile.ci, 0, plane, kernel_taps)
    co = Loop(tile.co, tile.height * columns, 0, tile.ci * kernel_taps)
    inner, unrolled = (ci, co) if tile.ci >= tile.co else (co, ci)
    for (low, high), run in groupby(range(tile.height), key=taps.__getitem__):
        members = list(run)
        first = members[0]
        top = (rows.first_output + first) * task.slide[0] - task.pads[0] - rows.first
        uops = tuple(
            (
                first * columns + x + turn * unrolled.dst,
                (top + kh) * width + x * task.slide[1] - task.pads[1] + kw + turn * unrolled.src,
                kh * task.kernel[1] + kw + turn * unrolled.wgt,
            )
            for kh in range(low, high)
            for kw in range(task.kernel[1])
            for turn in range(unrolled.extent)
            for x in range(columns)
            if 0 <= x * task.slide[1] - task.pads[1] + kw < width
        )
        outer = Loop(len(members), columns, task.slide[0] * width, 0)
        yield TvmKernel(outer, inner, uops)


def _taps(task: PackedTask, rows: InputRows, output_row: int) -> tuple[int, int]:
    """Rows of the kernel, from and to, that meet the input at this row of the output."""
    top = output_row * task.slide[0] - task.pads[0]
    return max(-top, 0), min(task.kernel[0], task.input_size[0] - top)


def reset_rows(elements: int) -> TvmKernel:
    """Return the reset of consecutive accumulators, in few iterations of many micro-ops."""
    count = max(size for size in range(1, min(elements, _RESET_MICRO_OPS) + 1) if elements % size == 0)
    return TvmKernel(Loop(1), Loop(elements // count, count), tuple((place, 0, 0) for place in range(count)))


def clip_rows(elements: int) -> TvmKernel:
    """Return one ALU pass over consecutive accumulators."""
    return TvmKernel(Loop(1), Loop(elements, 1, 1), ((0, 0, 0),))
