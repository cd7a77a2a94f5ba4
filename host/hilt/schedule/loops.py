"""Choice of the tile loops that become GEMM's two counted loops; the others are unrolled into micro-ops.

A GEMM instruction runs `for out: for in: for micro-op`, each index affine in out and in. Two of a tile's seven loops
are counted. The others are micro-ops, with the reduction outside and the spatial loops inside, so that two updates of
one accumulator element stay apart: public bitstreams lose a sum if they are closer than three (HARDWARE.md section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.tiling import IntArray, Tiling

HAZARD_DISTANCE = 3
"""Micro-ops between two updates of one accumulator element from which on no sum is lost."""

NO_HAZARD = 1 << 30
"""The distance where no element is updated twice in one instruction."""

LOOPS = ("b", "co", "h", "w", "ci", "kh", "kw")
_SPATIAL = np.array([True, True, True, True, False, False, False])
_PAIRS = np.array([(out, into) for out in range(7) for into in range(7) if out != into])
_OUT, _IN = _PAIRS[:, 0], _PAIRS[:, 1]
_REDUCES_OUT, _REDUCES_IN = ~_SPATIAL[_OUT], ~_SPATIAL[_IN]


@dataclass(frozen=True)
class LoopChoice:
    """Arrays (n,) over configurations.

    The loops counted (positions in LOOPS), micro-ops of one tile, and the least distance in micro-ops between two
    updates of one accumulator element.
    """

    out: IntArray
    into: IntArray
    uops: IntArray
    hazard_distance: IntArray


def extents(tiling: Tiling) -> IntArray:
    """Return (n, 7) in the order of LOOPS."""
    extent = np.empty((len(tiling.batch), len(LOOPS)), dtype=np.int64)
    for loop, size in enumerate((tiling.batch, tiling.co, tiling.height, tiling.width, tiling.ci)):
        extent[:, loop] = size
    extent[:, 5:] = tiling.problem.workload.kernel
    return extent


def choose(tiling: Tiling, budget: NDArray[np.int64]) -> LoopChoice:
    """The fewest micro-ops whose updates are far enough apart.

    If no pair of loops gives that within `budget` micro-ops (n,), the fewest that fit; if none fits, the fewest.
    """
    extent = extents(tiling)
    counted_out, counted_in = extent[:, _OUT], extent[:, _IN]
    # The same with 1 for the loops of the other kind.
    of_space, of_reduction = extent.copy(), extent.copy()
    of_space[:, ~_SPATIAL] = 1
    of_reduction[:, _SPATIAL] = 1
    spatial_uops = of_space.prod(axis=1)[:, None] // (of_space[:, _OUT] * of_space[:, _IN])
    reduction_uops = of_reduction.prod(axis=1)[:, None] // (of_reduction[:, _OUT] * of_reduction[:, _IN])
    uops = spatial_uops * reduction_uops
    distance = np.where(
        (reduction_uops > 1) | (_REDUCES_IN & (counted_in > 1)),
        spatial_uops,
        np.where(_REDUCES_OUT & (counted_out > 1), spatial_uops * counted_in, NO_HAZARD),
    )
    # Most important first: fits, no hazard, few micro-ops.
    cost = uops + (distance < HAZARD_DISTANCE) * (1 << 40) + (uops > budget[:, None]) * (1 << 50)
    best = np.argmin(cost, axis=1)
    rows = np.arange(len(best))
    return LoopChoice(_OUT[best], _IN[best], uops[rows, best], distance[rows, best])
