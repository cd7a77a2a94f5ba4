"""Bytes, instructions and tokens of many configurations' programs, without lowering them.

The arithmetic is that of hilt.schedule.steps and hilt.schedule.transfers in closed formulas. It is exact if the
virtual
threads share the tiles (for grouped convolutions, those of a group) evenly; else a round that lacks a thread counts as
a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Analysis
from hilt.schedule.rows.checks import alus_of_tile
from hilt.schedule.rows.plans import RowPlans
from hilt.schedule.space import LOOP_ORDERS
from hilt.schedule.tiling import IntArray, Tiling, TilingProblem

BoolArray = NDArray[np.bool_]


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
    """Tokens from load to compute."""
    store_tokens: IntArray
    """Tokens from compute to store."""

    @property
    def bytes(self) -> IntArray:
        """Return the bytes of tensors only, without micro-ops and instructions."""
        return self.inp_bytes + self.wgt_bytes + self.bias_bytes + self.out_bytes

    @property
    def instructions(self) -> IntArray:
        """All of the program: with the LOADs of micro-ops and bias, and FINISH."""
        prologue = 1 + (self.bias_bytes > 0)
        return self.inp_loads + self.wgt_loads + self.gemms + self.alus + self.stores + prologue + 1


def traffic(analysis: Analysis) -> Traffic:
    """Return the traffic of every configuration's program, whether the configuration is accepted or not."""
    if analysis.rows is not None:
        return _row_traffic(analysis.rows)
    tiling = analysis.tiling
    problem = tiling.problem
    workload, parameters = problem.workload, problem.accelerator.parameters
    ones = np.ones_like(tiling.batch)
    rounds = _rounds(analysis)
    inp_loads, stores = _transfers(tiling)
    boxes = tiling.b_tiles * tiling.ci_steps * rounds.inp_passes
    real_rows, real_columns = (sum(axis.real for _, axis in _axis_tiles(tiling, number)) for number in (0, 1))
    weight_moves = _moves(problem, [(tiling.co, problem.ci * problem.taps), (tiling.ci * problem.taps, 1)])
    out_elements = problem.batch * problem.all_co * problem.out_height * problem.out_width
    inp_channels = problem.batch * tiling.inp_channels * tiling.ci_steps * rounds.inp_passes
    epilogue = int(workload.bias) + int(workload.shift > 0) + 2
    return Traffic(
        inp_boxes=boxes * tiling.h_tiles * tiling.w_tiles,
        wgt_boxes=rounds.wgt_boxes,
        inp_bytes=inp_channels * real_rows * real_columns * parameters.inp_element_bytes,
        wgt_bytes=rounds.wgt_boxes * tiling.wgt_elements * parameters.wgt_element_bytes,
        bias_bytes=ones * problem.bias_elements * parameters.acc_element_bytes,
        out_bytes=ones * out_elements * parameters.out_element_bytes,
        inp_loads=boxes * inp_loads,
        wgt_loads=rounds.wgt_boxes * weight_moves,
        gemms=tiling.tiles * (tiling.ci_steps + 1),
        alus=tiling.tiles * epilogue,
        stores=tiling.b_tiles * tiling.co_tiles * stores,
        load_tokens=rounds.load_tokens,
        store_tokens=tiling.tiles,
    )


def _row_traffic(plans: RowPlans) -> Traffic:
    tiling, problem = plans.tiling, plans.tiling.problem
    parameters = problem.accelerator.parameters
    ones = np.ones_like(plans.fold)
    out_elements = problem.batch * problem.all_co * problem.out_height * problem.out_width
    return Traffic(
        inp_boxes=plans.inp_boxes,
        wgt_boxes=plans.wgt_boxes,
        inp_bytes=plans.inp_elements * parameters.inp_element_bytes,
        wgt_bytes=plans.wgt_boxes * tiling.wgt_elements * parameters.wgt_element_bytes,
        bias_bytes=ones * problem.bias_elements * parameters.acc_element_bytes,
        out_bytes=ones * out_elements * parameters.out_element_bytes,
        inp_loads=plans.inp_loads,
        wgt_loads=plans.wgt_loads,
        gemms=plans.gemms + tiling.tiles,
        alus=tiling.tiles * alus_of_tile(plans),
        stores=plans.stores,
        load_tokens=plans.full_tiles * tiling.ci_steps,
        store_tokens=tiling.tiles,
    )


