"""What lowering goes by: the findings of the checks, of those configurations that are lowered together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt.schedule.checks import Analysis
from hilt.schedule.tiling import BoolArray, IntArray, Problem, Tiling


@dataclass(frozen=True)
class Plans:
    """Arrays (programs,); and (programs x kinds,), program by program, over the kinds of tile: whole ones first, then
    the smaller ones at the edges."""

    tiling: Tiling
    """Of whole tiles."""
    banded: BoolArray
    resident: BoolArray
    kinds: int
    shapes: Tiling
    """Of every kind of tile."""
    exists: BoolArray
    """Which kinds there are; of the others the sizes mean nothing."""
    out: IntArray
    """The two of the tile's loops that GEMM counts, as positions in LOOPS."""
    into: IntArray

    @classmethod
    def of(cls, analysis: Analysis, rows: IntArray) -> Plans:
        """Of these configurations, which must have been accepted."""
        tiling = analysis.tiling.take(rows)
        everywhere = np.ones(len(analysis.resident), dtype=np.bool_)
        tilings, exists, loops = zip((analysis.tiling, everywhere, analysis.loops), *analysis.edges, strict=True)
        out, into, there = (
            np.stack([each.take(rows) for each in arrays], axis=1).ravel()
            for arrays in ([each.out for each in loops], [each.into for each in loops], exists)
        )
        shapes = tiling if len(tilings) == 1 else Tiling.interleaved([each.take(rows) for each in tilings])
        return cls(tiling, tiling.banded, analysis.resident.take(rows), len(tilings), shapes, there, out, into)

    def __len__(self) -> int:
        return len(self.banded)

    @property
    def problem(self) -> Problem:
        return self.tiling.problem
