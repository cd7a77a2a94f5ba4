"""A product of two packed tensors, and the tiles of both ways to compute it.

Packed tensors are consecutive elements, and one element of the factor multiplies one or several of the data: all
pixels of a plane for a gate (N, C, 1, 1), the pixels of a row for (N, C, H, 1), a single one where shapes are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from hilt.network.tile_writer import DATA, FIELD, TileWriter
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator

_SIZES = (8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Elements of the data of a tile, about."""


class Planes(Protocol):
    """Work over packed tensors: each of `factors` factors multiplies `pixels` consecutive elements of the data."""

    @property
    def factors(self) -> int: ...

    @property
    def pixels(self) -> int: ...


@dataclass(frozen=True)
class Product:
    """A product over packed tensors: each of `factors` elements multiplies `pixels` consecutive elements of the data.

    `offsets` are added to the data and, behind the shift, to the result: the products are shifted right by `shift`,
    rounded half up, and clipped.
    """

    factors: int
    pixels: int
    shift: int
    clip: tuple[int, int]
    offsets: tuple[int, int] = (0, 0)

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: a copy or product of each element."""
        return self.factors * (self.pixels + 1)


@dataclass(frozen=True)
class ProductTile:
    """Some elements of the factor, from `factor` on, with `pixels` of the data each, from `pixel` on."""

    number: int
    factor: int
    factors: int
    pixel: int
    pixels: int


def product_knobs(product: Planes) -> list[dict[str, int]]:
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

    A subclass computes a tile.

    Args:
        product: The product.
        factors: Elements of the factor of a tile.
        pixels: Elements of the data for each of them.
        accelerator: The accelerator.
        beside: Input elements of a tile behind those of its data.
        inputs: Input elements before those of all tiles.
        accumulators: Accumulators before those of all tiles.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    def __init__(
        self,
        product: Planes,
        factors: int,
        pixels: int,
        accelerator: Accelerator,
        *,
        beside: int = 0,
        inputs: int = 0,
        accumulators: int = 0,
    ) -> None:
        super().__init__(accelerator)
        self._whole, self.factors, self.pixels = product, factors, pixels
        self._inputs, self._accumulators = inputs, accumulators
        parameters = accelerator.parameters
        self.made = factors * pixels
        """Output elements of a tile."""
        self._box = self.made + beside
        self.tiles = -(-product.factors // factors) * -(-product.pixels // pixels)
        self.places = min(2, self.tiles, max(parameters.inp_depth - inputs, 0) // self._box)
        taken = accumulators + min(2, self.tiles) * self.made
        if not self.places or taken > parameters.acc_depth:
            raise Rejected(
                "acc_overflow", f"a tile of {self.made} takes {inputs + self._box} input and {taken} accumulators"
            )
        if self._box >= FIELD:
            raise Rejected("field_overflow", f"a tile of {self.made} has more elements than an instruction counts")

    def source(self, tile: int) -> int:
        """Return the first input element of a tile."""
        return self._inputs + tile % self.places * self._box

    def begin(self, tile: int) -> int:
        """Return the first accumulator of a tile's output."""
        return self._accumulators + tile % 2 * self.made

    def write_tiles(self) -> None:
        """Add the loads, the computation and the store of each tile."""
        for tile in self.each_tile():
            first, made = tile.factor * self._whole.pixels + tile.pixel, tile.factors * tile.pixels
            self.load(DATA, self.source(tile.number), first, made)
            self.compute(tile)
            self.store(self.begin(tile.number), first, made)

    def compute(self, tile: ProductTile) -> None:
        """Add the load of a tile's factor, and its GEMM and ALU instructions."""
        raise NotImplementedError

    def each_tile(self) -> Iterator[ProductTile]:
        """Yield the tiles in the order in which they are computed."""
        number, whole = 0, self._whole
        for factor in range(0, whole.factors, self.factors):
            for pixel in range(0, whole.pixels, self.pixels):
                factors, pixels = min(self.factors, whole.factors - factor), min(self.pixels, whole.pixels - pixel)
                yield ProductTile(number, factor, factors, pixel, pixels)
                number += 1
