"""Configurations one by one, as plain numbers: what lowering goes by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hilt.schedule.checks import Analysis, Checks
from hilt.schedule.loops import LOOPS
from hilt.schedule.reasons import Rejected
from hilt.schedule.tiling import Problem, Tiling


class Sizes(NamedTuple):
    """Of one configuration, what Tiling says of many."""

    batch: int
    height: int
    width: int
    ci: int
    co: int
    oc_threads: int
    h_threads: int
    order: int
    threads: int
    inp_channels: int
    box_height: int
    box_width: int
    inp_elements: int
    wgt_elements: int
    acc_elements: int
    b_tiles: int
    h_tiles: int
    w_tiles: int
    co_tiles: int
    ci_steps: int
    acc_places: int


class Shape(NamedTuple):
    """A tile's sizes, and the two of its loops that GEMM counts (names of LOOPS)."""

    sizes: Sizes
    out: str
    into: str


@dataclass(frozen=True)
class Plan:
    """One configuration: whole tiles first in `shapes`, then the smaller ones at the edges that there are."""

    problem: Problem
    shapes: list[Shape]
    banded: bool
    resident: bool

    @property
    def sizes(self) -> Sizes:
        """With whole tiles."""
        return self.shapes[0].sizes


def plans(analysis: Analysis, checks: Checks) -> Iterator[Plan | Rejected]:
    """Of each configuration in turn; the rejection of those that `checks` refuses."""
    tiling, loops = analysis.tiling, analysis.loops
    kinds = [(tiling, np.ones(len(tiling.batch), dtype=np.bool_), loops), *analysis.edges]
    shapes = [
        [
            Shape(sizes, LOOPS[out], LOOPS[into]) if exists else None
            for sizes, exists, out, into in zip(
                _sizes(tiles), there.tolist(), choice.out.tolist(), choice.into.tolist(), strict=True
            )
        ]
        for tiles, there, choice in kinds
    ]
    refused = analysis.verdict(checks).tolist()
    banded, resident = tiling.banded.tolist(), analysis.resident.tolist()
    for row, of_row in enumerate(zip(*shapes, strict=True)):
        rejection = analysis.rejection(checks, row) if refused[row] else None
        found = [shape for shape in of_row if shape is not None]
        yield rejection or Plan(tiling.problem, found, banded[row], resident[row])


def _sizes(tiling: Tiling) -> Iterator[Sizes]:
    rows = np.stack([getattr(tiling, name) for name in Sizes._fields], axis=1).tolist()
    return (Sizes(*row) for row in rows)
