"""Parameters and instruction formats of a VTA: sizes of elements and buffers, and the place of each field.

Source: HARDWARE.md section 2; the wide ISA: docs/architecture.md.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Dict, NamedTuple, Sequence, Tuple, Type

import numpy as np

LOAD, STORE, GEMM, FINISH, ALU = range(5)
UOP, WGT, INP, ACC, OUT, ACC_8BIT, OUT_BY_TABLE, TABLE = range(8)
MEMORY_NAMES = ("UOP", "WGT", "INP", "ACC", "OUT", "ACC_8BIT", "OUT by way of the table", "OUT to the table")
REVISIONS = ("A", "B", "wide")
TOKEN_QUEUE_DEPTH = 1024
"""Tokens that wait between two stages, at most."""

TABLE_BYTES = 256
TABLE_OF_BUILD = 1 << 13
"""The bit of the register `build` that says that the accelerator has the table."""
READ_PORTS_OF_BUILD = 3 << 14
"""The bits of the register `build` that hold the log2 of the read ports."""
WINDOW_OF_BUILD = 1 << 16
"""The bit of the register `build` that says that the accelerator has window GEMMs."""
WINDOW_COLUMNS = 3
"""Columns of a window GEMM's window."""
WINDOW_LINE = 128
"""The most columns of a row that a window GEMM goes over."""

BANDS_OF_BUILD = 1 << 17
"""The bit of the register `build` that says that LOADs of INP move lanes."""
BANDED_BATCHES = (2, 4)
"""The batches of accelerators whose LOADs of INP can move lanes."""

_NAME = re.compile(r"(\d{1,3})x(\d{1,3})_i8w8a32_(\d\d?)_(\d\d?)_(\d\d?)_(\d\d?)")
_LARGEST_BATCH, _LARGEST_BLOCK, _LARGEST_DEPTH, _LARGEST_UOP_LOG = 16, 64, 1 << 16, 18


class ParametersError(ValueError):
    """A name that is no parameter set's."""


