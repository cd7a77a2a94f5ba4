"""A program for a VTA, independent of where in memory its buffers will lie."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType

MAX_IMAGE_BYTES = 1 << 25
"""One instruction or micro-op buffer is no larger (HARDWARE.md section 4)."""


class ProgramError(ValueError):
    """A program that cannot be, or an address where it cannot be placed."""


@dataclass(frozen=True, eq=False)
class Buffer:
    """A piece of memory that the program reads or writes: `uop`, `out`, or an input, which the operator names.

    Memory that is written as outputs and read as weights is there twice by its name, once for each size of elements.
    `instructions` (int64, ascending) are the LOADs and STOREs whose dram_base counts `element_bytes` from its start.
    """

    name: str
    memory_type: MemoryType
    bytes: int
    element_bytes: int
    instructions: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Program:
    """Instructions uint64 (n, words), micro-ops uint32 (m, words) and buffers, encoded for one parameter set and ISA.

    `dram_base` counts from its buffer's start. Before it runs, `physical address / element_bytes` of the buffer is
    added at bit `dram_base_bit` of word 0 of each of the buffer's instructions, and 0 is written to the address
    registers (HARDWARE.md section 4). The micro-ops are the contents of buffer `uop`. Raises ProgramError where it is
    malformed.
    """

    parameters: str
    isa: str
    instructions: NDArray[np.uint64]
    uops: NDArray[np.uint32]
    buffers: tuple[Buffer, ...]
    dram_base_bit: int

    def __post_init__(self) -> None:
        for name, array, dtype in (("instructions", self.instructions, np.uint64), ("uops", self.uops, np.uint32)):
            if array.dtype != dtype or array.ndim != 2:
                raise ProgramError(f"{name} are {array.dtype} {array.shape}; they must be {np.dtype(dtype)} (n, words)")
            if array.nbytes > MAX_IMAGE_BYTES:
                raise ProgramError(f"{name} take {array.nbytes} bytes; a VTA reads at most {MAX_IMAGE_BYTES}")
        for buffer in self.buffers:
            indices = buffer.instructions
            if indices.size and not 0 <= int(indices[0]) <= int(indices[-1]) < len(self.instructions):
                raise ProgramError(f"buffer {buffer.name} counts instructions that the program does not have")

    @classmethod
    def assemble(
        cls,
        accelerator: Accelerator,
        instructions: NDArray[np.uint64],
        uops: NDArray[np.uint32],
        buffers: tuple[Buffer, ...],
    ) -> Program:
        """A program in the encoding of `accelerator`."""
        bit = accelerator.formats.memory.by_name["dram_base"].bit
        return cls(accelerator.parameters.name, str(accelerator.isa), instructions, uops, buffers, bit)

    def buffer(self, name: str) -> Buffer:
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise ProgramError(f"the program has no buffer {name!r}; it has {', '.join(b.name for b in self.buffers)}")

    def relocated(self, addresses: Mapping[str, int]) -> NDArray[np.uint64]:
        """The instructions for buffers at these physical byte addresses, one for each buffer by name.

        Raises ProgramError where a buffer has no address, or one that is not a multiple of its element.
        """
        placed = self.instructions.copy()
        for buffer in self.buffers:
            if buffer.name not in addresses:
                raise ProgramError(f"buffer {buffer.name} has no address")
            address = addresses[buffer.name]
            base, rest = divmod(address, buffer.element_bytes)
            where = f"buffer {buffer.name} at {address:#x}"
            if rest:
                raise ProgramError(f"{where} is not aligned to its {buffer.element_bytes}-byte elements")
            if (address + buffer.bytes - 1) // buffer.element_bytes >> 32:
                raise ProgramError(f"{where} ends past a 32-bit element index")
            placed[buffer.instructions, 0] += np.uint64(base << self.dram_base_bit)
        return placed

    @cached_property
    def sha256(self) -> str:
        """Return the hash of the whole program. Programs with the same hash are the same."""
        digest = hashlib.sha256(f"{self.parameters} {self.isa} {self.dram_base_bit}".encode())
        for name, shape, contents in self._parts():
            digest.update(f" {name} {shape} ".encode())
            digest.update(contents)
        return digest.hexdigest()

    def _parts(self) -> list[tuple[str, tuple[int, ...], bytes]]:
        parts = [
            ("instructions", self.instructions.shape, self.instructions.astype("<u8", copy=False).tobytes()),
            ("uops", self.uops.shape, self.uops.astype("<u4", copy=False).tobytes()),
        ]
        for buffer in self.buffers:
            kind = (int(buffer.memory_type), buffer.bytes, buffer.element_bytes, len(buffer.instructions))
            parts.append((buffer.name, kind, buffer.instructions.astype("<i8", copy=False).tobytes()))
        return parts
