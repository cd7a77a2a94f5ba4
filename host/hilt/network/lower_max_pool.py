"""Max pooling on VTA: an identity GEMM copies the input to the accumulators, ALU MAX takes the window's positions.

The copy puts the columns of each residue of the stride side by side, so that the sources of successive micro-ops are
neighbours, which the ALU reads one a cycle. Copied rows lie in a ring: a tile loads and copies only those that the tile
above did not. A position of the window leaves out the outputs for which it lies in the padding; the one on an output's
own element has all, and comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.pool_tiles import CopyingPoolWriter, PoolingLayer, PoolTile, inside
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode


@dataclass(frozen=True)
class _Taken:
    """A position of the window, and the outputs of a tile that take it: rows and columns, first and behind the last."""

    row: int
    column: int
    rows: tuple[int, int]
    columns: tuple[int, int]


class MaxPoolWriter(CopyingPoolWriter):
    """Writes a max pooling whose tiles are `rows` output rows of one plane.

    Rows of the input count from the first window's first, which may lie in the padding.
    """

    def __init__(self, pool: PoolingLayer, rows: int, accelerator: Accelerator) -> None:
        stride = pool.stride[0]
        self._ring = -(-pool.rows_read(rows) // stride) * stride
        """Rows of the ring: a multiple of the stride, so that the rows of a position lie alike at each turn."""
        self._step = -(-pool.wide // pool.stride[1])
        """Columns of one residue."""
        self._residues = min(pool.stride[1], pool.wide)
        """Residues that have any columns."""
        self._row = self._step * pool.stride[1]
        """Copied elements of a row, residue by residue."""
        super().__init__(pool, rows, 1, accelerator, copied=self._ring * self._row)

    def write_micro_ops(self) -> None:
        """Write the micro-ops of all tiles, each once."""
        for tile in self.each_tile():
            for first, _ in self._turns(*self.rows_loaded(tile), 1):
                for residue in range(self._residues):
                    self.uop_number(*self._copy(tile, first, residue))
            for taken in self._window(tile):
                self.uop_number(*self._operands(tile, taken))

    def compute(self, tile: PoolTile) -> None:
        """Copy the rows that were loaded, then take the maximum of each window."""
        pool = self.pool
        for first, end in self._turns(*self.rows_loaded(tile), 1):
            self._copy_rows(tile, first, end)
        for number, taken in enumerate(self._window(tile)):
            uop = self.uop_number(*self._operands(tile, taken))
            if not number:
                self.clear(uop, tile.rows * pool.out[1])
            self.compute_with(
                Opcode.ALU,
                uop,
                uop + 1,
                alu_opcode=AluOpcode.ADD if self._is_own(taken.row, taken.column) else AluOpcode.MAX,
                iter_out=taken.rows[1] - taken.rows[0],
                iter_in=taken.columns[1] - taken.columns[0],
                dst_factor_out=pool.out[1],
                dst_factor_in=1,
                src_factor_out=pool.stride[0] * self._row,
                src_factor_in=1,
            )

    def _copy_rows(self, tile: PoolTile, first: int, end: int) -> None:
        """Copy rows that lie one behind another in the ring."""
        pool, apart = self.pool, self.pool.stride[1]
        for residue in range(self._residues):
            uop = self.uop_number(*self._copy(tile, first, residue))
            if not residue:
                self.clear(uop, (end - first) * self._row)
            self.compute_with(
                Opcode.GEMM,
                uop,
                uop + 1,
                iter_out=end - first,
                iter_in=-(-(pool.wide - residue) // apart),
                dst_factor_out=self._row,
                dst_factor_in=1,
                src_factor_out=pool.wide,
                src_factor_in=apart,
            )

    def _window(self, tile: PoolTile) -> Iterator[_Taken]:
        """Yield the positions of the window that some output of a tile takes, its own element first.

        One whose rows lie in two turns of the ring comes twice.
        """
        pool = self.pool
        (high, wide), (top, left), stride = pool.kernel, pool.pads, pool.stride[0]
        positions = [(row, column) for row in range(high) for column in range(wide)]
        positions.sort(key=lambda position: not self._is_own(*position))
        for row, column in positions:
            first, end = inside(row - top, stride, pool.size[0], pool.out[0])
            rows = max(first, tile.row), min(end, tile.row + tile.rows)
            columns = inside(column - left, pool.stride[1], pool.size[1], pool.out[1])
            if rows[0] < rows[1] and columns[0] < columns[1]:
                for begin, behind in self._turns(row + rows[0] * stride, row + rows[1] * stride, stride):
                    taken = (begin - row) // stride - tile.row, (behind - row) // stride - tile.row
                    yield _Taken(row, column, taken, columns)

    def _turns(self, first: int, end: int, step: int) -> Iterator[tuple[int, int]]:
        """Yield the rows [first, end), `step` apart, in parts that lie in one turn of the ring each."""
        while first < end:
            behind = min(end, first + -(-(self._ring - first % self._ring) // step) * step)
            yield first, behind
            first = behind

    def _is_own(self, row: int, column: int) -> bool:
        return (row, column) == self.pool.pads

    def _copy(self, tile: PoolTile, row: int, residue: int) -> tuple[int, int]:
        """Return the copy of a row's first element of a residue."""
        loaded = tile.number % self.places * self.box + (row - self.rows_loaded(tile)[0]) * self.pool.wide
        return row % self._ring * self._row + residue * self._step, loaded + residue

    def _operands(self, tile: PoolTile, taken: _Taken) -> tuple[int, int]:
        """Return the first output that takes a position, and its source."""
        pool, (row, column) = self.pool, (taken.rows[0], taken.columns[0])
        source = (tile.row + row) * pool.stride[0] + taken.row
        residue = taken.column % pool.stride[1] * self._step
        place = source % self._ring * self._row + residue + column + taken.column // pool.stride[1]
        return self.begin(tile.number) + row * pool.out[1] + column, place
