"""Consecutive layers in one instruction stream.

Each layer takes the end of the on-chip buffers that the layer before it did not take, if both fit: its weights and
micro-ops are then loaded while the layer before it computes. The waits are derived from the reads and writes of the
instructions (chain_tokens), across layers as within one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hilt.network.chain_tokens import Depths, Memory, with_tokens
from hilt.network.lower import Code
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, MemoryType, Opcode, encode, encode_uops
from hilt.vta.program import Buffer, Program

_UOP = "uop"


@dataclass(frozen=True, eq=False)
class ChainLink:
    """One layer of a chain: its code, and the tensor or constant behind each of its buffers but `uop`, by name."""

    code: Code
    buffers: Mapping[str, str]


def join(links: Sequence[ChainLink], sizes: Mapping[str, int], accelerator: Accelerator) -> Program:
    """Return one program of all layers, in their order, with a buffer for each name in the links' `buffers`.

    Args:
        links: The layers. A layer may read the output of an earlier one.
        sizes: Bytes of each buffer, by the links' names.
        accelerator: The accelerator that the layers were lowered for.
    """
    names = [_UOP, *dict.fromkeys(name for link in links for name in link.buffers.values())]
    number = {name: position for position, name in enumerate(names)}
    parameters = accelerator.parameters
    depths = Depths(accelerator.uop_depth, parameters.inp_depth, parameters.wgt_depth, parameters.acc_depth)
    uops = np.concatenate([np.zeros(0, dtype=UOP), *(link.code.uops for link in links)])
    shards, owners = [], []
    places = _Places(depths)
    begin = 0
    for link in links:
        code = _weights_first(_placed(link.code, places.next(link.code), begin))
        uops[begin : begin + len(code.uops)] = code.uops
        begin += len(code.uops)
        renamed = [number[_UOP if name == _UOP else link.buffers[name]] for name in code.names]
        shards.append(code.records)
        owners.append(np.array([*renamed, -1])[code.buffers])
    finish = np.zeros(1, dtype=INSTRUCTION)
    finish["opcode"] = Opcode.FINISH
    records = np.concatenate([*shards, finish])
    owner = np.append(np.concatenate(owners), -1)
    records = with_tokens(records, Memory(owner, uops), depths)
    return _program(records, uops, owner, names, sizes, accelerator)


class _Places:
    """The place of each layer on chip: at the start and at the end of each buffer in turns."""

    def __init__(self, depths: Depths) -> None:
        self._depths = depths
        self._high = False

    def next(self, code: Code) -> Depths:
        """Return the first element of the layer in each buffer."""
        high, self._high = self._high, not self._high
        if not high:
            return Depths(0, 0, 0, 0)
        depths = self._depths
        return Depths(
            depths.uop - len(code.uops),
            depths.inp - code.used(MemoryType.INP),
            depths.wgt - code.used(MemoryType.WGT),
            depths.acc - code.accumulators,
        )


def _placed(code: Code, place: Depths, begin: int) -> Code:
    """Return `code` moved to `place` on chip, with its micro-ops at `begin` of the chain's."""
    records, uops = code.records.copy(), code.uops.copy()
    moves = np.isin(records["opcode"], (Opcode.LOAD, Opcode.STORE))
    offsets = {
        MemoryType.UOP: place.uop,
        MemoryType.INP: place.inp,
        MemoryType.WGT: place.wgt,
        MemoryType.ACC: place.acc,
        MemoryType.OUT: place.acc,
    }
    for kind, offset in offsets.items():
        records["sram_base"][moves & (records["memory_type"] == kind)] += np.uint32(offset)
    records["dram_base"][moves & (records["memory_type"] == MemoryType.UOP)] += np.uint32(begin)
    records["uop_bgn"][~moves] += np.uint32(place.uop)
    records["uop_end"][~moves] += np.uint32(place.uop)
    adds = _read_by_alu(code)
    uops["dst"] += np.uint32(place.acc)
    uops["src"] += np.where(adds, place.acc, place.inp).astype(np.uint32)
    uops["wgt"][~adds] += np.uint32(place.wgt)
    return Code(records, code.buffers, code.names, uops)


def _read_by_alu(code: Code) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which micro-ops (m,) name two accumulator elements: those of ALU instructions with two operands."""
    read = np.zeros(len(code.uops), dtype=np.bool_)
    for record in code.records[code.records["opcode"] == Opcode.ALU]:
        read[int(record["uop_bgn"]) : int(record["uop_end"])] |= not record["use_imm"]
    return read


def _weights_first(code: Code) -> Code:
    """Return `code` with the weights of its first GEMM loaded before all else: they wait for no other layer."""
    records = code.records
    first = int(np.flatnonzero((records["opcode"] == Opcode.GEMM) & (records["reset"] == 0))[:1].sum())
    early = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.WGT)
    early[first:] = False
    order = np.concatenate((np.flatnonzero(early), np.flatnonzero(~early)))
    return Code(records[order], code.buffers[order], code.names, code.uops)


def _program(
    records: np.ndarray[tuple[int], np.dtype[np.void]],
    uops: np.ndarray[tuple[int], np.dtype[np.void]],
    owner: np.ndarray[tuple[int], np.dtype[np.int64]],
    names: Sequence[str],
    sizes: Mapping[str, int],
    accelerator: Accelerator,
) -> Program:
    buffers = []
    for number, name in enumerate(names):
        where = np.flatnonzero(owner == number)
        kind, element = _kind(records, where, accelerator)
        size = len(uops) * accelerator.uop_element_bytes if name == _UOP else sizes[name]
        buffers.append(Buffer(name, kind, size, element, where))
    return Program.assemble(accelerator, encode(records, accelerator), encode_uops(uops, accelerator), tuple(buffers))


def _kind(
    records: np.ndarray[tuple[int], np.dtype[np.void]],
    where: np.ndarray[tuple[int], np.dtype[np.int64]],
    accelerator: Accelerator,
) -> tuple[MemoryType, int]:
    """Return the memory type of a buffer's instructions, and the bytes of its elements.

    A tensor between two layers is written as OUT and read as INP, whose elements are alike.
    """
    record = records[where[0]]
    kind = MemoryType.OUT if record["opcode"] == Opcode.STORE else MemoryType(int(record["memory_type"]))
    parameters = accelerator.parameters
    return kind, {
        MemoryType.UOP: accelerator.uop_element_bytes,
        MemoryType.WGT: parameters.wgt_element_bytes,
        MemoryType.ACC: parameters.acc_element_bytes,
    }.get(kind, parameters.inp_element_bytes)
