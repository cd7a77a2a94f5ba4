"""What the programs of many configurations move and issue, without lowering them: the arithmetic of hilt.schedule.steps
and hilt.schedule.transfers in closed form.

Exact where the virtual threads share the tiles evenly; else a group that lacks a thread is counted as a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt.schedule.checks import Analysis
from hilt.schedule.tiling import IntArray, Tiling


@dataclass(frozen=True)
class Traffic:
    """Arrays (n,) over configurations. Boxes are loads of one tile's operand, each of one or more instructions."""

    inp_boxes: IntArray
    wgt_boxes: IntArray
    inp_bytes: IntArray
    wgt_bytes: IntArray
    bias_bytes: IntArray
    out_bytes: IntArray
    inp_loads: IntArray
    """LOAD instructions of inputs; and so on."""
    wgt_loads: IntArray
    gemms: IntArray
    """Resets included."""
    alus: IntArray
    stores: IntArray
    load_tokens: IntArray
    """From load to compute."""
    store_tokens: IntArray
    """From compute to store."""

    @property
    def bytes(self) -> IntArray:
        """Tensors only: what micro-ops and instructions take is not among them."""
        return self.inp_bytes + self.wgt_bytes + self.bias_bytes + self.out_bytes

    @property
    def instructions(self) -> IntArray:
        """All of the program: with the LOADs of micro-ops and bias, and FINISH."""
        prologue = 1 + (self.bias_bytes > 0)
        return self.inp_loads + self.wgt_loads + self.gemms + self.alus + self.stores + prologue + 1


