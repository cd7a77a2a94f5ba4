"""Max pooling whose windows overlap by less than a stride: rows first, then columns, in place.

Each window has one column, and one row, that no other window has. An identity GEMM copies the input to the
accumulators; ALU MAX adds to a window's own column the other ones, in every row that was copied, and then to its own
row the other ones. The results are stored from there. Outputs take their own rows in so many arrays as the strides have
residues, so that the operands of successive micro-ops are neighbours, and each copied run is cleared in passing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hilt.network.pool_tiles import CopyingPoolWriter, PoolingLayer, PoolTile, inside, own_position
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode


class InPlaceMaxPoolWriter(CopyingPoolWriter):
    """Writes a max pooling that has an `own_position`; tiles are `rows` output rows of one plane.

    Rows and columns of the input count from the first window's first, which may lie in the padding. Copied rows lie in
    a ring: a tile loads and copies only those that the tile above did not.
    """

    outputs = 0

    def __init__(self, pool: PoolingLayer, rows: int, accelerator: Accelerator) -> None:
        own = own_position(pool)
        assert own is not None
        self._own_row, self._own_column = own
        stride, apart = pool.stride
        self._columns = [-(-(pool.wide - residue) // apart) for residue in range(apart)]
        """Elements of a row's residues."""
        # The next tile's copies leave the rows alone that this one stores, where there is room for so many.
        most = accelerator.parameters.acc_depth // pool.wide // stride
        wanted = -(-(pool.rows_read(rows) + rows * stride - self._own_row) // stride)
        least = -(-pool.rows_read(rows) // stride)
        self._turn = max(least, min(wanted, most))
        """Rows of the ring that have one residue."""
        super().__init__(pool, rows, 1, accelerator, copied=self._turn * stride * pool.wide)

    def write_micro_ops(self) -> None:
        """Write the micro-ops of all tiles, each once."""
        for tile in self.each_tile():
            for opcode, operands, _ in self._steps(tile):
                self._uop(opcode, operands)

    def compute(self, tile: PoolTile) -> None:
        """Copy the rows that were loaded, then take the maximum of each row's windows, then those of the rows."""
        for opcode, operands, loops in self._steps(tile):
            uop = self._uop(opcode, operands)
            if opcode == Opcode.GEMM:
                self.clear(uop, loops["iter_out"] * loops["iter_in"])
                self.compute_with(opcode, uop, uop + 1, **loops)
            else:
                self.compute_with(opcode, uop, uop + 1, alu_opcode=AluOpcode.MAX, **loops)

    def _uop(self, opcode: Opcode, operands: tuple[int, int]) -> int:
        """Return the number of a micro-op of GEMM, or of one of the ALU alone, whose source moves with the others."""
        return self.uop_number(*operands, int(opcode == Opcode.ALU))

    def _steps(self, tile: PoolTile) -> Iterator[tuple[Opcode, tuple[int, int], dict[str, int]]]:
        """Yield a tile's operations: its opcode, its first destination and source, and its loops."""
        stride = self.pool.stride[0]
        first, end = self.rows_loaded(tile)
        runs = [
            run
            for residue in range(stride)
            for run in self._runs([(row,) for row in range(first, end) if row % stride == residue])
        ]
        for run in runs:
            yield from self._copies(tile, run[0][0], len(run))
        for run in runs:
            yield from self._maxima_of_columns(run[0][0], len(run))
        yield from self._maxima_of_rows(tile)

    def _copies(self, tile: PoolTile, row: int, rows: int) -> Iterator[tuple[Opcode, tuple[int, int], dict[str, int]]]:
        """Yield the copies of rows a stride apart, from `row` on: one of each residue of the columns."""
        pool = self.pool
        loaded = tile.number % self.places * self.box + (row - self.rows_loaded(tile)[0]) * pool.wide
        for residue, columns in enumerate(self._columns):
            if not columns:
                return  # the image is narrower than the stride
            loops = {
                "iter_out": rows,
                "iter_in": columns,
                "dst_factor_out": columns,
                "dst_factor_in": 1,
                "src_factor_out": pool.stride[0] * pool.wide,
                "src_factor_in": pool.stride[1],
            }
            yield Opcode.GEMM, (self._place(row, residue), loaded + residue), loops

    def _maxima_of_columns(self, row: int, rows: int) -> Iterator[tuple[Opcode, tuple[int, int], dict[str, int]]]:
        """Yield the maxima of each window's own column and its others, of rows a stride apart, from `row` on."""
        pool, own = self.pool, self._own_column
        for column in range(pool.kernel[1]):
            begin, end = inside(column - pool.pads[1], pool.stride[1], pool.size[1], pool.out[1])
            if column == own or begin >= end:
                continue
            loops = {
                "iter_out": rows,
                "iter_in": end - begin,
                "dst_factor_out": self._columns[own],
                "dst_factor_in": 1,
                "src_factor_out": self._columns[column % pool.stride[1]],
                "src_factor_in": 1,
            }
            yield Opcode.ALU, (self._place(row, own) + begin, self._place(row, column) + begin), loops

    def _maxima_of_rows(self, tile: PoolTile) -> Iterator[tuple[Opcode, tuple[int, int], dict[str, int]]]:
        """Yield the maxima of each output's own row and its others."""
        pool, stride = self.pool, self.pool.stride[0]
        for row in range(pool.kernel[0]):
            begin, end = inside(row - pool.pads[0], stride, pool.size[0], pool.out[0])
            outputs = range(max(begin, tile.row), min(end, tile.row + tile.rows))
            if row == self._own_row:
                continue
            for run in self._runs([(out * stride + self._own_row, out * stride + row) for out in outputs]):
                places = self._place(run[0][0], self._own_column), self._place(run[0][1], self._own_column)
                loops = {"iter_in": len(run) * pool.out[1], "dst_factor_in": 1, "src_factor_in": 1}
                yield Opcode.ALU, places, {"iter_out": 1, **loops}

    def _runs(self, rows: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        """Yield the parts of such rows, a stride apart, that lie one behind another in the ring."""
        stride = self.pool.stride[0]
        for _, run in groupby(rows, key=lambda each: tuple(row // stride // self._turn for row in each)):
            yield list(run)

    def _place(self, row: int, column: int) -> int:
        """Return where an element of a copied row lies."""
        stride, apart = self.pool.stride
        residue, before = column % apart, sum(self._columns[: column % apart])
        array = self._turn * (row % stride * self.pool.wide + before)
        return array + row // stride % self._turn * self._columns[residue] + column // apart

    def _store(self, tile: PoolTile) -> None:
        high, wide = self.pool.out
        rows = [(out * self.pool.stride[0] + self._own_row,) for out in range(tile.row, tile.row + tile.rows)]
        done = 0
        for run in self._runs(rows):
            first = (tile.plane * high + tile.row + done) * wide
            self.store(self._place(run[0][0], self._own_column), first, len(run) * wide)
            done += len(run)
