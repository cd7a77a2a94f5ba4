"""Counts a skip connection's needs on chip beside the convolution, for many configurations at once.

hilt.schedule.residual writes the code. A tile's part of the tensor is loaded behind the inputs in the rows of the
tile's STOREs, one block of weights is the identity, and every piece has micro-ops of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from hilt.schedule.tiling import IntArray, Tiling
from hilt.schedule.transfers import fold

_SOURCES = 2
"""Places behind the inputs in which pieces lie in turns, at most."""


@dataclass(frozen=True)
class SkipNeeds:
    """Arrays (n,) over configurations; upper bounds but for `row`.

    Attributes:
        row: Elements of the longest row that one LOAD brings.
        piece: Elements of the largest piece.
        micro_ops: Micro-ops of the pieces.
        pieces: Pieces of all tiles.
    """

    row: IntArray
    piece: IntArray
    micro_ops: IntArray
    pieces: IntArray

    @classmethod
    def of(cls, tiling: Tiling, inputs: IntArray, acc_places: IntArray) -> Self:
        """Return the needs of configurations of a workload with a skip connection.

        They have `inputs` (n,) elements of input and the sums of `acc_places` (n,) tiles on chip.
        """
        shapes = [(tiling, np.ones(len(tiling.batch), dtype=np.bool_)), *tiling.edges()]
        moves = [_stores(shape) for shape, _ in shapes]
        there = [exists for _, exists in shapes]
        row = _largest([np.where(exists, x, 0) for exists, (_, _, x) in zip(there, moves, strict=True)])
        piece = _largest([np.where(exists, y * x, 0) for exists, (_, y, x) in zip(there, moves, strict=True)])
        depth = tiling.problem.accelerator.parameters.inp_depth
        room = depth - inputs
        size = np.minimum(piece, np.maximum(row, room // _SOURCES))
        each = [count * -(-y // np.maximum(size // x, 1)) for count, y, x in moves]
        present = [np.where(exists, pieces, 0) for exists, pieces in zip(there, each, strict=True)]
        micro_ops = sum(present, np.zeros_like(row)) * acc_places * _SOURCES
        return cls(row, np.minimum(piece, depth), micro_ops, _largest(present) * tiling.tiles)


def _largest(columns: list[IntArray]) -> IntArray:
    found: IntArray = np.max(columns, axis=0)
    return found


def _stores(tiling: Tiling) -> tuple[IntArray, IntArray, IntArray]:
    """Return how many STOREs a tile takes, and the rows and columns of each."""
    problem = tiling.problem
    plane = problem.out_height * problem.out_width
    none = np.zeros_like(tiling.batch)
    dimensions = [
        (tiling.batch, problem.all_co * plane),
        (tiling.co, plane),
        (tiling.height, problem.out_width),
        (tiling.width, 1),
    ]
    moves = fold(dimensions, problem.accelerator.formats.memory.by_name["x_stride"].high, (none, none), (none, none))
    return moves.counts, moves.y_size, moves.x_size
