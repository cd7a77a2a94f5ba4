"""Max pooling on VTA: an identity GEMM copies a tile's input to the accumulators, ALU MAX takes the window's positions.

The copy puts the columns of each residue of the stride side by side, so that the sources of successive micro-ops are
neighbours, which the ALU reads one a cycle. A position of the window leaves out the outputs for which it lies in the
padding; the one on an output's own element has all, and comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.pool_tiles import PoolingLayer, PoolTile, PoolWriter
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode


@dataclass(frozen=True)
class _Taken:
    """A position of the window, and the outputs of a tile that take it: rows and columns, first and behind the last."""

    row: int
    column: int
    rows: tuple[int, int]
    columns: tuple[int, int]


class MaxPoolWriter(PoolWriter):
    """Writes a max pooling whose tiles are `rows` output rows of one plane."""

    def __init__(self, pool: PoolingLayer, rows: int, accelerator: Accelerator) -> None:
        self._step = -(-pool.wide // pool.stride[1])
        """Columns of one residue."""
        self._plane = pool.rows_read(rows) * self._step
        """Copied elements of one residue."""
        self._uop_of: dict[tuple[int, int, int, int], int] = {}
        """The micro-op of a place, a position of the window and the first row that takes it."""
        super().__init__(pool, rows, 1, accelerator, copied=self._plane * pool.stride[1])

    def write_micro_ops(self) -> None:
        """Write the copies of each input place by residue; then for each output place its start and its window."""
        residues = self.pool.stride[1]
        for place in range(self.places):
            self.uops += [(residue * self._plane, place * self.box + residue) for residue in range(residues)]
        for tile in self.each_tile():
            for taken in self._window(tile):
                key = self._key(tile, taken)
                if key not in self._uop_of:
                    self._uop_of[key] = len(self.uops)
                    self.uops.append(self._micro_op(tile, taken))

    def compute(self, tile: PoolTile) -> None:
        """Copy the input by residue, then take the maximum of each window."""
        pool, residues = self.pool, self.pool.stride[1]
        copies = tile.number % self.places * residues
        self.clear(copies, self.copied)
        for number in range(residues):
            self.compute_with(
                Opcode.GEMM,
                copies + number,
                copies + number + 1,
                iter_out=pool.rows_read(tile.rows),
                iter_in=-(-(pool.wide - number) // residues),
                dst_factor_out=self._step,
                dst_factor_in=1,
                src_factor_out=pool.wide,
                src_factor_in=residues,
            )
        for number, taken in enumerate(self._window(tile)):
            uop = self._uop_of[self._key(tile, taken)]
            if not number:
                self.clear(uop, tile.rows * pool.out[1])
            self.compute_with(
                Opcode.ALU,
                uop,
                uop + 1,
                alu_opcode=AluOpcode.MAX if number else AluOpcode.ADD,
                iter_out=taken.rows[1] - taken.rows[0],
                iter_in=taken.columns[1] - taken.columns[0],
                dst_factor_out=pool.out[1],
                dst_factor_in=1,
                src_factor_out=pool.stride[0] * self._step,
                src_factor_in=1,
            )

    def _window(self, tile: PoolTile) -> Iterator[_Taken]:
        """Yield the positions of the window that some output of a tile takes, its own element first."""
        pool = self.pool
        (high, wide), (top, left) = pool.kernel, pool.pads
        positions = [(row, column) for row in range(high) for column in range(wide)]
        positions.sort(key=lambda position: position != (top, left))
        for row, column in positions:
            first, end = _inside(row - top, pool.stride[0], pool.size[0], pool.out[0])
            rows = max(first - tile.row, 0), min(end - tile.row, tile.rows)
            columns = _inside(column - left, pool.stride[1], pool.size[1], pool.out[1])
            if rows[0] < rows[1] and columns[0] < columns[1]:
                yield _Taken(row, column, rows, columns)

    def _key(self, tile: PoolTile, taken: _Taken) -> tuple[int, int, int, int]:
        return tile.number % 2, taken.row, taken.column, taken.rows[0]

    def _micro_op(self, tile: PoolTile, taken: _Taken) -> tuple[int, int]:
        """Return the first output that takes a position, and its source."""
        pool, (row, column) = self.pool, (taken.rows[0], taken.columns[0])
        stride = pool.stride
        plane = taken.column % stride[1] * self._plane
        source = (taken.row + row * stride[0]) * self._step + column + taken.column // stride[1]
        return self.begin(tile.number) + row * pool.out[1] + column, plane + source


def _inside(shift: int, stride: int, size: int, outputs: int) -> tuple[int, int]:
    """Return the first output whose element at output * stride + shift is in the input, and the one behind the last."""
    first = -(-max(-shift, 0) // stride)
    return first, min(outputs, (size - 1 - shift) // stride + 1)