@dataclass(frozen=True)
class _Rounds:
    """Arrays (n,): how often each input box is loaded; how many weight boxes are; steps that load anything."""

    inp_passes: IntArray
    wgt_boxes: IntArray
    load_tokens: IntArray


_INP_LOOPS = {"b", "h", "w", "ci", "group"}
_WGT_LOOPS = {"group", "co", "ci"}


def _rounds(analysis: Analysis) -> _Rounds:
    tiling = analysis.tiling
    h, oc = tiling.h_threads, tiling.oc_threads
    counts, lanes_share = _round_loops(tiling)
    inp_lanes = np.where(lanes_share, h, h * oc)
    never = np.zeros_like(analysis.resident)
    passes, wgt_rounds, tokens = (np.zeros_like(h) for _ in range(3))
    for order, loops in LOOP_ORDERS.items():
        nest = [part for loop in loops for part in (("group", "co") if loop == "co" else (loop,))]
        inp = _load_turns(nest, counts, _INP_LOOPS, oc, never)
        wgt = _load_turns(nest, counts, _WGT_LOOPS, h, analysis.resident)
        inp_count, wgt_count = (np.prod([turns[loop] for loop in nest], axis=0) for turns in (inp, wgt))
        both = np.prod([np.minimum(inp[loop], wgt[loop]) for loop in nest], axis=0)
        either = np.where(lanes_share, h + oc - 1, h * oc)
        here = tiling.order == order
        passes = np.where(here, inp["group"] * inp["co"] * (inp_lanes // h), passes)
        wgt_rounds = np.where(here, wgt_count, wgt_rounds)
        found = both * either + (inp_count - both) * inp_lanes + (wgt_count - both) * oc
        tokens = np.where(here, found, tokens)
    return _Rounds(passes, wgt_rounds * oc, tokens)


def _round_loops(tiling: Tiling) -> tuple[dict[str, IntArray], BoolArray]:
    """Turns (n,) of each loop over rounds.

    And whether the threads of a round that differ in output channels have their input in common: in a grouped
    convolution those of one group.
    """
    problem = tiling.problem
    co_rounds = -(-tiling.co_tiles // tiling.oc_threads)
    if problem.groups == 1:
        groups, share = np.ones_like(co_rounds), np.ones_like(co_rounds, dtype=np.bool_)
    else:
        tiles_of_group = np.maximum(problem.co // tiling.co, 1)
        share = (tiles_of_group % tiling.oc_threads == 0) & (not problem.block_by_block)
        groups = np.where(share, problem.groups, co_rounds)
    counts = {
        "b": tiling.b_tiles,
        "h": -(-tiling.h_tiles // tiling.h_threads),
        "group": groups,
        "co": co_rounds // groups,
        "w": tiling.w_tiles,
        "ci": tiling.ci_steps,
    }
    return counts, share | (tiling.oc_threads == 1)


def _load_turns(
    nest: list[str], counts: dict[str, IntArray], needed: set[str], places: IntArray, resident: BoolArray
) -> dict[str, IntArray]:
    """Return for each loop the turns that load the operand which changes with the loops `needed`.

    A loop that does not change the operand loads in its first turns only, in two cases: all that its inner loops need
    stays in its slots, or all of it is resident. Data returns to the same slot if its number divides that of the slots.
    """
    turns = {}
    inside = np.ones_like(places)
    for loop in reversed(nest):
        count = counts[loop]
        if loop in needed:
            turns[loop] = count
            inside = inside * count
        else:
            first = np.where((inside == 1) | resident, 1, np.minimum(count, places // inside))
            turns[loop] = np.where((places % inside == 0) | resident, first, count)
    return turns


@dataclass(frozen=True)
class _Axis:
    """Tiles of one size along height or width, arrays (n,)."""

    real: IntArray
    """Rows (columns) of the input loaded, over all tiles."""
    inside: IntArray
    """Tiles whose box needs no padding along the axis."""
    padded: IntArray
    """Tiles whose box is padded in part."""
    outside: IntArray
    """Tiles whose box is all padding."""

    @property
    def tiles(self) -> IntArray:
        return self.inside + self.padded + self.outside


def _axis_tiles(tiling: Tiling, axis: int) -> list[tuple[IntArray, _Axis]]:
    """Sizes (n,) of output tiles along an axis, and the tiles of that size: the whole ones and a smaller last one."""
    problem = tiling.problem
    sizes = (tiling.height, tiling.width)[axis]
    out = (problem.out_height, problem.out_width)[axis]
    whole, last = np.empty((2, 4, len(sizes)), dtype=np.int64)
    for tile in np.unique(sizes).tolist():
        chosen = sizes == tile
        whole[:, chosen] = _tiles_along(problem, axis, tile, np.arange(out // tile) * tile)[:, None]
        rest = out % tile
        starts = np.arange(out // tile * tile, out, tile)
        last[:, chosen] = _tiles_along(problem, axis, max(rest, 1), starts)[:, None]
    return [(sizes, _Axis(*whole)), (np.maximum(out % sizes, 1), _Axis(*last))]


def _tiles_along(problem: TilingProblem, axis: int, tile: int, starts: IntArray) -> IntArray:
    """Return the fields of _Axis (4,) for tiles of one size that begin at these outputs."""
    workload = problem.workload
    size, stride = (workload.height, workload.width)[axis], workload.stride[axis]
    step = problem.row_step if axis == 0 else 1
    box = int((problem.box_height, problem.box_width)[axis](np.array(tile)))
    first = starts * stride - workload.padding[axis]
    before = np.clip(-(first // step), 0, box)
    after = np.clip(box + (first - size) // step, 0, box - before)
    real = box - before - after
    inside, outside = real == box, real == 0
    return np.array([real.sum(), inside.sum(), (~inside & ~outside).sum(), outside.sum()], dtype=np.int64)


def _transfers(tiling: Tiling) -> tuple[IntArray, IntArray]:
    """LOADs of the input boxes, and STOREs of the output tiles, of one pass over rows and columns."""
    problem = tiling.problem
    workload = problem.workload
    plane, out_plane = workload.height * workload.width, problem.out_height * problem.out_width
    inp_outer = [(tiling.batch, problem.all_ci * plane), (tiling.inp_channels, plane)]
    out_outer = [(tiling.batch, problem.all_co * out_plane), (tiling.co, out_plane)]
    channels = tiling.batch * tiling.inp_channels
    loads, stores = np.zeros_like(channels), np.zeros_like(channels)
    for height, rows in _axis_tiles(tiling, 0):
        row = (problem.box_height(height), problem.row_step * workload.width)
        for width, columns in _axis_tiles(tiling, 1):
            column = (problem.box_width(width), 1)
            loads += rows.inside * columns.inside * _moves(problem, [*inp_outer, row, column])
            loads += rows.inside * columns.padded * _moves(problem, [*inp_outer, row], columns_apart=True)
            loads += rows.padded * (columns.inside + columns.padded) * channels
            loads += rows.outside * columns.tiles + (rows.inside + rows.padded) * columns.outside
            moves = _moves(problem, [*out_outer, (height, problem.out_width), (width, 1)])
            stores += rows.tiles * columns.tiles * moves
    return loads, stores


def _moves(problem: TilingProblem, dimensions: list[tuple[IntArray, int]], *, columns_apart: bool = False) -> IntArray:
    """Return the number of instructions (n,) of one box.

    The box is (count, stride) from the outermost dimension in, as hilt.schedule.transfers.fold makes them.
    `columns_apart`: padded columns are a further innermost dimension that merges with none.
    """
    limit = problem.accelerator.formats.memory.by_name["x_stride"].high
    ones = np.ones_like(dimensions[0][0])
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
