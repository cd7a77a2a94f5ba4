"""One layer's instructions, as the schedule's lowering makes them, ready to be joined with other layers'."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.chain_tokens import Records
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import UOP, MemoryType, Opcode, decode, decode_uops, multiplies
from hilt.vta.program import Program

_LOADED = (MemoryType.INP, MemoryType.WGT, MemoryType.ACC, MemoryType.UOP)


@dataclass(frozen=True, eq=False)
class Code:
    """A layer's instructions in an order in which they may run one after another; no tokens, no FINISH.

    `records` are INSTRUCTION records (n,), each dram_base counted from the start of its buffer; `buffers` (n,) are
    positions in `names`, -1 if an instruction touches no memory. `uops` are UOP records (m,); one LOAD brings
    all of them to the start of the micro-op buffer. Facts that chains ask for again are counted once: nobody changes
    the arrays of a code that was asked.
    """

    records: Records
    buffers: NDArray[np.int64]
    names: tuple[str, ...]
    uops: Records

    @cached_property
    def _used(self) -> dict[MemoryType, int]:
        return {kind: self._filled(kind) for kind in _LOADED}

    def used(self, kind: MemoryType) -> int:
        """Return how many elements of the INP, WGT, ACC or UOP buffer LOADs fill."""
        return self._used[kind]

    def _filled(self, kind: MemoryType) -> int:
        loads = self.records[(self.records["opcode"] == Opcode.LOAD) & (self.records["memory_type"] == kind)]
        if not len(loads):
            return 0
        rows = loads["y_size"].astype(np.int64) + loads["y_pad_0"] + loads["y_pad_1"]
        columns = loads["x_size"].astype(np.int64) + loads["x_pad_0"] + loads["x_pad_1"]
        return int((loads["sram_base"] + rows * columns).max())

    @cached_property
    def accumulators(self) -> int:
        """Elements of the accumulator buffer, from its first on: those that STOREs take, and those of cleared tiles."""
        stores = self.records[self.records["opcode"] == Opcode.STORE]
        ends = stores["sram_base"].astype(np.int64) + stores["y_size"].astype(np.int64) * stores["x_size"]
        resets = self.records[(self.records["opcode"] == Opcode.GEMM) & (self.records["reset"] == 1)]
        cleared = self.uops["dst"][resets["uop_bgn"]].astype(np.int64) + 1
        for loop in ("out", "in"):
            cleared += (resets[f"iter_{loop}"].astype(np.int64) - 1) * resets[f"dst_factor_{loop}"]
        return int(max(ends.max(initial=0), cleared.max(initial=0)))

    @cached_property
    def added_by_alu(self) -> NDArray[np.bool_]:
        """Which micro-ops (m,) name two accumulator elements: those of ALU instructions with two operands."""
        return self._ranges((self.records["opcode"] == Opcode.ALU) & (self.records["use_imm"] == 0))

    @cached_property
    def multiplied(self) -> NDArray[np.bool_]:
        """Which micro-ops (m,) name an input element: those of GEMM instructions that multiply at all."""
        passes = self.records["iter_out"].astype(np.int64) * self.records["iter_in"]
        return self._ranges(multiplies(self.records) & (passes > 0))

    def _ranges(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which micro-ops (m,) the chosen instructions go through."""
        found = np.zeros(len(self.uops), dtype=np.bool_)
        begins, ends = (self.records[name][chosen].tolist() for name in ("uop_bgn", "uop_end"))
        for first, end in set(zip(begins, ends, strict=True)):
            found[first:end] = True
        return found


def code_of(program: Program, accelerator: Accelerator) -> Code:
    """Return a program's instructions without its FINISH."""
    records = decode(program.instructions, accelerator)
    buffers = np.full(len(records), -1, dtype=np.int64)
    for number, buffer in enumerate(program.buffers):
        buffers[buffer.instructions] = number
    keep = records["opcode"] != Opcode.FINISH
    names = tuple(buffer.name for buffer in program.buffers)
    uops = decode_uops(program.uops, accelerator) if len(program.uops) else np.zeros(0, dtype=UOP)
    return Code(records[keep], buffers[keep], names, uops)
