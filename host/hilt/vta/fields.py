"""Field positions of instructions, computed from parameters and ISA revision.

Source: HARDWARE.md section 2; the wide ISA: docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hilt.vta.parameters import VTAParameters


class IsaRevision(StrEnum):
    """A: public bitstreams before December 2020. B: after. WIDE: hilt's own, for parameters that overflow both."""

    A = "A"
    B = "B"
    WIDE = "wide"

    @property
    def number(self) -> int:
        """Return the number in registers and macros."""
        return {"A": 0, "B": 1, "wide": 2}[self.value]


class FieldOverflowError(ValueError):
    """A value, or the field itself, does not fit its word; `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Field:
    """`width` bits from `bit` of 64-bit word `word`."""

    name: str
    word: int
    bit: int
    width: int
    signed: bool = False

    @cached_property
    def low(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @cached_property
    def high(self) -> int:
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1

    @cached_property
    def mask(self) -> int:
        """Its bits, from bit 0."""
        return (1 << self.width) - 1

    def check(self, value: int) -> None:
        """Raises FieldOverflowError where it does not fit."""
        if not self.low <= value <= self.high:
            raise FieldOverflowError(self.name, f"{self.name} = {value} does not fit {self.low}..{self.high}")


class Format:
    """One instruction form: packs columns of field values into words, and back."""

    def __init__(self, words: int, fields: tuple[Field, ...]) -> None:
        self.words = words
        self.fields = fields
        self.by_name = {field.name: field for field in fields}

    def pack(
        self, columns: Mapping[str, int | NDArray[np.int64]], count: int, wrap: bool = False
    ) -> NDArray[np.uint64]:
        """Words (count, words) of `columns`, each an int or an array (count,); a field that is not named is 0.

        With `wrap`, a value that does not fit keeps its low bits. Raises FieldOverflowError where one does not fit,
        KeyError for a name this form does not have.
        """
        constants = {name: value for name, value in columns.items() if isinstance(value, int)}
        packed = np.empty((count, self.words), dtype=np.uint64)
        packed[:] = self.words_of(constants, wrap)
        for name, values in columns.items():
            if isinstance(values, int) or not values.size:
                continue
            field = self.by_name[name]
            # Negative values are large ones here.
            bits = values.astype(np.int64, copy=False).view(np.uint64)
            if not wrap and (field.signed or int(bits.max()) > field.high):
                field.check(int(values.min()))
                field.check(int(values.max()))
            if wrap or field.signed:
                bits = bits & np.uint64(field.mask)
            packed[:, field.word] |= bits << np.uint64(field.bit)
        return packed

    def words_of(self, values: Mapping[str, int], wrap: bool = False) -> list[int]:
        """The words of one instruction, as pack makes them."""
        words = [0] * self.words
        for name, value in values.items():
            field = self.by_name[name]
            if not wrap:
                field.check(value)
            words[field.word] |= (value & field.mask) << field.bit
        return words

    def unpack(self, words: NDArray[np.uint64]) -> dict[str, NDArray[np.int64]]:
        """The fields of `words` (n, words), each as (n,)."""
        columns = {}
        for field in self.fields:
            bits = (words[:, field.word] >> np.uint64(field.bit)) & np.uint64((1 << field.width) - 1)
            values = bits.astype(np.int64)
            if field.signed:
                values = np.where(values > field.high, values - (1 << field.width), values)
            columns[field.name] = values
        return columns


@dataclass(frozen=True)
class Formats:
    """The forms of one ISA: LOAD and STORE, GEMM (and FINISH, which has only its first five fields), ALU, micro-op."""

    memory: Format
    gemm: Format
    alu: Format
    uop: Format

    @property
    def instruction_words(self) -> int:
        """64-bit words of an instruction: 2, or 4 in the wide ISA."""
        return self.gemm.words


_COMMON = (("opcode", 3), ("pop_prev", 1), ("pop_next", 1), ("push_prev", 1), ("push_next", 1))
_SIZES = (
    *(("y_size", 16), ("x_size", 16), ("x_stride", 16)),
    *(("y_pad_0", 4), ("y_pad_1", 4), ("x_pad_0", 4), ("x_pad_1", 4)),
)


@lru_cache(maxsize=64)
def formats(parameters: VTAParameters, isa: IsaRevision) -> Formats:
    """The tables of this ISA. Raises FieldOverflowError, naming the field, where revision A or B cannot hold it."""
    return _wide() if isa is IsaRevision.WIDE else _narrow(parameters, isa)


def _narrow(parameters: VTAParameters, isa: IsaRevision) -> Formats:
    newer = isa is IsaRevision.B
    uop = parameters.log_uop_buff_size - 2  # a micro-op has 4 bytes
    depths = (parameters.inp_depth, parameters.wgt_depth, parameters.acc_depth)
    inp, wgt, acc = (depth.bit_length() - 1 for depth in depths)
    loops = (*_COMMON, ("reset", 1), ("uop_bgn", uop), ("uop_end", uop + 1), ("iter_out", 14), ("iter_in", 14))
    immediate = (("alu_opcode", 3 if newer else 2), ("use_imm", 1), ("imm", 16))
    names = f"{parameters.name} in ISA revision {isa}"
    return Formats(
        memory=_consecutive(
            names, 64, (*_COMMON, ("memory_type", 3 if newer else 2), ("sram_base", 16), ("dram_base", 32)), _SIZES
        ),
        gemm=_consecutive(
            names,
            64,
            loops,
            (
                ("dst_factor_out", acc),
                ("dst_factor_in", acc),
                ("src_factor_out", inp),
                ("src_factor_in", inp),
                ("wgt_factor_out", wgt),
                ("wgt_factor_in", wgt),
            ),
        ),
        alu=_consecutive(
            names,
            64,
            loops,
            (
                ("dst_factor_out", acc),
                ("dst_factor_in", acc),
                ("src_factor_out", acc),
                ("src_factor_in", acc),
                *immediate,
            ),
        ),
        uop=_consecutive(names, 32, (("dst", acc), ("src", inp), ("wgt", wgt))),
    )


def _consecutive(names: str, word_bits: int, *words: tuple[tuple[str, int], ...]) -> Format:
    """Fields one after another, each group from bit 0 of its own word."""
    fields = []
    for number, group in enumerate(words):
        bit = 0
        for name, width in group:
            if bit + width > word_bits:
                needed = f"bits {bit}..{bit + width - 1} of a {word_bits}-bit word"
                raise FieldOverflowError(name, f"{names}: field {name} needs {needed}; use the wide ISA")
            fields.append(Field(name, number, bit, width, signed=name == "imm"))
            bit += width
    return Format(len(words), tuple(fields))


def _wide() -> Formats:
    common = (*(Field(name, 0, bit, width) for (name, width), bit in zip(_COMMON, (0, 3, 4, 5, 6), strict=True)),)
    sizes = _consecutive("", 64, _SIZES).fields
    loops = (
        *common,
        Field("reset", 0, 7, 1),
        Field("uop_bgn", 0, 32, 32),
        Field("uop_end", 1, 0, 32),
        Field("iter_out", 1, 32, 16),
        Field("iter_in", 1, 48, 16),
        *(
            Field(f"{index}_factor_{loop}", word, bit, 21)
            for word, loop in ((2, "out"), (3, "in"))
            for index, bit in (("dst", 0), ("src", 21))
        ),
    )
    return Formats(
        memory=Format(
            4,
            (
                *common,
                Field("memory_type", 0, 8, 3),
                Field("sram_base", 0, 16, 16),
                Field("dram_base", 0, 32, 32),
                *(Field(field.name, 1, field.bit, field.width) for field in sizes),
            ),
        ),
        gemm=Format(4, (*loops, Field("wgt_factor_out", 2, 42, 21), Field("wgt_factor_in", 3, 42, 21))),
        alu=Format(
            4,
            (*loops, Field("alu_opcode", 0, 11, 3), Field("use_imm", 0, 14, 1), Field("imm", 0, 16, 16, signed=True)),
        ),
        uop=Format(1, (Field("dst", 0, 0, 21), Field("src", 0, 21, 21), Field("wgt", 0, 42, 21))),
    )