class FieldOverflowError(ValueError):
    """A value, or the field itself, does not fit its word; `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field

    def __reduce__(self) -> Tuple[Type["FieldOverflowError"], Tuple[str, str]]:
        """Survive the way back from another process."""
        return type(self), (self.field, str(self))


class Sizes(NamedTuple):
    """The sizes that a parameter set fixes; depths in elements."""

    name: str
    batch: int
    block: int
    log_uop_bytes: int
    inp_depth: int
    wgt_depth: int
    acc_depth: int

    def element_bytes(self, isa: str) -> Tuple[int, ...]:
        """Return the bytes in memory of one element, by memory type."""
        lanes = self.batch * self.block
        return uop_bytes(isa), self.block * self.block, lanes, 4 * lanes, lanes, lanes, lanes, lanes

    @property
    def table_elements(self) -> int:
        """Return the elements of OUT that a STORE writes to the table; of one that is larger, the first 256 bytes."""
        return max(1, TABLE_BYTES // (self.batch * self.block))

    def depths(self, isa: str) -> Tuple[int, ...]:
        """Return the elements of the buffer on chip, by memory type."""
        uops = (1 << self.log_uop_bytes) // uop_bytes(isa)
        return uops, self.wgt_depth, self.inp_depth, *(self.acc_depth,) * 5


def uop_bytes(isa: str) -> int:
    """Return the bytes of a micro-op."""
    return 8 if isa == "wide" else 4


def geometry(name: str) -> Sizes:
    """Return the sizes of the parameters that VTA names so. Raises ParametersError."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ParametersError("{!r} names no VTA parameters".format(name[:80]))
    batch, block, uop, inp, wgt, acc = (int(text) for text in match.groups())
    fits = _is_power(batch, _LARGEST_BATCH) and block >= 4 and _is_power(block, _LARGEST_BLOCK)
    if not fits or not 4 <= uop <= _LARGEST_UOP_LOG or max(inp, wgt, acc) > 31:
        raise ParametersError("{!r} names parameters that no VTA has".format(name))
    lanes = batch * block
    depths = [(1 << inp) // lanes, (1 << wgt) // (block * block), (1 << acc) // (4 * lanes)]
    if not all(2 <= depth <= _LARGEST_DEPTH for depth in depths):
        raise ParametersError("{!r} names buffers that no VTA has: each holds 2 to 65536 elements".format(name))
    return Sizes(name, batch, block, uop, *depths)


def _is_power(value: int, most: int) -> bool:
    return 0 < value <= most and not value & (value - 1)


def window_rows(block: int) -> int:
    """Return the rows of a window: an output has two multipliers for each of its taps. 0: the block is too small."""
    return min(3, block // (2 * WINDOW_COLUMNS)) if block >= 16 else 0


def store_types(written: Any, isa: str, table: bool) -> Any:
    """Return the memory types of STOREs as the accelerator reads the field: OUT, OUT_BY_TABLE or TABLE.

    Revision A has the low two bits only. Without a table, the field says nothing.
    """
    kinds = written | np.array(4, written.dtype) if isa == "A" else written
    return np.where((kinds >= OUT_BY_TABLE) & table, kinds, OUT)


class FieldPlace(NamedTuple):
    """`width` bits from `bit` of 64-bit word `word`."""

    name: str
    word: int
    bit: int
    width: int
    signed: bool = False


_Fields = Tuple[FieldPlace, ...]
_Widths = Sequence[Tuple[str, int]]


class FieldPlaces(NamedTuple):
    """The fields of LOAD and STORE, of GEMM (and FINISH, which has its first five only), of ALU, and of a micro-op."""

    words: int
    """64-bit words of an instruction."""
    memory: _Fields
    gemm: _Fields
    alu: _Fields
    uop: _Fields


_COMMON = (("opcode", 3), ("pop_prev", 1), ("pop_next", 1), ("push_prev", 1), ("push_next", 1))
_LANES = (("lane_shift", 2), ("lanes_kept", 4))
"""Fields of a LOAD of INP: lane k takes lane k + 0, 1, 2 or -1 of memory, and a bit for each lane keeps its content."""
_BLOCK = (
    *(("y_size", 16), ("x_size", 16), ("x_stride", 16)),
    *(("y_pad_0", 4), ("y_pad_1", 4), ("x_pad_0", 4), ("x_pad_1", 4)),
)


@lru_cache(maxsize=64)
def formats(sizes: Sizes, isa: str) -> FieldPlaces:
    """Return the fields of an ISA revision. Raises FieldOverflowError where A or B cannot hold the parameters."""
    return _wide() if isa == "wide" else _narrow(sizes, isa)


def _narrow(sizes: Sizes, isa: str) -> FieldPlaces:
    newer = isa == "B"
    uop = sizes.log_uop_bytes - 2
    inp, wgt, acc = (depth.bit_length() - 1 for depth in (sizes.inp_depth, sizes.wgt_depth, sizes.acc_depth))
    loops = (*_COMMON, ("reset", 1), ("uop_bgn", uop), ("uop_end", uop + 1), ("iter_out", 14), ("iter_in", 14))
    dst = (("dst_factor_out", acc), ("dst_factor_in", acc))
    immediate = (("alu_opcode", 3 if newer else 2), ("use_imm", 1), ("imm", 16))
    names = "{} in ISA revision {}".format(sizes.name, isa)
    place = (*_COMMON, ("memory_type", 3 if newer else 2), ("sram_base", 16), ("dram_base", 32), *_LANES)
    window = FieldPlace("window", 0, 63, 1)
    products = (("src_factor_out", inp), ("src_factor_in", inp), ("wgt_factor_out", wgt), ("wgt_factor_in", wgt))
    sums = (("src_factor_out", acc), ("src_factor_in", acc))
    return FieldPlaces(
        2,
        memory=_consecutive(names, 64, place, _BLOCK),
        gemm=(*_consecutive(names, 64, loops, (*dst, *products)), window),
        alu=_consecutive(names, 64, loops, (*dst, *sums, *immediate)),
        uop=_consecutive(names, 32, (("dst", acc), ("src", inp), ("wgt", wgt))),
    )


def _consecutive(names: str, word_bits: int, *words: _Widths) -> _Fields:
    """Return fields one after another, each group from bit 0 of its own word."""
    fields = []
    for number, group in enumerate(words):
        bit = 0
        for name, width in group:
            if bit + width > word_bits:
                needed = "bits {}..{} of a {}-bit word".format(bit, bit + width - 1, word_bits)
                text = "{}: field {} needs {}; use the wide ISA"
                raise FieldOverflowError(name, text.format(names, name, needed))
            fields.append(FieldPlace(name, number, bit, width, name == "imm"))
            bit += width
    return tuple(fields)


def _wide() -> FieldPlaces:
    common = tuple(FieldPlace(name, 0, bit, width) for (name, width), bit in zip(_COMMON, (0, 3, 4, 5, 6)))
    place = (FieldPlace("memory_type", 0, 8, 3), FieldPlace("sram_base", 0, 16, 16), FieldPlace("dram_base", 0, 32, 32))
    block = tuple(field._replace(word=1) for field in _consecutive("", 64, _BLOCK))
    loops = (
        *common,
        FieldPlace("reset", 0, 7, 1),
        FieldPlace("uop_bgn", 0, 32, 32),
        FieldPlace("uop_end", 1, 0, 32),
        FieldPlace("iter_out", 1, 32, 16),
        FieldPlace("iter_in", 1, 48, 16),
        *(
            FieldPlace("{}_factor_{}".format(index, loop), word, bit, 21)
            for word, loop in ((2, "out"), (3, "in"))
            for index, bit in (("dst", 0), ("src", 21))
        ),
    )
    lanes = tuple(field._replace(word=2) for field in _consecutive("", 64, _LANES))
    return FieldPlaces(
        4,
        memory=(*common, *place, *block, *lanes),
        gemm=(
            *loops,
            FieldPlace("wgt_factor_out", 2, 42, 21),
            FieldPlace("wgt_factor_in", 3, 42, 21),
            FieldPlace("window", 0, 8, 1),
        ),
        alu=(
            *loops,
            FieldPlace("alu_opcode", 0, 11, 3),
            FieldPlace("use_imm", 0, 14, 1),
            FieldPlace("imm", 0, 16, 16, True),
        ),
        uop=(FieldPlace("dst", 0, 0, 21), FieldPlace("src", 0, 21, 21), FieldPlace("wgt", 0, 42, 21)),
    )


def field_of(fields: _Fields, name: str) -> FieldPlace:
    """Return the field of this name."""
    return next(field for field in fields if field.name == name)


def unpack(words: Any, fields: _Fields) -> Dict[str, Any]:
    """Return the fields of `words`, uint64 (n, words), each as int64 (n,)."""
    columns = {}
    for field in fields:
        bits = (words[:, field.word] >> np.uint64(field.bit)) & np.uint64((1 << field.width) - 1)
        values = bits.astype(np.int64)
        if field.signed:
            values = np.where(values >> (field.width - 1), values - (1 << field.width), values)
        columns[field.name] = values
    return columns
