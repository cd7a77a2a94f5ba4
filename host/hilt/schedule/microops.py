"""The micro-ops of a program, and the counted loops of its GEMM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt.schedule.checks import Analysis
from hilt.schedule.loops import LOOPS
from hilt.schedule.tiling import IntArray


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
