"""A residual added in the convolution's own accumulators: out = clip((conv + bias + (residual << r)) >> shift).

When a tile's accumulators have been reset, its residual is loaded to the input buffer, piece by piece, and
multiplied by an identity block of 2^min(r, 6); the rest of r shifts the accumulators left. The convolution
accumulates on top. The residual lies in memory as the output does, so the tile's STOREs give the part of it that
belongs to the tile. It costs one GEMM micro-op for each output element, and no pass over memory of its own. Each piece
has a reset of its own, which the accelerator folds into the piece's GEMM: one of the whole tile would be executed.
A residual may have fewer channel blocks than the output: those behind them add nothing, and take no time. Its blocks
may be shifted differently, as their weights have scales of their own: each has the identity block of its shift.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode

RESIDUAL, IDENTITY = "residual", "identity"
LARGEST_SHIFT = 22
"""An identity of 2^6 and a left shift by 16 reach it; 2^7 is no int8."""
_IDENTITY_SHIFT = 6
_LOOPS = ("iter_out", "iter_in")


@dataclass(frozen=True)
class SkipBlocks:
    """The channel blocks of an image that a residual has, those of the output, and the elements of a block's plane."""

    given: int
    blocks: int
    plane: int


@dataclass(frozen=True)
class Skip:
    """A layer's residual.

    Attributes:
        shift: Its left shift, the largest one if they differ.
        blocks: Its blocks, if the output has more or if they are shifted differently.
        by_block: The left shift of each block of the output, if they differ; else empty.
    """

    shift: int
    blocks: SkipBlocks | None = None
    by_block: tuple[int, ...] = ()

    @property
    def identities(self) -> list[int]:
        """Return the shifts by an identity block, each once."""
        return sorted({min(shift, _IDENTITY_SHIFT) for shift in self.by_block or (self.shift,)})

    def shift_of(self, block: int) -> int:
        """Return the left shift of a block of the output."""
        return self.by_block[block] if self.by_block else self.shift