def traffic(analysis: Analysis) -> Traffic:
    """Of every configuration, accepted or not: what its program would move if it were lowered."""
    tiling = analysis.tiling
    problem = tiling.problem
    workload, parameters = problem.workload, problem.accelerator.parameters
    ones = np.ones_like(tiling.batch)

    # Loops over rounds, outermost first; for each operand how often each is gone through with new loads.
    rounds = np.stack(
        [
            tiling.b_tiles,
            -(-tiling.h_tiles // tiling.h_threads),
            -(-tiling.co_tiles // tiling.oc_threads),
            tiling.w_tiles,
            tiling.ci_steps,
        ]
    )
    inp_rounds, wgt_rounds = _load_rounds(analysis, rounds)
    inp_count, wgt_count = inp_rounds.prod(axis=0), wgt_rounds.prod(axis=0)
    both = np.minimum(inp_rounds, wgt_rounds).prod(axis=0)
    h, oc = tiling.h_threads, tiling.oc_threads
    load_tokens = both * (h + oc - 1) + (inp_count - both) * h + (wgt_count - both) * oc

    passes = inp_rounds[2]
    rows, columns = _Axis.of(tiling, 0), _Axis.of(tiling, 1)
    tiles = tiling.tiles
    wgt_boxes = wgt_count * oc
    weight_moves = _moves(tiling, [(tiling.co, problem.ci * problem.taps), (tiling.ci * problem.taps, 1)])
    plane, out_plane = workload.height * workload.width, problem.out_height * problem.out_width
    box_loads = _box_loads(tiling, rows, columns, plane)
    out_moves = _moves(
        tiling,
        [
            (tiling.batch, problem.co * out_plane),
            (tiling.co, out_plane),
            (tiling.height, problem.out_width),
            (tiling.width, 1),
        ],
    )
    epilogue = int(workload.bias) + int(workload.shift > 0) + 2
    return Traffic(
        inp_boxes=tiling.b_tiles * tiling.h_tiles * tiling.w_tiles * tiling.ci_steps * passes,
        wgt_boxes=wgt_boxes,
        inp_bytes=problem.batch * problem.ci * rows.real * columns.real * passes * parameters.inp_element_bytes,
        wgt_bytes=wgt_boxes * tiling.wgt_elements * parameters.wgt_element_bytes,
        bias_bytes=ones * problem.bias_elements * parameters.acc_element_bytes,
        out_bytes=ones * problem.batch * problem.co * out_plane * parameters.out_element_bytes,
        inp_loads=tiling.b_tiles * tiling.ci_steps * passes * box_loads,
        wgt_loads=wgt_boxes * weight_moves,
        gemms=tiles * (tiling.ci_steps + 1),
        alus=tiles * epilogue,
        stores=tiles * out_moves,
        load_tokens=load_tokens,
        store_tokens=tiles,
    )


def _load_rounds(analysis: Analysis, rounds: IntArray) -> tuple[IntArray, IntArray]:
    """Of the loops b, h, co, w, ci (5, n): how many turns of each load inputs, and weights. A loop whose turns all need
    what is still in its places loads in its first turn only."""
    tiling = analysis.tiling
    inp, wgt = rounds.copy(), rounds.copy()
    b, h, co, w, ci = range(5)
    inp[co] = np.where(rounds[w] * rounds[ci] <= tiling.oc_threads, 1, rounds[co])
    wgt[w] = np.where(rounds[ci] <= tiling.h_threads, 1, rounds[w])
    kept = analysis.resident | (rounds[co] * rounds[ci] <= tiling.h_threads)
    for loop in (b, h, w):
        wgt[loop] = np.where(kept, 1, wgt[loop])
    return inp, wgt


@dataclass(frozen=True)
class _Axis:
    """The tiles along height or width, arrays (n,)."""

    real: IntArray
    """Rows (columns) of the input loaded, over all tiles."""
    inside: IntArray
    """Tiles whose box needs no padding along the axis."""
    padded: IntArray
    """Tiles whose box is padded in part."""
    outside: IntArray
    """Tiles whose box is all padding."""

    @classmethod
    def of(cls, tiling: Tiling, axis: int) -> _Axis:
        tiles, box_sizes = (tiling.height, tiling.width)[axis], (tiling.box_height, tiling.box_width)[axis]
        counts = (tiling.h_tiles, tiling.w_tiles)[axis]
        workload = tiling.problem.workload
        size, stride = (workload.height, workload.width)[axis], workload.stride[axis]
        step = tiling.problem.row_step if axis == 0 else 1
        found = np.empty((4, len(tiles)), dtype=np.int64)
        for tile in np.unique(tiles).tolist():
            chosen = tiles == tile
            box = int(box_sizes[chosen][0])
            start = np.arange(int(counts[chosen][0])) * (tile * stride) - workload.padding[axis]
            before = np.clip(-(start // step), 0, box)
            after = np.clip(box + (start - size) // step, 0, box - before)
            real = box - before - after
            inside, outside = real == box, real == 0
            sums = (real.sum(), inside.sum(), (~inside & ~outside).sum(), outside.sum())
            found[:, chosen] = np.array(sums)[:, None]
        return cls(*found)


def _box_loads(tiling: Tiling, rows: _Axis, columns: _Axis, plane: int) -> IntArray:
    """LOADs of the input boxes of one pass over rows and columns."""
    problem = tiling.problem
    outer = [(tiling.batch, problem.ci * plane), (tiling.ci, plane)]
    row, column = (tiling.box_height, problem.row_step * problem.workload.width), (tiling.box_width, 1)
    channels = tiling.batch * tiling.ci
    loads: IntArray = (
        rows.inside * columns.inside * _moves(tiling, [*outer, row, column])
        + rows.inside * columns.padded * _moves(tiling, [*outer, row], columns_apart=True)
        + rows.padded * (columns.inside + columns.padded) * channels
        + rows.outside * (columns.inside + columns.padded + columns.outside)
        + (rows.inside + rows.padded) * columns.outside
    )
    return loads


def _moves(
    tiling: Tiling, dimensions: list[tuple[IntArray, int]], *, columns_apart: bool = False
) -> IntArray:
    """Instructions (n,) of one box of (count, stride) from the outermost dimension in, as hilt.schedule.transfers.fold
    makes them. `columns_apart`: padded columns are a further innermost dimension that merges with none."""
    limit = tiling.problem.accelerator.formats.memory.by_name["x_stride"].high
    ones = np.ones_like(tiling.batch)
    total = last = last_stride = second = second_stride = ones
    some = np.zeros_like(ones, dtype=np.bool_)
    for count, stride in dimensions:
        real = count > 1
        merged = real & some & (last_stride == count * stride)
        new = real & ~merged
        second, second_stride = np.where(new, last, second), np.where(new, last_stride, second_stride)
        last = np.where(merged, last * count, np.where(new, count, last))
        last_stride = np.where(real, stride, last_stride)
        some = some | real
        total = total * count
    if columns_apart:
        row, row_stride, x = last, last_stride, ones
    else:
        unit = last_stride == 1
        x = np.where(unit, last, 1)
        row, row_stride = np.where(unit, second, last), np.where(unit, second_stride, last_stride)
    y: IntArray = np.where(row_stride > limit, 1, row)
    moves: IntArray = total // (x * y)
    return moves
