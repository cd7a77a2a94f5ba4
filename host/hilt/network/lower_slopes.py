"""PRelu on VTA: a channel has a factor of data from 0 on, the upper one, and a factor of data below 0, the lower one.

GEMMs with diagonal weight blocks multiply. Where no lower factor is above the upper one, the result is the larger one
of both products, by ALU MAX. Else it is the lower product plus that of the factors' difference, which ALU MAX and MIN
keep from falling below 0, or in channels with the larger lower factor from rising above 0: bounds of the channels lie
in the accumulators throughout. A constant may be added to the rounded results, mostly by the addition that rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.product_tiles import ProductTile, ProductWriter
from hilt.network.tile_writer import ADDED, SLOPES
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode

_FIRST, _LOWER, _BOUND = range(3)
"""The kinds of weight blocks."""
BOUND = 254 * 128
"""No product of int8 and an int8 weight reaches it."""


@dataclass(frozen=True)
class Slopes:
    """Functions of the channels that have one factor of data from 0 on and one of data below 0, over packed tensors.

    Attributes:
        factors: Planes: blocks of images times blocks of channels.
        pixels: Elements of a plane.
        blocks: Blocks of channels. Each has a weight block of the upper factors, or of the factors' differences if any
            block is mixed; then each has one of the lower factors; then, if any is mixed, one that makes its bounds.
        shifts: By how much upper and lower products are shifted right, rounded half up.
        mixed: Blocks with a channel whose lower factor is the larger one.
        below: Blocks whose results may be less than int8.
        above: Blocks whose results may be more than int8.
        offset: The number that is added to all results.
    """

    factors: int
    pixels: int
    blocks: int
    shifts: tuple[int, int]
    mixed: tuple[int, ...] = ()
    below: tuple[int, ...] = ()
    above: tuple[int, ...] = ()
    offset: int = 0

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: both products and a maximum of each element, and minima if mixed."""
        return (3 * self.blocks + len(self.mixed)) * self.factors // self.blocks * self.pixels


@dataclass(frozen=True)
class _Run:
    """Planes of a tile whose weight blocks lie one behind another: the first, how many, and their first block."""

    plane: int
    planes: int
    block: int


