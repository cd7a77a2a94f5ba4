"""The micro-ops of programs, and the counted loops of their GEMMs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.loops import LOOPS, extents
from hilt.schedule.plan import Plans
from hilt.schedule.segments import divided, ragged, starts
from hilt.schedule.steps import Steps
from hilt.schedule.tiling import IntArray, Tiling
from hilt.vta.isa import uop_words

_B, _CO, _H, _W, _CI, _KH, _KW = range(len(LOOPS))
_Shard = tuple[IntArray, IntArray, IntArray, IntArray, IntArray]
"""Micro-ops: their program, their place in it, and the fields dst, src and wgt."""
_UNROLLED = (_W, _H, _CO, _B, _KW, _KH, _CI)
"""Loops from the innermost out: reduction loops outside, spatial loops inside (hilt.schedule.loops)."""


@dataclass(frozen=True)
class MicroOps:
    """All micro-ops of programs, one program after another.

    In the order in which a program's lie: one for each place of an accumulator, which names its start; for the
    bias, an image each for every place and channel tile that occur together; and the GEMM's sets, one for each
    combination of places and shape of tile that occurs. Where they begin counts from the start of their program.
    """

    words: NDArray[np.uint32]
    counts: IntArray
    """(programs,)"""
    bias_begin: IntArray
    """(tiles,) Where the bias's begin."""
    gemm_begin: IntArray
    """(sets,) Where each set begins."""
    gemm_end: IntArray
    """(sets,)"""
    gemm_shape: IntArray
    """(sets,) The shape of tile that it is for."""
    gemm_set: IntArray
    """(steps,) The set that each step's GEMM runs."""


@dataclass(frozen=True)
class TileLoops:
    """The GEMMs of whole tiles: `factors` (shapes,) are iter_out, iter_in and the six factors.

    `dst`, `src` and `wgt` are the micro-ops' fields, counted from where the tile's operands begin, one shape's
    after another's.
    """

    factors: dict[str, IntArray]
    counts: IntArray
    """(shapes,) Micro-ops of each; none of a shape that there is not."""
    dst: IntArray
    src: IntArray
    wgt: IntArray


def micro_ops(plans: Plans, steps: Steps, shape_of_tile: IntArray, wrap: bool) -> tuple[MicroOps, TileLoops]:
    """Return the micro-ops of programs, and the loops of each shape of tile.

    `shape_of_tile` (tiles,) counts in plans.shapes. With `wrap`, fields keep their low bits.
    """
    tiling, problem, tiles = plans.tiling, plans.problem, steps.tiles
    first, acc = problem.bias_elements, tiling.acc_elements
    counts = tiling.acc_places
    program, place = ragged(counts)
    nothing = np.zeros(len(place), dtype=np.int64)
    shards = [(program, place, first + place * acc.take(program), nothing, nothing)]
    bias_begin = nothing[:0]
    if problem.workload.bias:
        added, bias_begin, counts = _bias_additions(plans, steps, counts)
        shards.append(added)

    threads = tiling.threads
    wgt_places = np.where(plans.resident, tiling.weight_boxes, threads)
    of_tile = shape_of_tile % plans.kinds * tiling.acc_places.take(tiles.program) + steps.acc_place
    code = of_tile.take(steps.tile) * threads.take(steps.program) + steps.inp_place
    code = code * wgt_places.take(steps.program) + steps.wgt_place
    program, code, gemm_set = _occurring(plans.kinds * tiling.acc_places * threads * wgt_places, steps.program, code)
    code, wgt_place = divided(code, wgt_places.take(program))
    code, inp_place = divided(code, threads.take(program))
    kind, acc_place = divided(code, tiling.acc_places.take(program))
    shape = program * plans.kinds + kind
    loops = tile_loops(plans)
    lengths = loops.counts.take(shape)
    begin, counts = _laid(program, lengths, counts)
    which, number = ragged(lengths)
    entry = starts(loops.counts).take(shape).take(which) + number
    shards.append(
        (
            program.take(which),
            begin.take(which) + number,
            (first + acc_place * acc.take(program)).take(which) + loops.dst.take(entry),
            (inp_place * tiling.inp_elements.take(program)).take(which) + loops.src.take(entry),
            (wgt_place * tiling.wgt_elements.take(program)).take(which) + loops.wgt.take(entry),
        )
    )
    of, where, dst, src, wgt = (np.concatenate(columns) for columns in zip(*shards, strict=True))
    packed = problem.accelerator.formats.uop.pack({"dst": dst, "src": src, "wgt": wgt}, len(of), wrap)
    words = np.empty_like(packed)
    words[starts(counts).take(of) + where] = packed
    return MicroOps(
        uop_words(words, problem.accelerator), counts, bias_begin, begin, begin + lengths, shape, gemm_set
    ), loops


