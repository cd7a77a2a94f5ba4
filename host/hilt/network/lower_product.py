"""A product of two packed tensors by ALU MUL, which ISA revision B and the wide one have: both are copied before."""

from __future__ import annotations

from hilt.network.product_tiles import Product, ProductTile, ProductWriter
from hilt.network.tile_writer import FACTOR
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode


class MulWriter(ProductWriter):
    """Writes a product by MUL. A tile's factor comes first in the accumulators, and behind its data in the inputs."""

    def __init__(self, product: Product, factors: int, pixels: int, accelerator: Accelerator) -> None:
        super().__init__(product, factors, pixels, accelerator, beside=factors, accumulators=factors)
        self.product = product

    def write_micro_ops(self) -> None:
        """Write, for each place of a tile, the copy of the data, the copy of the factor, and the product."""
        for tile in range(min(2, self.tiles)):
            source = self.source(tile)
            self.uops += [(self.begin(tile), source), (0, source + self.made), (self.begin(tile), 0)]

    def compute(self, tile: ProductTile) -> None:
        """Load a tile's factor, copy both, add to the data, multiply, shift and clip."""
        self.load(FACTOR, self.source(tile.number) + self.made, tile.factor, tile.factors)
        made = tile.factors * tile.pixels
        data, factor, multiply = (tile.number % 2 * 3 + kind for kind in range(3))
        for uop, elements in ((data, made), (factor, tile.factors)):
            self.clear(uop, elements)
            self.compute_with(Opcode.GEMM, uop, uop + 1, iter_in=elements, dst_factor_in=1, src_factor_in=1)
        front, behind = self.product.offsets
        if front:
            self.alu_with([(AluOpcode.ADD, front)], data, made)
        each = {"iter_out": tile.factors, "dst_factor_out": tile.pixels, "src_factor_out": 1}
        inner = {"iter_in": tile.pixels, "dst_factor_in": 1}
        if tile.pixels == 1:
            each, inner = {}, {"iter_in": tile.factors, "dst_factor_in": 1, "src_factor_in": 1}
        self.compute_with(Opcode.ALU, multiply, multiply + 1, alu_opcode=AluOpcode.MUL, **each, **inner)
        self.round_and_clip(multiply, made, self.product.shift, self.product.clip, behind)
