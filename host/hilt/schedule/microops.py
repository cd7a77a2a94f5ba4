"""The micro-ops of a program, and the counted loops of its GEMM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.loops import LOOPS
from hilt.schedule.plan import Plan, Shape
from hilt.schedule.steps import Steps
from hilt.schedule.tiling import IntArray, Problem
from hilt.vta.isa import uop_words


@dataclass(frozen=True)
class MicroOps:
    """All micro-ops of a program, in the order in which they lie: one for each place of an accumulator, which names its
    start; for the bias, an image each for every place and channel tile that occur together; and the GEMM's sets, one
    for each combination of places and shape of tile that occurs."""

    words: NDArray[np.uint32]
    bias_begin: IntArray
    """(tiles,) Where the bias's begin."""
    gemm_begin: IntArray
    """(sets,) Where each set begins."""
    gemm_shape: IntArray
    """(sets,) The shape of tile that it is for."""
    gemm_set: IntArray
    """(steps,) The set that each step's GEMM runs."""


def micro_ops(
    plan: Plan, steps: Steps, shape_of_tile: IntArray, loops: list[TileLoops], wrap: bool
) -> MicroOps:
    """`loops` by shape of tile. With `wrap`, fields keep their low bits."""
    problem, sizes = plan.problem, plan.sizes
    places, batch = sizes.acc_places, sizes.batch
    acc, inp, wgt_box = sizes.acc_elements, sizes.inp_elements, sizes.wgt_elements
    first = problem.bias_elements
    nothing = np.zeros(places, dtype=np.int64)
    dst, src, wgt = [first + np.arange(places) * acc], [nothing], [nothing]
    filled = places
    bias_begin = nothing
    if problem.workload.bias:
        # The bias lies before the first accumulator, an element for each channel block.
        co_tiles = sizes.co_tiles
        pairs, number = np.unique(steps.acc_place * co_tiles + steps.tile_co, return_inverse=True)
        image = np.arange(batch) * (acc // batch)
        dst.append((first + (pairs // co_tiles)[:, None] * acc + image).ravel())
        src.append(np.repeat(pairs % co_tiles * sizes.co, batch))
        wgt.append(np.zeros(dst[-1].size, dtype=np.int64))
        bias_begin = filled + number * batch
        filled += dst[-1].size

    wgt_places = int(steps.wgt_place.max()) + 1
    inp_places = int(steps.inp_place.max()) + 1
    code = ((shape_of_tile * places + steps.acc_place)[steps.tile] * inp_places + steps.inp_place) * wgt_places
    code += steps.wgt_place
    sets = np.flatnonzero(np.bincount(code))
    number = np.empty(int(sets[-1]) + 1, dtype=np.int64)
    number[sets] = np.arange(len(sets))
    gemm_shape = sets // (wgt_places * inp_places * places)
    begins = []
    for shape, tile in enumerate(loops):
        mine = sets if len(loops) == 1 else sets[gemm_shape == shape]
        acc_place = mine // (wgt_places * inp_places) % places
        dst.append((first + acc_place[:, None] * acc + tile.dst).ravel())
        src.append(((mine // wgt_places % inp_places)[:, None] * inp + tile.src).ravel())
        wgt.append(((mine % wgt_places)[:, None] * wgt_box + tile.wgt).ravel())
        begins.append(filled + np.arange(len(mine)) * len(tile.dst))
        filled += dst[-1].size
    columns = {"dst": np.concatenate(dst), "src": np.concatenate(src), "wgt": np.concatenate(wgt)}
    packed = problem.accelerator.formats.uop.pack(columns, filled, wrap)
    words = uop_words(packed, problem.accelerator)
    return MicroOps(words, bias_begin, np.concatenate(begins), gemm_shape, number[code])


@dataclass(frozen=True)
class TileLoops:
    """The GEMM of one tile: `factors` are iter_out, iter_in and the six factors; `dst`, `src` and `wgt` (uops,) are the
    micro-ops' fields, counted from where the tile's operands begin."""

    factors: dict[str, int]
    dst: IntArray
    src: IntArray
    wgt: IntArray


def tile_loops(problem: Problem, shape: Shape) -> TileLoops:
    """Of tiles of this shape."""
    kernel_height, kernel_width = problem.workload.kernel
    sizes, out, into = shape
    height, width, ci, co = sizes.height, sizes.width, sizes.ci, sizes.co
    box_height, box_width = sizes.box_height, sizes.box_width
    extent = dict(zip(LOOPS, (sizes.batch, co, height, width, ci, kernel_height, kernel_width), strict=True))
    rows, columns = problem.box_row_stride, problem.workload.stride[1]
    box = box_height * box_width
    strides = {
        "dst": {"b": co * height * width, "co": height * width, "h": width, "w": 1},
        "src": {
            **{"b": sizes.inp_channels * box, "h": rows * box_width, "w": columns},
            **{"ci": box, "kh": box_width, "kw": 1, "co": box if problem.block_by_block else 0},
        },
        "wgt": {"co": ci * problem.taps, "ci": problem.taps, "kh": kernel_width, "kw": 1},
    }
    factors = {"iter_out": extent[out], "iter_in": extent[into]}
    offsets = {}
    # Reduction loops outside, spatial loops inside: see hilt.schedule.loops.
    unrolled = [
        loop for loop in ("ci", "kh", "kw", "b", "co", "h", "w") if loop not in (out, into) and extent[loop] > 1
    ]
    for index, stride in strides.items():
        factors[f"{index}_factor_out"] = stride.get(out, 0) if extent[out] > 1 else 0
        factors[f"{index}_factor_in"] = stride.get(into, 0) if extent[into] > 1 else 0
        offset = np.zeros(1, dtype=np.int64)
        for loop in unrolled:
            offset = (offset[:, None] + np.arange(extent[loop]) * stride.get(loop, 0)).ravel()
        offsets[index] = offset
    return TileLoops(factors, **offsets)
