"""The rules of TVM v0.9 for the `autotvm` space (docs/TVM_FACTS.md section 1, rules R1 to R7).

TVM v0.9 has the knob tile_b and never applies it: it computes one block of images at a time. It has one loop order.
For
the other three orders the rules of a tile are the same, with one of our own: TVM accumulates within a tile, so it
has no
place for partial sums if the reduction is outside of output tiles. With that rule, 0.079 of deepbench with four orders
runs on average, against 0.083 in Table II of HW-Aware Initialization.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.reasons import Needs, Reason
from hilt.schedule.tiling import IntArray, Tiling

BoolArray = NDArray[np.bool_]

LARGEST_BOX_DIMENSIONS = 2
"""A LOAD or STORE has rows and columns; TVM v0.9 moves a box by one instruction or refuses it."""
NEAREST_UPDATE = 3
"""TVM's runtime refuses a micro-op whose destination one of the two before it had."""


def tvm_needs(tiling: Tiling) -> Needs:
    """Return for each of TVM's reasons the need of a configuration and the limit (hilt.schedule.reasons)."""
    problem = tiling.problem
    workload, parameters = problem.workload, problem.accelerator.parameters
    threads = tiling.threads
    box = _box(tiling)
    padded = np.any(workload.padding + workload.pad_end)
    plane = workload.height * workload.width
    out_plane = problem.out_height * problem.out_width
    inp_dimensions = _folded(
        [
            (tiling.ci, plane),
            (box[0], workload.width),
            (box[1], 1),
        ]
    )
    out_dimensions = _folded(
        [
            (tiling.co, out_plane),
            (tiling.height, problem.out_width),
            (tiling.width, 1),
        ]
    )
    uneven = (tiling.h_tiles % tiling.h_threads != 0) | (tiling.co_tiles % tiling.oc_threads != 0)
    # Where both axes have threads TVM v0.9 keeps the accumulator four times more.
    acc = tiling.co * tiling.height * tiling.width * threads * np.where(threads == 4, 4, 1)
    return {
        Reason.THREAD_SPLIT: (uneven.astype(np.int64), 0),
        Reason.TVM_PADDED_BOX: (tiling.ci if padded else np.ones_like(tiling.ci), 1),
        Reason.TVM_INPUT_BOX: (
            np.zeros_like(tiling.ci) if padded else inp_dimensions,
            LARGEST_BOX_DIMENSIONS,
        ),
        Reason.TVM_OUTPUT_BOX: (out_dimensions, LARGEST_BOX_DIMENSIONS),
        Reason.TVM_PARTIAL_SUMS: (tiling.banded.astype(np.int64), 0),
        Reason.INP_OVERFLOW: (box[0] * box[1] * tiling.ci * threads, parameters.inp_depth),
        Reason.WGT_OVERFLOW: (tiling.wgt_elements * threads, parameters.wgt_depth),
        Reason.ACC_OVERFLOW: (acc, parameters.acc_depth),
        Reason.TVM_THREADS: (threads, 2),
        Reason.TVM_ACC_HAZARD: (_close_updates(tiling).astype(np.int64), 0),
    }


def as_tvm(columns: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Return the knobs as TVM v0.9 goes by them."""
    return {**columns, "tile_b": np.ones_like(np.asarray(columns["tile_b"]))} if "tile_b" in columns else dict(columns)


def _box(tiling: Tiling) -> tuple[IntArray, IntArray]:
    """Rows and columns of a tile's input; TVM loads every row also where the kernel has one."""
    workload = tiling.problem.workload
    return (
        (tiling.height - 1) * workload.stride[0] + workload.reach[0],
        (tiling.width - 1) * workload.stride[1] + workload.reach[1],
    )


def _folded(dimensions: list[tuple[IntArray, int]]) -> IntArray:
    """Dimensions left of boxes of (extent, stride) from the outermost in.

    Those of one element go, neighbours that lie end to end merge, and an innermost stride other than 1 counts as a
    dimension of its own.
    """
    count = np.zeros_like(dimensions[0][0])
    span = np.ones_like(count)
    for extent, stride in reversed(dimensions):
        there = extent > 1
        # With no dimension so far, the span is 1: a stride of 1 begins the first, any other misses a unit stride.
        first = there & (count == 0)
        count = np.where(first, 1 + (stride != 1), count + (there & (count > 0) & (span != stride)))
        span = np.where(there, extent * stride, span)
    return np.maximum(count, 1)


def _close_updates(tiling: Tiling) -> BoolArray:
    """R7: of the loops ci, w, KW, KH, co, h the two outermost with more than one turn are counted.

    The micro-ops that spell out the rest must not come back to an element too soon.
    """
    kernel = tiling.problem.workload.kernel
    ones = np.ones_like(tiling.ci)
    loops = (
        (tiling.ci, False),
        (tiling.width, True),
        (ones * kernel[1], False),
        (ones * kernel[0], False),
        (tiling.co, True),
        (tiling.height, True),
    )
    counted = np.zeros_like(ones)
    reduction, spatial = ones.copy(), ones.copy()
    for extent, is_spatial in loops:
        extents = np.where(counted >= 2, extent, 1)
        counted = counted + (extent > 1)
        if is_spatial:
            spatial = spatial * extents
        else:
            reduction = reduction * extents
    return (reduction > 1) & (spatial < NEAREST_UPDATE)
