# ruff: noqa: RUF009 (checked() makes a dataclass field)
"""Records that messages hold: a bitstream, a trial, its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from hilt_runtime.isa import BANDS_OF_BUILD, TABLE_OF_BUILD, WINDOW_OF_BUILD

from .fields import (
    MessageError,
    Record,
    checked,
    is_boolean,
    is_integer,
    is_key,
    is_name,
    is_number,
    is_sha256,
    is_text,
    list_of,
    map_of,
    one_of,
    optional,
    record,
)
from .frames import MAX_BODY_BYTES

MAX_BLOB_BYTES = 1 << 30
OUTCOMES = ("ok", "wrong_answer", "timeout", "crash", "bus_error")
"""The outcomes that a board can see; the words of hilt.trial.Outcome."""

MAX_IMAGE_BYTES = 1 << 25
"""One instruction or micro-op buffer is no larger (HARDWARE.md section 4)."""

SIZE = is_integer(0, MAX_BLOB_BYTES)
COUNT = is_integer(0, (1 << 53) - 1)
SECONDS = is_number(0.0, 1e9)


@dataclass(frozen=True)
class Identity(Record):
    """The values that hilt's registers 0x44, 0x48, 0x4C, 0x50 of the fetch page must read (docs/architecture.md)."""

    version: int = checked(is_integer(0, 0xFFFFFFFF))
    geometry: int = checked(is_integer(0, 0xFFFFFFFF))
    buffer_sizes: int = checked(is_integer(0, 0xFFFFFFFF))
    build: int = checked(is_integer(0, 0xFFFFFFFF))


@dataclass(frozen=True)
class Manifest(Record):
    """The description of a bitstream. Without `identity` only the public register map is used."""

    board: str = checked(is_name)
    part: str = checked(is_name)
    """Part as the .bit header writes it, as in "7z020clg400"."""
    parameters: str = checked(is_name)
    isa: str = checked(one_of("A", "B", "wide"))
    clock_hz: int = checked(is_integer(1, 10**10))
    register_base: int = checked(is_integer(0, (1 << 48) - 1))
    """Physical address of the fetch page; load, compute and store follow at 0x1000 each."""
    identity: Optional[Identity] = checked(optional(record(Identity)), default=None)
    fclk_hz: Optional[int] = checked(optional(is_integer(1, 10**10)), default=None)
    """Clock that the processing system gives the fabric, if a PLL of the design makes `clock_hz` of it."""

    @property
    def table(self) -> bool:
        """Return whether STOREs can go by way of the table."""
        return self.identity is not None and bool(self.identity.build & TABLE_OF_BUILD)

    @property
    def window(self) -> bool:
        """Return whether GEMMs can read inputs of earlier iterations."""
        return self.identity is not None and bool(self.identity.build & WINDOW_OF_BUILD)

    @property
    def bands(self) -> bool:
        """Return whether LOADs of INP can move lanes."""
        return self.identity is not None and bool(self.identity.build & BANDS_OF_BUILD)


@dataclass(frozen=True)
class Input(Record):
    """A tensor the program reads: the bytes of blob `sha256`."""

    name: str = checked(is_name)
    memory: str = checked(one_of("inp", "wgt", "acc"))
    sha256: str = checked(is_sha256)
    bytes: int = checked(is_integer(1, MAX_BLOB_BYTES))
    element_bytes: int = checked(is_integer(1, 1 << 16))


@dataclass(frozen=True)
class Output(Record):
    """The tensor the program writes and its expected values, compared in items of `item`."""

    name: str = checked(is_name)
    bytes: int = checked(is_integer(1, MAX_BLOB_BYTES))
    element_bytes: int = checked(is_integer(1, 1 << 16))
    expected: str = checked(is_sha256)
    item: str = checked(one_of("int8", "int16", "int32"))


