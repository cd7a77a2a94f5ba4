"""A product of two packed tensors on VTA: both are copied to the accumulators, ALU MUL multiplies, shifts and clips.

Packed tensors are consecutive elements, and one element of the factor multiplies one or several of the data: all
pixels of a plane for a gate (N, C, 1, 1), the pixels of a row for (N, C, H, 1), a single one where shapes are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.tile_writer import DATA, FACTOR, TileWriter
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode

_SIZES = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Elements of the data of a tile, about."""
_FIELD = 1 << 14


@dataclass(frozen=True)
class Product:
    """A product over packed tensors: each of `factors` elements multiplies `pixels` consecutive elements of the data.

    The products are shifted right by `shift`, rounded half up, and clipped.
    """

    factors: int
    pixels: int
    shift: int
    clip: tuple[int, int]

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: a copy of each element, and a product of each of the data."""
        return self.factors * (2 * self.pixels + 1)


@dataclass(frozen=True)
class _Tile:
    """Some elements of the factor, from `factor` on, with `pixels` of the data each, from `pixel` on."""

    number: int
    factor: int
    factors: int
    pixel: int
    pixels: int


def product_knobs(product: Product) -> list[dict[str, int]]:
    """Return the schedules of a product: elements of the factor of a tile, and of the data for each of these."""
    found = []
    for size in _SIZES:
        pixels = _even(product.pixels, size)
        factors = _even(product.factors, size // pixels) if pixels == product.pixels else 1
        found.append({"factors": factors, "pixels": pixels})
    return [knobs for place, knobs in enumerate(found) if knobs not in found[:place]]


def _even(whole: int, most: int) -> int:
    """Return the elements of each part, where as few parts as can be have at most `most` elements each."""
    return -(-whole // -(-whole // most))


class ProductWriter(TileWriter):
    """Writes a product whose tiles are of some elements of the factor, or of one and some of its pixels.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    def __init__(self, product: Product, factors: int, pixels: int, accelerator: Accelerator) -> None:
        super().__init__(accelerator)
        self._product, self._factors, self._pixels = product, factors, pixels
        parameters = accelerator.parameters
        self._made = factors * pixels
        """Output elements of a tile."""
        self._box = self._made + factors
        """Input elements of a tile, those of the data first."""
        self._tiles = -(-product.factors // factors) * -(-product.pixels // pixels)
        self._places = min(2, self._tiles, parameters.inp_depth // self._box)
        accumulators = factors + min(2, self._tiles) * self._made
        if not self._places or accumulators > parameters.acc_depth:
            raise Rejected(
                "acc_overflow", f"a tile of {self._made} takes {self._box} input and {accumulators} accumulators"
            )
        if self._box >= _FIELD:
            raise Rejected("field_overflow", f"a tile of {self._made} has more elements than an instruction counts")

    def write_micro_ops(self) -> None:
        """Write, for each place of a tile, the copy of the data, the copy of the factor, and the product."""
        for tile in range(min(2, self._tiles)):
            source = self._source(tile)
            self.uops += [(self._begin(tile), source), (0, source + self._made), (self._begin(tile), 0)]

    def write_tiles(self) -> None:
        """Add the loads, the computation and the store of each tile."""
        for tile in self._each_tile():
            first = tile.factor * self._product.pixels + tile.pixel
            made, source = tile.factors * tile.pixels, self._source(tile.number)
            self.load(DATA, source, first, made)
            self.load(FACTOR, source + self._made, tile.factor, tile.factors)
            self._compute(tile)
            self.store(self._begin(tile.number), first, made)

    def _compute(self, tile: _Tile) -> None:
        made = tile.factors * tile.pixels
        data, factor, multiply = (tile.number % 2 * 3 + kind for kind in range(3))
        for uop, elements in ((data, made), (factor, tile.factors)):
            self.clear(uop, elements)
            self.compute_with(Opcode.GEMM, uop, uop + 1, iter_in=elements, dst_factor_in=1, src_factor_in=1)
        each = {"iter_out": tile.factors, "dst_factor_out": tile.pixels, "src_factor_out": 1}
        inner = {"iter_in": tile.pixels, "dst_factor_in": 1}
        if tile.pixels == 1:
            each, inner = {}, {"iter_in": tile.factors, "dst_factor_in": 1, "src_factor_in": 1}
        self.compute_with(Opcode.ALU, multiply, multiply + 1, alu_opcode=AluOpcode.MUL, **each, **inner)
        self.round_and_clip(multiply, made, self._product.shift, self._product.clip)

    def _source(self, tile: int) -> int:
        """Return the first input element of a tile."""
        return tile % self._places * self._box

    def _begin(self, tile: int) -> int:
        """Return the first accumulator of a tile's output; those of the factor come before all."""
        return self._factors + tile % 2 * self._made

    def _each_tile(self) -> Iterator[_Tile]:
        number, whole = 0, self._product
        for factor in range(0, whole.factors, self._factors):
            for pixel in range(0, whole.pixels, self._pixels):
                factors, pixels = min(self._factors, whole.factors - factor), min(self._pixels, whole.pixels - pixel)
                yield _Tile(number, factor, factors, pixel, pixels)
                number += 1
