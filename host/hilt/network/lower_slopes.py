"""PRelu on VTA: one of two products, by a channel's factor of data from 0 on and by that of data below 0.

Two GEMMs with diagonal weight blocks make both products in the accumulators, and ALU MAX takes the larger one. It is
the right one unless the factor of data below 0 is the larger factor. Where some channels have such factors, their lower
products are lowered by more than products differ, so that MAX takes the upper ones there; then all lower products are
raised by as much, so that MIN takes the smaller one in these channels, and the result of MAX in the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.product_tiles import ProductTile, ProductWriter
from hilt.network.tile_writer import ADDED, SLOPES
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode

_UPPER, _LOWER, _LOWERING = range(3)
"""The kinds of weight blocks, and the products by them."""
FARTHEST = 254 * 128
"""No more do two products of int8 differ, by an int8 weight each."""


@dataclass(frozen=True)
class Slopes:
    """The larger one of two products by constants of the channels, or in some the smaller one, over packed tensors.

    Attributes:
        factors: Planes: blocks of images times blocks of channels.
        pixels: Elements of a plane.
        blocks: Blocks of channels. Each has a weight block of the upper factors; then each has one of the lower ones,
            and if any is mixed one that lowers the lower products of some channels.
        shifts: By how much the upper and the lower products are shifted right, rounded half up.
        clips: Whether results may leave int8.
        mixed: The blocks of channels of which some take the smaller product.
    """

    factors: int
    pixels: int
    blocks: int
    shifts: tuple[int, int]
    clips: bool
    mixed: tuple[int, ...] = ()

    @property
    def kinds(self) -> int:
        """Return how many kinds of weight blocks there are."""
        return 3 if self.mixed else 2

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: both products and the maximum of each element, and minima if mixed."""
        return (3 * self.blocks + len(self.mixed)) * self.factors // self.blocks * self.pixels


@dataclass(frozen=True)
class _Run:
    """Planes of a tile whose weight blocks lie one behind another: the first, how many, and their first block."""

    plane: int
    planes: int
    block: int


class SlopesWriter(ProductWriter):
    """Writes such a layer. The lower products of every tile have the same accumulators, before those of the output.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    constant = SLOPES

    def __init__(self, work: Slopes, factors: int, pixels: int, accelerator: Accelerator) -> None:
        super().__init__(work, factors, pixels, accelerator, inputs=work.kinds - 2, accumulators=factors * pixels)
        self._work = work
        self.constant_blocks = work.kinds * work.blocks
        if self.constant_blocks > accelerator.parameters.wgt_depth:
            raise Rejected("wgt_overflow", f"{work.blocks} blocks of channels take {self.constant_blocks} of weights")

    def write_micro_ops(self) -> None:
        """Write the maximum of each place of a tile, then the products of all tiles, each once."""
        self.uops += [(self.begin(place), 0) for place in range(min(2, self.tiles))]
        for tile in self.each_tile():
            for run in self._runs(tile):
                for kind in range(self._work.kinds):
                    self.uop_number(*self._operands(tile, run, kind))

    def write_tiles(self) -> None:
        """Load the input that lowers products, if there is one, then add the instructions of all tiles."""
        if self._work.mixed:
            self.load(ADDED, 0, 0, 1)
        super().write_tiles()

    def compute(self, tile: ProductTile) -> None:
        """Multiply by the lower factors and by the upper ones, shift, and take one of the products."""
        upper, lower = self._work.shifts
        made, result = tile.factors * tile.pixels, tile.number % 2
        products = self._first(tile, _LOWER)
        for kind, shift, uop in ((_LOWER, lower, products), (_UPPER, upper, result)):
            self.clear(self._first(tile, kind), made)
            self._multiply(tile, kind)
            if lower != upper:
                self.round(uop, made, shift)
        mixed = any(self._is_mixed(run) for run in self._runs(tile))
        if mixed:
            self._multiply(tile, _LOWERING)
        beside = {"iter_in": made, "dst_factor_in": 1, "src_factor_in": 1}
        self.compute_with(Opcode.ALU, result, result + 1, alu_opcode=AluOpcode.MAX, **beside)
        if mixed:
            self.alu_with([(AluOpcode.ADD, FARTHEST)], products, made)
            self.compute_with(Opcode.ALU, result, result + 1, alu_opcode=AluOpcode.MIN, **beside)
        if lower == upper:
            self.round(result, made, upper)
        if self._work.clips:
            self.clip(result, made, (-128, 127))

    def _is_mixed(self, run: _Run) -> bool:
        return any(run.block <= block < run.block + run.planes for block in self._work.mixed)

    def _first(self, tile: ProductTile, kind: int) -> int:
        """Return the micro-op of a tile's first product of a kind."""
        return self.uop_number(*self._operands(tile, next(self._runs(tile)), kind))

    def _multiply(self, tile: ProductTile, kind: int) -> None:
        """Add the products of a kind to a tile's accumulators."""
        for run in self._runs(tile):
            uop = self.uop_number(*self._operands(tile, run, kind))
            each = {"iter_out": run.planes, "dst_factor_out": tile.pixels, "wgt_factor_out": 1}
            inner = {"iter_in": tile.pixels, "dst_factor_in": 1}
            data = {} if kind == _LOWERING else {"src_factor_out": tile.pixels, "src_factor_in": 1}
            self.compute_with(Opcode.GEMM, uop, uop + 1, **each, **inner, **data)

    def _operands(self, tile: ProductTile, run: _Run, kind: int) -> tuple[int, int, int]:
        first = run.plane * tile.pixels
        begin = self.begin(tile.number) if kind == _UPPER else 0
        source = 0 if kind == _LOWERING else self.source(tile.number) + first
        return begin + first, source, run.block + kind * self._work.blocks

    def _runs(self, tile: ProductTile) -> Iterator[_Run]:
        """Yield a tile's planes in runs within one image's blocks of channels."""
        plane = 0
        while plane < tile.factors:
            block = (tile.factor + plane) % self._work.blocks
            planes = min(tile.factors - plane, self._work.blocks - block)
            yield _Run(plane, planes, block)
            plane += planes