@dataclass(frozen=True)
class Relocation(Record):
    """The next `count` uint32 indices in the body: instructions whose dram_base counts from `buffer`."""

    buffer: str = checked(is_name)
    count: int = checked(is_integer(0, MAX_BODY_BYTES // 4))


UOP_BUFFER = "uop"
"""The buffer name of the program's own micro-ops."""


@dataclass(frozen=True)
class TrialRequest(Record):
    """A program and how to run it. Its code: instructions, then micro-ops, then relocation indices."""

    key: str = checked(is_key)
    """"run/ordinal/attempt": a key that the journal knows is answered from it and not run again."""
    bitstream: str = checked(is_sha256)
    """SHA-256 of the bitstream that must be loaded."""
    instructions: int = checked(is_integer(1, 1 << 21))
    instruction_bytes: int = checked(one_of(16, 32))
    uops: int = checked(is_integer(0, 1 << 23))
    uop_bytes: int = checked(one_of(4, 8))
    inputs: Tuple[Input, ...] = checked(list_of(record(Input), 16))
    output: Output = checked(record(Output))
    relocations: Tuple[Relocation, ...] = checked(list_of(record(Relocation), 32))
    dram_base_bit: int = checked(is_integer(0, 32))
    """Bit of an instruction's word 0 where its 32-bit dram_base starts."""
    limit_seconds: float = checked(is_number(1e-6, 3600.0))
    """The longest that one run of the program may take, in seconds of the device."""
    number: int = checked(is_integer(1, 1000), default=1)
    """Runs averaged in one figure."""
    repeat: int = checked(is_integer(1, 1000), default=1)
    """Figures taken; all after the run that is verified."""

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [tensor.name for tensor in self.inputs] + [self.output.name, UOP_BUFFER]
        if len(set(names)) != len(names):
            raise MessageError('TrialRequest: buffer names must differ from each other and from "uop"')
        for relocation in self.relocations:
            if relocation.buffer not in names:
                raise MessageError("TrialRequest.relocations: no buffer {!r}".format(relocation.buffer))
        if max(self.instructions * self.instruction_bytes, self.uops * self.uop_bytes) > MAX_IMAGE_BYTES:
            raise MessageError("TrialRequest: a VTA reads at most {} bytes of code a buffer".format(MAX_IMAGE_BYTES))

    @property
    def code_bytes(self) -> int:
        """Length of the code that belongs to this trial."""
        indices = sum(relocation.count for relocation in self.relocations)
        return self.instructions * self.instruction_bytes + self.uops * self.uop_bytes + 4 * indices

    def check_code(self, code: bytes) -> None:
        """Raise MessageError unless the length of `code` is the one in this trial."""
        if len(code) != self.code_bytes:
            raise MessageError("code of {} bytes, the trial says {}".format(len(code), self.code_bytes))


@dataclass(frozen=True)
class WireVerification(Record):
    """The comparison of every item of the output with the expected tensor."""

    compared: int = checked(COUNT)
    mismatched: int = checked(COUNT)
    first: Optional[int] = checked(optional(COUNT), default=None)
    largest_error: int = checked(COUNT, default=0)


@dataclass(frozen=True)
class Measured(Record):
    """The outcome of a trial; written to the journal before it is sent. Figures are there only for `ok`."""

    key: str = checked(is_key)
    outcome: str = checked(one_of(*OUTCOMES))
    reason: str = checked(is_text(4096), default="")
    sequence: int = checked(COUNT, default=0)
    """Its place in the journal, from 1; the number that Acknowledge names."""
    cycles: Tuple[float, ...] = checked(list_of(is_number(0, 2.0**63), 1000), default=())
    """Per repeat, averaged over `number` runs; empty if the hardware does not count."""
    microseconds: Tuple[float, ...] = checked(list_of(is_number(0, 1e12), 1000), default=())
    """Per repeat, averaged: cycles at the manifest's clock where the hardware counts, else wall clock."""
    verification: Optional[WireVerification] = checked(optional(record(WireVerification)), default=None)
    worker_restarts: int = checked(COUNT, default=0)
    """Workers that this trial cost."""
    canary: Optional[bool] = checked(optional(is_boolean), default=None)
    """The sanity of the board afterwards; None if nothing gave a reason to check."""
    seconds: Dict[str, float] = checked(map_of(SECONDS, 16), default_factory=dict)
    """Wall-clock cost by step."""
    wall_microseconds: Tuple[float, ...] = checked(list_of(is_number(0, 1e12), 1000), default=())
    """The same runs by the wall clock, if the hardware counts: the two clocks check each other."""
