"""One layer's instructions, as the schedule's lowering makes them, ready to be joined with other layers'."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.chain_tokens import Records
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import UOP, MemoryType, Opcode, decode, decode_uops
from hilt.vta.program import Program


@dataclass(frozen=True, eq=False)
class Code:
    """A layer's instructions in an order in which they may run one after another; no tokens, no FINISH.

    `records` are INSTRUCTION records (n,), each dram_base counted from the start of its buffer; `buffers` (n,) are
    positions in `names`, -1 if an instruction touches no memory. `uops` are UOP records (m,); one LOAD brings
    all of them to the start of the micro-op buffer.
    """

    records: Records
    buffers: NDArray[np.int64]
    names: tuple[str, ...]
    uops: Records

    def used(self, kind: MemoryType) -> int:
        """Return how many elements of the INP, WGT or UOP buffer LOADs fill."""
        loads = self.records[(self.records["opcode"] == Opcode.LOAD) & (self.records["memory_type"] == kind)]
        if not len(loads):
            return 0
        rows = loads["y_size"].astype(np.int64) + loads["y_pad_0"] + loads["y_pad_1"]
        columns = loads["x_size"].astype(np.int64) + loads["x_pad_0"] + loads["x_pad_1"]
        return int((loads["sram_base"] + rows * columns).max())

    @property
    def accumulators(self) -> int:
        """Elements of the accumulator buffer, from its first on."""
        stores = self.records[self.records["opcode"] == Opcode.STORE]
        ends = stores["sram_base"].astype(np.int64) + stores["y_size"].astype(np.int64) * stores["x_size"]
        return int(ends.max(initial=0))


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