def identity_blocks(skip: Skip, accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the weight blocks (identities * block, block) of the residual's GEMMs, one behind another."""
    return np.concatenate([identity_block(shift, accelerator) for shift in skip.identities])


def identity_block(shift: int, accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the weight block (block, block) of the residual's GEMM for a left shift of `shift`."""
    return (np.eye(accelerator.parameters.block, dtype=np.int64) << min(shift, _IDENTITY_SHIFT)).astype(np.int8)


def with_residual(code: Code, skip: Skip, accelerator: Accelerator, spare: int = 0) -> Code:
    """Return `code` with buffers `residual`, packed as the output, and `identity` (`identity_blocks`).

    It leaves `spare` elements of the input buffer. `code` is a convolution's with a bias. Raises Rejected if its tiles
    leave no room for a residual on chip.
    """
    tiles = output_tiles(code)
    identity = code.used(MemoryType.WGT)
    if identity + len(skip.identities) > accelerator.parameters.wgt_depth:
        raise Rejected("wgt_overflow", f"no block of {accelerator.parameters.wgt_depth} is left for the identity")
    sources, size = _places(code, tiles, accelerator.parameters.inp_depth - spare)
    adder = _Adder(code, sources, size, skip)
    for tile in tiles:
        adder.add(tile)
    uops = np.zeros(len(adder.numbers), dtype=UOP)
    uops["dst"], uops["src"], uops["wgt"] = np.array(list(adder.numbers)).T
    uops["wgt"] += identity
    if len(code.uops) + len(uops) > accelerator.uop_depth:
        needed = len(code.uops) + len(uops)
        raise Rejected("uop_overflow", f"{needed} micro-ops with the residual's, of {accelerator.uop_depth}")
    return adder.code(identity, uops)


def _places(code: Code, tiles: list[OutputTile], depth: int) -> tuple[list[int], int]:
    """Return where pieces of the residual lie in turns among `depth` inputs, and the elements of the largest piece."""
    first = code.used(MemoryType.INP)
    room = depth - first
    stores = np.concatenate([code.records[tile.stores] for tile in tiles])
    row = int(stores["x_size"].max())
    largest = int((stores["x_size"].astype(np.int64) * stores["y_size"]).max())
    if row > room:
        raise Rejected("inp_overflow", f"a row of the residual of a tile takes {row} of {room} elements")
    size = min(largest, room // 2 if room // 2 >= row else room)
    return [first, first + size] if 2 * size <= room else [first], size


@dataclass(frozen=True)
class OutputTile:
    """An output tile: the instructions that reset its first accumulators, add its bias and store it."""

    reset: int
    bias: int
    stores: slice
    rows: int
    pixels: int


def output_tiles(code: Code) -> list[OutputTile]:
    """Return the tiles in order; each is reset once, or piece by piece, and its bias added once."""
    records = code.records
    is_alu = records["opcode"] == Opcode.ALU
    begins = np.flatnonzero(is_alu & (records["alu_opcode"] == AluOpcode.ADD) & (records["use_imm"] == 0))
    is_store = records["opcode"] == Opcode.STORE
    ends = np.append(begins[1:], len(records))
    stores = [begin + np.flatnonzero(is_store[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    places = [int(records["sram_base"][own[0]]) for own in stores]
    resets = np.flatnonzero((records["opcode"] == Opcode.GEMM) & (records["reset"] == 1))
    cleared = code.uops["dst"][records["uop_bgn"][resets]]
    resets, cleared = resets[np.isin(cleared, places)], cleared[np.isin(cleared, places)]
    assert cleared.tolist() == places, "tiles end in another order"
    return [
        OutputTile(reset, begin, slice(int(own[0]), int(own[-1]) + 1), *(int(records[reset][loop]) for loop in _LOOPS))
        for reset, begin, own in zip(resets.tolist(), begins.tolist(), stores, strict=True)
    ]


@dataclass(frozen=True)
class _Box:
    """A part of an output tile: where its accumulators begin, and its rows in the residual, `stride` elements apart."""

    target: int
    dram: int
    rows: int
    columns: int
    stride: int
    shift: int
    is_given: bool = True

    @property
    def elements(self) -> int:
        return self.rows * self.columns

    def pieces(self, size: int) -> Iterator[_Box]:
        """Yield its rows in pieces of at most `size` elements, or of one row."""
        rows = max(1, size // self.columns)
        for first in range(0, self.rows, rows):
            yield replace(
                self,
                target=self.target + first * self.columns,
                dram=self.dram + first * self.stride,
                rows=min(rows, self.rows - first),
            )

    def load(self, place: int) -> NDArray[np.void]:
        """Return the LOAD that brings it to an element of the input buffer."""
        load = np.zeros(1, dtype=INSTRUCTION)
        load["opcode"], load["memory_type"], load["sram_base"] = Opcode.LOAD, MemoryType.INP, place
        load["dram_base"], load["x_stride"] = self.dram, self.stride
        load["y_size"], load["x_size"] = self.rows, self.columns
        return load


def _boxes(stores: NDArray[np.void], skip: Skip) -> list[_Box]:
    """Return the parts of a tile that STOREs take; those of blocks that the residual has not got are not given."""
    fields = stores[["sram_base", "dram_base", "y_size", "x_size", "x_stride"]]
    boxes = [
        _Box(place, first, rows, columns, stride, skip.shift) for place, first, rows, columns, stride in fields.tolist()
    ]
    return boxes if skip.blocks is None else [part for box in boxes for part in _split(box, skip, skip.blocks)]


def _split(box: _Box, skip: Skip, own: SkipBlocks) -> Iterator[_Box]:
    """Yield the parts of a box of output of one image and one shift, given or not, where the residual has them."""
    columns = min(box.columns, own.plane)
    starts = (box.dram + box.stride * np.arange(box.rows)[:, None] + np.arange(0, box.columns, columns)).reshape(-1)
    images, blocks = (each.tolist() for each in np.divmod(starts // own.plane, own.blocks))
    places = (starts - np.array(images) * (own.blocks - own.given) * own.plane).tolist()

    def kind(row: int) -> tuple[int, bool, int]:
        return images[row], blocks[row] < own.given, skip.shift_of(blocks[row])

    for (_, is_given, shift), run in groupby(range(len(starts)), key=kind):
        rows = list(run)
        stride = places[rows[1]] - places[rows[0]] if len(rows) > 1 else 0
        part = _Box(box.target + rows[0] * columns, places[rows[0]], len(rows), columns, stride, shift, is_given)
        together = stride == columns
        yield replace(part, rows=1, columns=part.elements, stride=0) if together else part


class _Adder:
    """Writes the code anew with the residual's instructions behind each reset."""

    def __init__(self, code: Code, sources: list[int], size: int, skip: Skip) -> None:
        self._code = code
        self._names = (*code.names, RESIDUAL, IDENTITY)
        self._sources, self._size, self._skip = sources, size, skip
        self._pieces: list[NDArray[np.void]] = []
        self._owners: list[NDArray[np.int64]] = []
        self._done = 0
        self._turn = 0
        self._identities = {shift: number for number, shift in enumerate(skip.identities)}
        self.numbers: dict[tuple[int, int, int], int] = {}
        """Micro-ops by where they add to, where the residual lies, and the identity; they follow the code's."""

    def add(self, tile: OutputTile) -> None:
        """Write the code up to a tile's reset, and its residual."""
        boxes = _boxes(self._code.records[tile.stores], self._skip)
        pieces = [piece for box in boxes for piece in (box.pieces(self._size) if box.is_given else [box])]
        given = sum(piece.is_given for piece in pieces)
        apart = given > 0 and len(pieces) > 1
        self._copy(tile.reset + (not apart))
        self._done = tile.reset + 1
        for piece in pieces:
            self._add_piece(piece, apart=apart)
        if given and not self._skip.by_block and self._skip.shift > _IDENTITY_SHIFT:
            self._emit(_shifted(np.array([self._code.records[tile.reset]]), self._skip.shift), -1)

    def _add_piece(self, piece: _Box, *, apart: bool) -> None:
        """Reset a piece's accumulators if they are apart, and add its part of the residual if it is given."""
        source = self._sources[self._turn % len(self._sources)]
        number = self._number(piece, source)
        if apart:
            self._emit(_gemm(number, piece.elements, reset=1), -1)
        if not piece.is_given:
            return
        self._turn += 1
        self._emit(piece.load(source), self._names.index(RESIDUAL))
        self._emit(_gemm(number, piece.elements, src_factor_in=1), -1)
        if self._skip.by_block and piece.shift > _IDENTITY_SHIFT:
            self._emit(_shifted(_gemm(number, piece.elements, src_factor_in=1), piece.shift), -1)

    def code(self, identity: int, uops: NDArray[np.void]) -> Code:
        """Return the whole, with the identity block loaded to weight element `identity`."""
        self._copy(len(self._code.records))
        records = np.concatenate([_load_identities(identity, len(self._identities)), *self._pieces])
        owners = np.concatenate([np.array([self._names.index(IDENTITY)]), *self._owners])
        all_uops = np.concatenate((self._code.uops, uops))
        loads_uops = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)
        records["x_size"][loads_uops] = len(all_uops)
        return Code(records, owners, self._names, all_uops)

    def _number(self, piece: _Box, source: int) -> int:
        """Return the micro-op that adds a piece of the residual at `source` to its accumulators."""
        place = (piece.target, source, self._identities[min(piece.shift, _IDENTITY_SHIFT)])
        return len(self._code.uops) + self.numbers.setdefault(place, len(self.numbers))

    def _copy(self, end: int) -> None:
        self._pieces.append(self._code.records[self._done : end])
        self._owners.append(self._code.buffers[self._done : end])
        self._done = end

    def _emit(self, records: NDArray[np.void], owner: int) -> None:
        self._pieces.append(records)
        self._owners.append(np.full(len(records), owner))


def _gemm(number: int, elements: int, **more: int) -> NDArray[np.void]:
    """Return a GEMM over neighbouring accumulators, from the destination of a micro-op on."""
    gemm = np.zeros(1, dtype=INSTRUCTION)
    fields = {"uop_bgn": number, "uop_end": number + 1, "iter_out": 1, "iter_in": elements, "dst_factor_in": 1}
    for name, value in {"opcode": Opcode.GEMM, **fields, **more}.items():
        gemm[name] = value
    return gemm


def _shifted(over: NDArray[np.void], shift: int) -> NDArray[np.void]:
    """Return the ALU instruction that shifts accumulators left by the rest of `shift`: those that a GEMM goes over."""
    over["opcode"], over["reset"], over["alu_opcode"], over["use_imm"] = Opcode.ALU, 0, AluOpcode.SHR, 1
    over["imm"] = _IDENTITY_SHIFT - shift
    return over


def _load_identities(place: int, count: int) -> NDArray[np.void]:
    load = np.zeros(1, dtype=INSTRUCTION)
    load["opcode"], load["memory_type"], load["sram_base"] = Opcode.LOAD, MemoryType.WGT, place
    load["y_size"], load["x_size"] = 1, count
    return load