class SlopesWriter(ProductWriter):
    """Writes such a layer. Before the accumulators of its tiles lie one tile's lower products, or all bounds.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    constant = SLOPES

    def __init__(self, work: Slopes, factors: int, pixels: int, accelerator: Accelerator) -> None:
        before = 2 * work.blocks if work.mixed else factors * pixels
        super().__init__(work, factors, pixels, accelerator, inputs=int(bool(work.mixed)), accumulators=before)
        self._work = work
        self._pairs: dict[tuple[int, int], int] = {}
        self.constant_blocks = (3 if work.mixed else 2) * work.blocks
        if self.constant_blocks > accelerator.parameters.wgt_depth:
            raise Rejected("wgt_overflow", f"{work.blocks} blocks of channels take {self.constant_blocks} of weights")

    def write_micro_ops(self) -> None:
        """Write the micro-ops that the instructions name, each once."""
        self.write_tiles()
        self.forget_instructions()

    def write_tiles(self) -> None:
        """Make the bounds, if there are any, then the tiles."""
        if self._work.mixed:
            self._write_bounds()
        super().write_tiles()

    def _write_bounds(self) -> None:
        """Make the least differences of all blocks, then the largest ones: they are 0, or out of reach."""
        blocks = self._work.blocks
        self.load(ADDED, 0, 0, 1)
        for first in (0, blocks):
            uop = self.uop_number(first, 0, _BOUND * blocks)
            self.clear(uop, blocks)
            self.compute_with(Opcode.GEMM, uop, uop + 1, iter_in=blocks, dst_factor_in=1, wgt_factor_in=1)
        self.alu_with([(AluOpcode.ADD, BOUND)], self.uop_number(blocks, 0, _BOUND * blocks), blocks)

    def compute(self, tile: ProductTile) -> None:
        """Multiply a tile, bend, shift and clip it."""
        made, result = tile.factors * tile.pixels, self._first(tile, _FIRST)
        if self._work.mixed:
            self._bend_differences(tile)
        else:
            self._take_larger(tile)
        if self._has(tile, self._work.below):
            self.alu_with([(AluOpcode.MAX, -128)], result, made)
        if self._has(tile, self._work.above):
            self.alu_with([(AluOpcode.MIN, 127)], result, made)

    def _take_larger(self, tile: ProductTile) -> None:
        """Make both products, shift them, and take the larger one."""
        (upper, lower), offset = self._work.shifts, self._work.offset
        made = tile.factors * tile.pixels
        for kind, shift in ((_LOWER, lower), (_FIRST, upper)):
            self.clear(self._first(tile, kind), made)
            self._multiply(tile, kind)
            if lower != upper:
                self.round(self._first(tile, kind), made, shift, offset)
        pair = self._pair(self.begin(tile.number), 0)
        beside = {"iter_in": made, "dst_factor_in": 1, "src_factor_in": 1}
        self.compute_with(Opcode.ALU, pair, pair + 1, alu_opcode=AluOpcode.MAX, **beside)
        if lower == upper:
            self.round(self._first(tile, _FIRST), made, upper, offset)

    def _bend_differences(self, tile: ProductTile) -> None:
        """Make the products of differences, keep them within their bounds, add the lower products, and shift."""
        made, result = tile.factors * tile.pixels, self._first(tile, _FIRST)
        self.clear(result, made)
        self._multiply(tile, _FIRST)
        if self._has(tile, self._work.mixed):
            for opcode, bounds in ((AluOpcode.MAX, 0), (AluOpcode.MIN, self._work.blocks)):
                self._keep_within(tile, opcode, bounds)
        else:
            self.alu_with([(AluOpcode.MAX, 0)], result, made)
        self._multiply(tile, _LOWER)
        self.round(result, made, self._work.shifts[0], self._work.offset)

    def _keep_within(self, tile: ProductTile, opcode: AluOpcode, bounds: int) -> None:
        """Take the maximum or minimum of each plane and its bounds, which lie from an accumulator on."""
        for run in self._runs(tile):
            pair = self._pair(self.begin(tile.number) + run.plane * tile.pixels, bounds + run.block)
            each = {"iter_out": run.planes, "dst_factor_out": tile.pixels, "src_factor_out": 1}
            inner = {"iter_in": tile.pixels, "dst_factor_in": 1}
            self.compute_with(Opcode.ALU, pair, pair + 1, alu_opcode=opcode, **each, **inner)

    def _multiply(self, tile: ProductTile, kind: int) -> None:
        """Add the products of a kind to a tile's accumulators."""
        for run in self._runs(tile):
            uop = self.uop_number(*self._operands(tile, run, kind))
            each = {"iter_out": run.planes, "dst_factor_out": tile.pixels, "wgt_factor_out": 1}
            inner = {"iter_in": tile.pixels, "dst_factor_in": 1}
            sources = {"src_factor_out": tile.pixels, "src_factor_in": 1}
            self.compute_with(Opcode.GEMM, uop, uop + 1, **each, **inner, **sources)

    def _first(self, tile: ProductTile, kind: int) -> int:
        """Return the micro-op of a tile's first product of a kind."""
        return self.uop_number(*self._operands(tile, next(self._runs(tile)), kind))

    def _operands(self, tile: ProductTile, run: _Run, kind: int) -> tuple[int, int, int]:
        first = run.plane * tile.pixels
        apart = kind == _LOWER and not self._work.mixed
        begin = 0 if apart else self.begin(tile.number)
        return begin + first, self.source(tile.number) + first, run.block + kind * self._work.blocks

    def _pair(self, first: int, second: int) -> int:
        """Return the number of a micro-op of two accumulators, which is added if it is new."""
        number = self._pairs.setdefault((first, second), len(self.uops))
        if number == len(self.uops):
            self.uops.append((first, second))
        return number

    def _has(self, tile: ProductTile, blocks: tuple[int, ...]) -> bool:
        """Return whether a tile has any of some blocks of channels."""
        runs = self._runs(tile)
        return any(run.block <= block < run.block + run.planes for run in runs for block in blocks)

    def _runs(self, tile: ProductTile) -> Iterator[_Run]:
        """Yield a tile's planes in runs within one image's blocks of channels."""
        plane = 0
        while plane < tile.factors:
            block = (tile.factor + plane) % self._work.blocks
            planes = min(tile.factors - plane, self._work.blocks - block)
            yield _Run(plane, planes, block)
            plane += planes
