"""Max pooling on VTA: an identity GEMM copies a tile's input to the accumulators, ALU MAX takes the window's positions.

The copy puts the columns of each residue of the stride side by side, so that the sources of successive micro-ops are
neighbours, which the ALU reads one a cycle. Padding is zeros, so where there is any the input must not be negative.
"""

from __future__ import annotations

from hilt.network.pool_tiles import PoolingLayer, PoolTile, PoolWriter
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode


class MaxPoolWriter(PoolWriter):
    """Writes a max pooling whose tiles are `rows` output rows of one plane."""

    def __init__(self, pool: PoolingLayer, rows: int, accelerator: Accelerator) -> None:
        self._step = -(-pool.wide // pool.stride[1])
        """Columns of one residue."""
        self._plane = pool.rows_read(rows) * self._step
        """Copied elements of one residue."""
        super().__init__(pool, rows, 1, accelerator, copied=self._plane * pool.stride[1])

    def write_micro_ops(self) -> None:
        """Write the copies of each input place by residue; then for each output place its start and its window."""
        residues, (high, wide) = self.pool.stride[1], self.pool.kernel
        for place in range(self.places):
            self.uops += [(residue * self._plane, place * self.box + residue) for residue in range(residues)]
        for tile in range(min(2, self.tiles)):
            for row in range(high):
                for column in range(wide):
                    plane = column % residues * self._plane
                    self.uops.append((self.begin(tile), plane + row * self._step + column // residues))

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
        taps = pool.kernel[0] * pool.kernel[1]
        first = self.places * residues + tile.number % 2 * taps
        self.clear(first, tile.rows * pool.out[1])
        for tap in range(taps):
            self.compute_with(
                Opcode.ALU,
                first + tap,
                first + tap + 1,
                alu_opcode=AluOpcode.MAX if tap else AluOpcode.ADD,
                iter_out=tile.rows,
                iter_in=pool.out[1],
                dst_factor_out=pool.out[1],
                dst_factor_in=1,
                src_factor_out=pool.stride[0] * self._step,
                src_factor_in=1,
            )