def _bias_additions(plans: Plans, steps: Steps, filled: IntArray) -> tuple[_Shard, IntArray, IntArray]:
    """Return the bias's micro-ops behind the `filled` (programs,) ones, where each tile's begin, and the new counts.

    The bias lies before the first accumulator, an element for each channel block.
    """
    tiling, tiles = plans.tiling, steps.tiles
    pair = steps.acc_place * tiling.co_tiles.take(tiles.program) + tiles.co
    program, pair, number = _occurring(tiling.acc_places * tiling.co_tiles, tiles.program, pair)
    begin, counts = _laid(program, tiling.batch.take(program), filled)
    which, image = ragged(tiling.batch.take(program))
    program, pair = program.take(which), pair.take(which)
    place, channel = divided(pair, tiling.co_tiles.take(program))
    of_image = place * tiling.acc_elements.take(program) + image * (tiling.acc_elements // tiling.batch).take(program)
    src = channel * tiling.co.take(program)
    added = program, begin.take(which) + image, plans.problem.bias_elements + of_image, src, np.zeros_like(src)
    return added, begin.take(number), counts


def _occurring(sizes: IntArray, program: IntArray, code: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the codes that occur in each program, ascending.

    Their program and the code itself; and of every `code` given, which of those it is.

    A program's codes are below its `sizes` (programs,).
    """
    start = starts(sizes)
    place = start.take(program) + code
    there = np.zeros(int(sizes.sum()), dtype=np.bool_)
    there[place] = True
    found = np.flatnonzero(there)
    number = np.empty(len(there), dtype=np.int64)  # only where a code occurs
    number[found] = np.arange(len(found))
    of = np.searchsorted(start, found, side="right") - 1
    return of, found - start.take(of), number.take(place)


def _laid(program: IntArray, lengths: IntArray, filled: IntArray) -> tuple[IntArray, IntArray]:
    """Return the start of each set in its program, after the `filled` (programs,) present ones, and the new counts."""
    begin = starts(lengths)
    added = np.bincount(program, weights=lengths, minlength=len(filled)).astype(np.int64)
    return begin - (starts(added) - filled).take(program), filled + added


def tile_loops(plans: Plans) -> TileLoops:
    """Return the loops of every shape of tile."""
    extent = extents(plans.shapes)
    strides = _strides(plans.shapes)
    rows = np.arange(len(extent))
    factors = {"iter_out": extent[rows, plans.out], "iter_in": extent[rows, plans.into]}
    for name, counted in (("out", plans.out), ("in", plans.into)):
        steps = np.where(extent[rows, counted] > 1, strides[:, rows, counted], 0)
        factors |= {f"{index}_factor_{name}": step for index, step in zip(("dst", "src", "wgt"), steps, strict=True)}
    extent[rows, plans.out] = extent[rows, plans.into] = 1
    counts = np.where(plans.exists, extent.prod(axis=1), 0)
    shape, rest = ragged(counts)
    offsets = np.zeros((len(strides), len(rest)), dtype=np.int64)
    several = extent.max(axis=0) > 1
    for loop in _UNROLLED:
        if several[loop]:
            rest, turn = divided(rest, extent[:, loop].take(shape))
            offsets += turn * strides[:, :, loop].take(shape, axis=1)
    dst, src, wgt = offsets
    return TileLoops(factors, counts, dst, src, wgt)


def _strides(shapes: Tiling) -> IntArray:
    """Return the steps of a micro-op's dst, src and wgt for one turn of a tile's loops, in elements.

    (3, shapes, loops).
    """
    problem = shapes.problem
    pixels, box = shapes.height * shapes.width, shapes.box_height * shapes.box_width
    strides = np.zeros((3, len(box), len(LOOPS)), dtype=np.int64)
    dst, src, wgt = strides
    dst[:, _B], dst[:, _CO], dst[:, _H], dst[:, _W] = shapes.co * pixels, pixels, shapes.width, 1
    src[:, _B], src[:, _CI] = shapes.inp_channels * box, box
    src[:, _CO] = box if problem.block_by_block else 0
    src[:, _H], src[:, _W] = problem.box_row_stride * shapes.box_width, problem.workload.stride[1]
    down, across = problem.workload.dilation
    src[:, _KH], src[:, _KW] = down * shapes.box_width, across
    wgt[:, _CO], wgt[:, _CI] = shapes.ci * problem.taps, problem.taps
    wgt[:, _KH], wgt[:, _KW] = problem.workload.kernel[1], 1
    return strides
