"""The boxes that tiles load and store, as the transfers that move them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hilt.schedule.intervals import Intervals
from hilt.schedule.plan import Plans
from hilt.schedule.segments import divided, ragged, starts
from hilt.schedule.tiling import IntArray
from hilt.schedule.transfers import DmaTransfers, fold

_Dimensions = list[tuple[IntArray, int]]


@dataclass(frozen=True)
class Footprints:
    """The kinds of box of all programs.

    `inp` ones of input first, each program's pairs of a span of rows and one of columns, program by program; then
    one of weights for each program; then one of output for each shape of tile.
    """

    moves: DmaTransfers
    inp: int
    wgt: int

    @classmethod
    def of(cls, plans: Plans, spans: Intervals) -> Self:
        inp, pads = _inputs(plans, spans)
        wgt, out = _weights(plans), _outputs(plans)
        lengths = [len(kind[0][0]) for kind in (inp, wgt, out)]
        dimensions = [
            (np.concatenate([extent for extent, _ in axis]), np.repeat([stride for _, stride in axis], lengths))
            for axis in zip(inp, wgt, out, strict=True)
        ]
        pad_end = np.zeros((4, lengths[1] + lengths[2]), dtype=np.int64)
        top, bottom, left, right = np.concatenate((pads, pad_end), axis=1)
        largest_stride = plans.problem.accelerator.formats.memory.by_name["x_stride"].high
        moves = fold(dimensions, largest_stride, (top, bottom), (left, right))
        return cls(moves, lengths[0], lengths[1])

    @property
    def sizes(self) -> list[int]:
        """Boxes of inputs, weights and outputs."""
        return [self.inp, self.wgt, len(self.moves.counts) - self.inp - self.wgt]


def _inputs(plans: Plans, spans: Intervals) -> tuple[_Dimensions, IntArray]:
    """Return the input boxes and their pads (4, boxes): top, bottom, left, right.

    A box that is all padding is one transfer that only writes zeros: a row of padding above no rows.
    """
    tiling, problem, workload = plans.tiling, plans.problem, plans.problem.workload
    plane = workload.height * workload.width
    program, number = ragged(spans.pairs)
    vertical, horizontal = divided(number, spans.kinds[len(plans) :].take(program))
    kinds = starts(spans.kinds)
    high, top, bottom = spans.spans.take(kinds.take(program) + vertical, axis=1)
    wide, left, right = spans.spans.take(kinds.take(program + len(plans)) + horizontal, axis=1)
    batch, channels = tiling.batch.take(program), tiling.inp_channels.take(program)
    rows, columns, pads = high - top - bottom, wide - left - right, np.stack((top, bottom, left, right))
    nothing = (rows == 0) | (columns == 0)
    if nothing.any():
        columns = np.where(nothing, batch * channels * high * wide, columns)
        batch, channels, rows = np.where(nothing, [[1], [1], [0]], (batch, channels, rows))
        pads = np.where(nothing, [[1], [0], [0], [0]], pads)
    return [
        (batch, problem.all_ci * plane),
        (channels, plane),
        (rows, problem.row_step * workload.width),
        (columns, 1),
    ], pads


def _weights(plans: Plans) -> _Dimensions:
    """Return the weight boxes of a tile of each program."""
    taps, ones = plans.problem.taps, np.ones_like(plans.tiling.co)
    return [(ones, 0), (ones, 0), (plans.tiling.co, plans.problem.ci * taps), (plans.tiling.ci * taps, 1)]


def _outputs(plans: Plans) -> _Dimensions:
    """Return the output boxes of each shape of tile."""
    shapes, problem = plans.shapes, plans.problem
    plane = problem.out_height * problem.out_width
    return [
        (shapes.batch, problem.all_co * plane),
        (shapes.co, plane),
        (shapes.height, problem.out_width),
        (shapes.width, 1),
    ]
