"""The micro-ops of a program, and the counted loops of its GEMM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Analysis
from hilt.schedule.loops import LOOPS
from hilt.schedule.steps import Steps
from hilt.schedule.tiling import IntArray
from hilt.vta.isa import uop_words


@dataclass(frozen=True)
class MicroOps:
    """All micro-ops of a program, in the order in which they lie: one for each lane, which names the start of its
    accumulator; for the bias, an image each for every lane and channel tile; and the GEMM's sets."""

    words: NDArray[np.uint32]
    bias_begin: int
    gemm_begin: IntArray
    """(sets,) Where each set begins."""
    gemm_uops: int
    """Micro-ops of a set."""
    gemm_set: IntArray
    """(steps,) The set that each step's GEMM runs: one for each combination of places that occurs."""


def micro_ops(analysis: Analysis, steps: Steps, loops: TileLoops) -> MicroOps:
    """Of the first configuration."""
    tiling = analysis.tiling
    problem = tiling.problem
    threads, batch = int(tiling.threads[0]), int(tiling.batch[0])
    bases = acc_bases(analysis)
    nothing = np.zeros(threads, dtype=np.int64)
    dst, src, wgt = [bases], [nothing], [nothing]
    bias_uops = 0
    if problem.workload.bias:
        # The bias lies before the first accumulator, an element for each channel block.
        places = (threads, int(tiling.co_tiles[0]), batch)
        image = np.arange(batch) * (tiling.acc_elements[0] // batch)
        channel = np.arange(places[1])[None, :, None] * tiling.co[0]
        dst.append(np.broadcast_to(bases[:, None, None] + image, places).ravel())
        src.append(np.broadcast_to(channel, places).ravel())
        bias_uops = dst[-1].size
        wgt.append(np.zeros(bias_uops, dtype=np.int64))

    wgt_places = int(steps.wgt_place.max()) + 1
    code = (steps.inp_place * wgt_places + steps.wgt_place) * threads + steps.lane
    sets = np.flatnonzero(np.bincount(code))
    number = np.empty(int(sets[-1]) + 1, dtype=np.int64)
    number[sets] = np.arange(len(sets))
    inp_place, wgt_place, lane = sets // threads // wgt_places, sets // threads % wgt_places, sets % threads
    dst.append((bases[lane][:, None] + loops.dst).ravel())
    src.append(((inp_place * tiling.inp_elements[0])[:, None] + loops.src).ravel())
    wgt.append(((wgt_place * tiling.wgt_elements[0])[:, None] + loops.wgt).ravel())

    columns = {"dst": np.concatenate(dst), "src": np.concatenate(src), "wgt": np.concatenate(wgt)}
    packed = problem.accelerator.formats.uop.pack(columns, len(columns["dst"]))
    per_set = len(loops.dst)
    begin = threads + bias_uops + np.arange(len(sets)) * per_set
    return MicroOps(uop_words(packed, problem.accelerator), threads, begin, per_set, number[code])


def acc_bases(analysis: Analysis) -> IntArray:
    """(threads,) Where each lane's accumulator begins."""
    tiling = analysis.tiling
    return tiling.problem.bias_elements + np.arange(int(tiling.threads[0])) * int(tiling.acc_elements[0])


@dataclass(frozen=True)
class TileLoops:
    """The GEMM of one tile: `factors` are iter_out, iter_in and the six factors; `dst`, `src` and `wgt` (uops,) are the
    micro-ops' fields, counted from where the tile's operands begin."""

    factors: dict[str, int]
    dst: IntArray
    src: IntArray
    wgt: IntArray


def tile_loops(analysis: Analysis) -> TileLoops:
    """Of the first configuration."""
    tiling = analysis.tiling
    problem = tiling.problem
    kernel_height, kernel_width = problem.workload.kernel
    height, width, ci, co = (int(size[0]) for size in (tiling.height, tiling.width, tiling.ci, tiling.co))
    box_height, box_width = int(tiling.box_height[0]), int(tiling.box_width[0])
    extent = dict(zip(LOOPS, (int(tiling.batch[0]), co, height, width, ci, kernel_height, kernel_width), strict=True))
    rows, columns = problem.box_row_stride, problem.workload.stride[1]
    box = box_height * box_width
    strides = {
        "dst": {"b": co * height * width, "co": height * width, "h": width, "w": 1},
        "src": {"b": ci * box, "h": rows * box_width, "w": columns, "ci": box, "kh": box_width, "kw": 1},
        "wgt": {"co": ci * problem.taps, "ci": problem.taps, "kh": kernel_width, "kw": 1},
    }
    out, into = LOOPS[int(analysis.loops.out[0])], LOOPS[int(analysis.loops.into[0])]
    factors = {"iter_out": extent[out], "iter_in": extent[into]}
    offsets = {}
    # Reduction loops outside, spatial loops inside: see hilt.schedule.loops.
    unrolled = [loop for loop in ("ci", "kh", "kw", "b", "co", "h", "w") if loop not in (out, into)]
    for index, stride in strides.items():
        factors[f"{index}_factor_out"] = stride.get(out, 0) if extent[out] > 1 else 0
        factors[f"{index}_factor_in"] = stride.get(into, 0) if extent[into] > 1 else 0
        offset = np.zeros(1, dtype=np.int64)
        for loop in unrolled:
            if extent[loop] > 1:
                offset = (offset[:, None] + np.arange(extent[loop]) * stride.get(loop, 0)).ravel()
        offsets[index] = offset
    return TileLoops(factors, **offsets)
