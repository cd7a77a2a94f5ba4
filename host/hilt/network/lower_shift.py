"""A shift for each channel block: weights that were quantised block by block have different scales.

The lowering shifts a whole tile by one instruction. Here each channel block of the tile is shifted by an instruction of
its own; the clip that follows is still one pass over the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.lower import Code
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import UOP, AluOpcode, MemoryType, Opcode


@dataclass(frozen=True)
class OutputStage:
    """A convolution's output in memory: channel blocks, elements of one block's plane, images of one tile."""

    blocks: int
    plane: int
    images: int


def with_shifts(code: Code, shifts: Sequence[int], output: OutputStage, accelerator: Accelerator) -> Code:
    """Return `code` with the channel block b shifted right by `shifts[b]`.

    `code` is a convolution's that shifts by one or more. Raises Rejected if the micro-op buffer is too small.
    """
    records = code.records
    is_shift = (records["opcode"] == Opcode.ALU) & (records["alu_opcode"] == AluOpcode.SHR) & (records["imm"] > 0)
    is_store = records["opcode"] == Opcode.STORE
    numbers: dict[int, int] = {}
    shards, owners, done = [], [], 0
    for place in np.flatnonzero(is_shift).tolist():
        store = place + int(np.argmax(is_store[place:]))
        channel = int(records["dram_base"][store]) // output.plane % output.blocks
        whole = records[place : place + 1]
        rows, pixels = int(whole["iter_out"][0]), int(whole["iter_in"][0])
        start = int(code.uops["dst"][int(whole["uop_bgn"][0])])
        for row in range(rows):
            target = start + row * pixels
            number = len(code.uops) + numbers.setdefault(target, len(numbers))
            one = whole.copy()
            one["uop_bgn"], one["uop_end"], one["iter_out"] = number, number + 1, 1
            one["dst_factor_out"] = one["src_factor_out"] = 0
            one["imm"] = shifts[channel + row % (rows // output.images)]
            shards += [records[done:place], one]
            owners += [code.buffers[done:place], code.buffers[place : place + 1]]
            done = place
        done = place + 1
    return _with_uops(code, [*shards, records[done:]], [*owners, code.buffers[done:]], list(numbers), accelerator)


def _with_uops(
    code: Code,
    shards: list[NDArray[np.void]],
    owners: list[NDArray[np.int64]],
    targets: list[int],
    accelerator: Accelerator,
) -> Code:
    """Return the joined pieces with a micro-op for each target behind the code's own."""
    uops = np.zeros(len(targets), dtype=UOP)
    uops["dst"] = targets
    every = np.concatenate((code.uops, uops))
    if len(every) > accelerator.uop_depth:
        raise Rejected("uop_overflow", f"{len(every)} micro-ops with the shifts', of {accelerator.uop_depth}")
    records = np.concatenate(shards)
    loads = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)
    records["x_size"][loads] = len(every)
    return Code(records, np.concatenate(owners), code.names, every)
