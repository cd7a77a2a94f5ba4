"""Instructions packed into words and back, by the fields that parameters and ISA revision give (hilt_runtime.isa)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hilt.vta.parameters import VTAParameters
from hilt_runtime import isa as isa_of_the_board
from hilt_runtime.isa import FieldOverflowError as FieldOverflowError


class IsaRevision(StrEnum):
    """A: public bitstreams before December 2020. B: after. WIDE: hilt's own, for parameters that overflow both."""

    A = "A"
    B = "B"
    WIDE = "wide"

    @property
    def number(self) -> int:
        """Return the number in registers and macros."""
        return {"A": 0, "B": 1, "wide": 2}[self.value]


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


@lru_cache(maxsize=64)
def formats(parameters: VTAParameters, isa: IsaRevision) -> Formats:
    """The tables of this ISA. Raises FieldOverflowError, naming the field, where revision A or B cannot hold it."""
    table = isa_of_the_board.formats(isa_of_the_board.geometry(parameters.name), str(isa))

    def form(words: int, fields: Iterable[isa_of_the_board.FieldPlace]) -> Format:
        return Format(words, tuple(Field(*field) for field in fields))

    return Formats(
        memory=form(table.words, table.memory),
        gemm=form(table.words, table.gemm),
        alu=form(table.words, table.alu),
        uop=form(1, table.uop),
    )
