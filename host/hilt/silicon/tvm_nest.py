"""TVM's micro-op kernels: the two outermost loops of a nest become iterations, the others micro-ops."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hilt.silicon.packed_task import CONV2D_TRANSPOSE, DENSE, PackedTask, TaskError

_TRANSPOSED_ROWS, _TRANSPOSED_COLUMNS = 4, 2
"""A transposed convolution's schedule unrolls so many rows and columns of the output."""


@dataclass(frozen=True)
class Loop:
    """One loop and how far a turn of it moves in the accumulator, the input and the weight buffer."""

    extent: int
    dst: int = 0
    src: int = 0
    wgt: int = 0


@dataclass(frozen=True)
class TvmKernel:
    """Micro-ops (dst, src, wgt) and the two loops around them, of which either may be of one turn."""

    outer: Loop
    inner: Loop
    uops: tuple[tuple[int, int, int], ...]

    def at(self, dst: int, src: int, wgt: int) -> TvmKernel:
        """Return the kernel with these offsets in the buffers."""
        moved = tuple((first + dst, second + src, third + wgt) for first, second, third in self.uops)
        return TvmKernel(self.outer, self.inner, moved)


@dataclass(frozen=True)
class TvmTile:
    """Inner factors of the splits: rows, columns, blocks of input and of output channels."""

    height: int
    width: int
    ci: int
    co: int


def box_size(task: PackedTask, tile: TvmTile) -> tuple[int, int]:
    """Return the rows and columns of input that a tile of output needs."""
    return (
        (tile.height - 1) * task.slide[0] + task.kernel[0],
        (tile.width - 1) * task.slide[1] + task.kernel[1],
    )


def fold_loops(loops: list[Loop]) -> TvmKernel:
    """Return the kernel of a nest, outermost loop first; loops of one turn vanish."""
    left = [loop for loop in loops if loop.extent > 1]
    outer, inner, *rest = (*left, Loop(1), Loop(1)) if len(left) < 2 else left
    turns = itertools.product(*(range(loop.extent) for loop in rest))
    uops = tuple(
        (
            sum(loop.dst * turn for loop, turn in zip(rest, numbers, strict=True)),
            sum(loop.src * turn for loop, turn in zip(rest, numbers, strict=True)),
            sum(loop.wgt * turn for loop, turn in zip(rest, numbers, strict=True)),
        )
        for numbers in turns
    )
    return TvmKernel(outer, inner, uops)


def gemm_kernel(task: PackedTask, tile: TvmTile) -> TvmKernel:
    """Return the GEMM of one reduction step of a tile."""
    rows, columns = box_size(task, tile)
    taps = task.kernel[0] * task.kernel[1]
    ci = Loop(tile.ci, 0, rows * columns, taps)
    w = Loop(tile.width, 1, task.slide[1], 0)
    kw = Loop(task.kernel[1], 0, 1, 1)
    kh = Loop(task.kernel[0], 0, columns, task.kernel[1])
    co = Loop(tile.co, tile.height * tile.width, 0, tile.ci * taps)
    h = Loop(tile.height, tile.width, task.slide[0] * columns, 0)
    if task.kind != CONV2D_TRANSPOSE:
        return fold_loops([ci, w, kw, kh, co, h])
    rows_out, rows_in = _split(h, _TRANSPOSED_ROWS)
    columns_out, columns_in = _split(w, _TRANSPOSED_COLUMNS)
    return fold_loops([ci, columns_out, co, rows_out, columns_in, kw, kh, rows_in])


def reset_kernel(task: PackedTask, tile: TvmTile) -> TvmKernel:
    """Return the reset of a tile's accumulators."""
    w, h = Loop(tile.width, 1), Loop(tile.height, tile.width)
    co = Loop(tile.co, tile.height * tile.width)
    if task.kind != CONV2D_TRANSPOSE:
        return fold_loops([w, co, h])
    rows_out, rows_in = _split(h, _TRANSPOSED_ROWS)
    columns_out, columns_in = _split(w, _TRANSPOSED_COLUMNS)
    return fold_loops([columns_out, co, rows_out, columns_in, rows_in])


def alu_kernel(tile: TvmTile) -> TvmKernel:
    """Return one pass over a tile's accumulators: a micro-op and an iteration for each element."""
    return TvmKernel(Loop(1), Loop(tile.co * tile.height * tile.width, 1, 1), ((0, 0, 0),))


def _split(loop: Loop, inner: int) -> tuple[Loop, Loop]:
    if loop.extent % inner:
        raise TaskError(
            f"a transposed tile of {loop.extent} rows or columns is no multiple of {inner}; give one that is"
        )
    outside = Loop(loop.extent // inner, loop.dst * inner, loop.src * inner, loop.wgt * inner)
    return outside, Loop(inner, loop.dst, loop.src, loop.wgt)


def tile_of(task: PackedTask, knobs: dict[str, int]) -> TvmTile:
    """Return the tile of these knobs.

    Raises:
        TaskError: A factor is missing or divides nothing.
    """
    rows, columns = task.output_size
    given = {"tile_h": 1, "tile_w": 1, **knobs} if task.kind == DENSE else knobs
    extents = {"tile_ci": task.reduce_blocks, "tile_co": task.out_blocks, "tile_h": rows, "tile_w": columns}
    for name, extent in extents.items():
        factor = given.get(name)
        if factor is None or factor < 1 or extent % factor:
            raise TaskError(f"task {task.name}: {name} is {factor}; give a factor of {extent}")
    return TvmTile(given["tile_h"], given["tile_w"], given["tile_ci"], given["tile_co"])
