"""A product with a gate by GEMM, on every VTA: each element of the gate becomes a weight block with it on the diagonal.

VTA makes the blocks. Weight blocks with a single one on the diagonal take each value of an element of the gate to a
row of its own; the rows are stored, and loaded as weights. So it serves where one element multiplies many of the data.
A number that is added to the data is an input that the same blocks multiply, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilt.network.product_tiles import Product, ProductTile, ProductWriter
from hilt.network.tile_writer import ADDED, FACTOR, ROWS, UNITS
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode

_ROWS_SHARE = 4
"""The rows of a group take at most this part of the accumulators."""


def unit_blocks(accelerator: Accelerator) -> NDArray[np.int8]:
    """Return weight blocks (block, block, block), the n-th of which takes value n of an input to value n, alone."""
    block = accelerator.parameters.block
    units = np.zeros((block, block, block), dtype=np.int8)
    units[np.arange(block), np.arange(block), np.arange(block)] = 1
    return units


def added_input(offset: int, accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the input (batch, block) that is multiplied, in one pass or more, to add to a product's data."""
    parameters = accelerator.parameters
    return np.full((parameters.batch, parameters.block), offset // (added_passes(offset) or 1), np.int8)


def added_passes(offset: int) -> int | None:
    """Return how often an int8 input is taken to make up an offset: 0 for none. None if two are too few."""
    if not offset:
        return 0
    return next((passes for passes in (1, 2) if offset % passes == 0 and -128 <= offset // passes <= 127), None)


class GateWriter(ProductWriter):
    """Writes a product with a gate. Elements of the gate come first in the inputs, their rows in the accumulators.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    constant = UNITS

    def __init__(self, product: Product, factors: int, pixels: int, accelerator: Accelerator) -> None:
        self.product, parameters = product, accelerator.parameters
        self._block = self.constant_blocks = parameters.block
        self._group = max(1, min(product.factors, parameters.acc_depth // _ROWS_SHARE // self._block))
        """Elements of the gate whose rows are made at once."""
        self._passes = added_passes(product.offsets[0]) or 0
        inputs = self._group + bool(self._passes)
        super().__init__(product, factors, pixels, accelerator, inputs=inputs, accumulators=self._group * self._block)
        if self._block + self.places * factors > parameters.wgt_depth:
            raise Rejected("wgt_overflow", f"a tile takes {factors} blocks of {parameters.wgt_depth}")

    def write_micro_ops(self) -> None:
        """Write the rows of the gate, then for each place of a tile its products."""
        self.uops.append((0, 0))
        for tile in range(min(2, self.tiles)):
            self.uops.append((self.begin(tile), self.source(tile), self._weights(tile)))
        if self._passes:
            self.uops += [(begin, self._group, weights) for begin, _, weights in self.uops[1:]]

    def write_tiles(self) -> None:
        """Make the weight blocks of the gate, then the tiles."""
        for first in range(0, self.product.factors, self._group):
            count = min(self._group, self.product.factors - first)
            self.load(FACTOR, 0, first, count)
            self.clear(0, count * self._block)
            self.compute_with(
                Opcode.GEMM,
                0,
                1,
                iter_out=count,
                iter_in=self._block,
                dst_factor_out=self._block,
                dst_factor_in=1,
                src_factor_out=1,
                wgt_factor_in=1,
            )
            self.store(0, first * self._block, count * self._block, ROWS)
        if self._passes:
            self.load(ADDED, self._group, 0, 1)
        super().write_tiles()

    def compute(self, tile: ProductTile) -> None:
        """Load a tile's weight blocks, multiply, shift and clip.

        The clearing stands before the load, which waits for the rows' store by way of it.
        """
        uop, made = 1 + tile.number % 2, tile.factors * tile.pixels
        self.clear(uop, made)
        self.add(
            ROWS,
            Opcode.LOAD,
            memory_type=MemoryType.WGT,
            sram_base=self._weights(tile.number),
            dram_base=tile.factor,
            y_size=1,
            x_size=tile.factors,
            x_stride=tile.factors,
        )
        each = {"iter_out": tile.factors, "dst_factor_out": tile.pixels, "wgt_factor_out": 1}
        inner = {"iter_in": tile.pixels, "dst_factor_in": 1}
        sources = {"src_factor_out": tile.pixels, "src_factor_in": 1}
        self.compute_with(Opcode.GEMM, uop, uop + 1, **each, **inner, **sources)
        added = uop + min(2, self.tiles)
        for _ in range(self._passes):
            self.compute_with(Opcode.GEMM, added, added + 1, **each, **inner)
        self.round_and_clip(uop, made, self.product.shift, self.product.clip, self.product.offsets[1])

    def _weights(self, tile: int) -> int:
        """Return a tile's first weight block; the unit blocks come before all."""
        return self._block + tile % self.places * self.factors
