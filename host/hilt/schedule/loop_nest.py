"""The loops that a configuration's program runs, outermost first: for features, and for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hilt.schedule.checks import Analysis
from hilt.schedule.loops import LOOPS, extents
from hilt.schedule.space import ALL_ORDERS
from hilt.schedule.tiling import IntArray, TilingProblem

OPERANDS = ("inp", "wgt", "out")


class LoopKind(IntEnum):
    """The kind of a loop: order of the tiles, virtual threads, GEMM's two counted loops, or micro-ops."""

    TILE = 0
    THREAD = 1
    COUNTED = 2
    MICRO_OP = 3


_TILE_LOOPS = len(ALL_ORDERS[1])
_THREAD_AXES = ("h", "co")
_MICRO_OP_AXES = ("ci", "kh", "kw", "b", "co", "h", "w")
"""The loops that hilt.schedule.microops unrolls, without the two counted ones."""

KINDS = (
    *(LoopKind.TILE,) * _TILE_LOOPS,
    *(LoopKind.THREAD,) * len(_THREAD_AXES),
    *(LoopKind.COUNTED,) * 2,
    *(LoopKind.MICRO_OP,) * (len(_MICRO_OP_AXES) - 2),
)
"""The kind of each loop. Every configuration has the same kinds in the same places."""


@dataclass(frozen=True)
class LoopNest:
    """Arrays over configurations and loops (n, len(KINDS)); a loop of one turn is there too."""

    problem: TilingProblem
    axis: IntArray
    """Positions in hilt.schedule.loops.LOOPS."""
    extent: IntArray
    touched: dict[str, IntArray]
    """Elements (blocks) of each operand that one run of the loop with all inside it touches."""
    stride: dict[str, IntArray]
    """Step of each operand, in elements, of one turn of the loop in the whole tensor; 0 if it does not move."""


def loop_nest(analysis: Analysis) -> LoopNest:
    """Return the loop nest of every configuration.

    The last turn is smaller if virtual threads do not share the tiles evenly, or tiles do not divide the output.
    """
    tiling = analysis.tiling
    tiles = {
        "b": tiling.b_tiles,
        "h": -(-tiling.h_tiles // tiling.h_threads),
        "co": -(-tiling.co_tiles // tiling.oc_threads),
        "w": tiling.w_tiles,
        "ci": tiling.ci_steps,
    }
    count = len(tiling.batch)
    rows = np.arange(count)[:, None]
    orders = np.array([[LOOPS.index(name) for name in loops] for loops in ALL_ORDERS.values()])
    tile_axis = orders[tiling.order - 1]
    thread_axis = np.broadcast_to([LOOPS.index(name) for name in _THREAD_AXES], (count, len(_THREAD_AXES)))
    turns = np.stack([tiles.get(name, np.ones(count, dtype=np.int64)) for name in LOOPS], axis=1)
    counted = np.stack([analysis.loops.out, analysis.loops.into], axis=1)
    order = np.array([LOOPS.index(name) for name in _MICRO_OP_AXES])
    spelled_out = np.all(order[None, :, None] != counted[:, None, :], axis=2)
    micro_ops = np.broadcast_to(order, (count, len(order)))[spelled_out].reshape(count, len(order) - 2)
    inner = np.concatenate([counted, micro_ops], axis=1)
    axis = np.concatenate([tile_axis, thread_axis, inner], axis=1)
    threads = np.stack([tiling.h_threads, tiling.oc_threads], axis=1)
    extent = np.concatenate([turns[rows, tile_axis], threads, extents(tiling)[rows, inner]], axis=1)

    inside = np.ones((count, len(LOOPS)), dtype=np.int64)
    touched = {operand: np.empty_like(extent) for operand in OPERANDS}
    stride = {operand: np.empty_like(extent) for operand in OPERANDS}
    steps = _whole_strides(tiling.problem)
    for loop in reversed(range(extent.shape[1])):
        here = axis[:, loop]
        for operand in OPERANDS:
            stride[operand][:, loop] = steps[operand][here] * inside[rows[:, 0], here] * (extent[:, loop] > 1)
        inside[rows[:, 0], here] *= extent[:, loop]
        for operand, elements in _box(tiling.problem, inside).items():
            touched[operand][:, loop] = elements
    return LoopNest(tiling.problem, axis, extent, touched, stride)


def _whole_strides(problem: TilingProblem) -> dict[str, IntArray]:
    """Return the elements from one turn of each of LOOPS to the next in the whole tensors, (7,)."""
    workload = problem.workload
    plane, out_plane = workload.height * workload.width, problem.out_height * problem.out_width
    kernel_width = workload.kernel[1]
    inp = {
        "co": plane if problem.block_by_block else 0,
        "b": problem.all_ci * plane,
        "h": workload.stride[0] * workload.width,
        "w": workload.stride[1],
        "ci": plane,
        "kh": workload.dilation[0] * workload.width,
        "kw": workload.dilation[1],
    }
    wgt = {"co": problem.ci * problem.taps, "ci": problem.taps, "kh": kernel_width, "kw": 1}
    out = {"b": problem.all_co * out_plane, "co": out_plane, "h": problem.out_width, "w": 1}
    return {
        operand: np.array([strides.get(name, 0) for name in LOOPS])
        for operand, strides in zip(OPERANDS, (inp, wgt, out), strict=True)
    }


def _box(problem: TilingProblem, covered: IntArray) -> dict[str, IntArray]:
    """Return the elements of each operand in a box.

    The box has so many turns of each of LOOPS (n, 7), padding included.
    """
    b, co, h, w, ci, kh, kw = covered.T
    workload = problem.workload
    high, wide = (kh - 1) * workload.dilation[0] + 1, (kw - 1) * workload.dilation[1] + 1
    rows = np.where(h == 1, kh, (h - 1) * workload.stride[0] + high)
    columns = np.where(w == 1, kw, (w - 1) * workload.stride[1] + wide)
    groups = -(-co // problem.co)  # other groups of output channels have other input channels
    return {"inp": b * groups * ci * rows * columns, "wgt": co * ci * kh * kw, "out": b * co * h * w}
