"""The input of lowering: the findings of the checks for the configurations that are lowered together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt.schedule.checks import Analysis
from hilt.schedule.tiling import BoolArray, IntArray, Tiling, TilingProblem


@dataclass(frozen=True)
class Plans:
    """Arrays (programs,); and (programs x kinds,), program by program, over the kinds of tile.

    Whole ones first, then the smaller ones at the edges.
    """

    tiling: Tiling
    """Sizes of whole tiles."""
    banded: BoolArray
    resident: BoolArray
    kinds: int
    shapes: Tiling
    """Sizes of every kind of tile."""
    exists: BoolArray
    """Marks the kinds that exist; the sizes of the others mean nothing."""
    out: IntArray
    """The two of the tile's loops that GEMM counts, as positions in LOOPS."""
    into: IntArray

    @classmethod
    def of(cls, analysis: Analysis, rows: IntArray) -> Plans:
        """Return the plans of these configurations, all of them accepted."""
        tilings = [analysis.tiling, *(tiling for tiling, _, _ in analysis.edges)]
        exists = [np.ones(len(analysis.resident), dtype=np.bool_), *(there for _, there, _ in analysis.edges)]
        loops = [analysis.loops, *(choice for _, _, choice in analysis.edges)]
        counted, resident = [(loop.out, loop.into) for loop in loops], analysis.resident
        if len(rows) < len(resident):  # else they keep the results of the checks
            tilings, resident = [tiling.take(rows) for tiling in tilings], resident.take(rows)
            exists = [mask.take(rows) for mask in exists]
            counted = [(out.take(rows), into.take(rows)) for out, into in counted]
        tiling, (out, into) = tilings[0], counted[0]
        if len(tilings) == 1:
            return cls(tiling, tiling.banded, resident, 1, tiling, exists[0], out, into)
        shapes = Tiling.interleaved(tilings)
        there = np.stack(exists, axis=1).ravel()
        out, into = np.stack(counted, axis=2).reshape(2, -1)
        return cls(tiling, tiling.banded, resident, len(tilings), shapes, there, out, into)

    def __len__(self) -> int:
        return len(self.banded)

    @property
    def problem(self) -> TilingProblem:
        return self.tiling.problem
