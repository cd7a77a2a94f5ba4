"""Consecutive layers in one instruction stream.

Each layer has a place of its own on chip (chain_places), so that its weights and first inputs are loaded while the
layer before it computes. The waits are derived from the reads and writes of the instructions (chain_tokens), across
layers as within one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.chain_ahead import Ahead, with_loads_ahead
from hilt.schedule.chain_places import Place, places_of
from hilt.schedule.chain_tokens import Depths, Memory, with_relays_apart, with_tokens
from hilt.schedule.code import Code
from hilt.schedule.port_rows import in_port_rows
from hilt.schedule.residual import RESIDUAL
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, MemoryType, Opcode, encode, encode_uops, multiplies
from hilt.vta.program import Buffer, Program

_UOP = "uop"


@dataclass(frozen=True, eq=False)
class ChainLink:
    """One layer of a chain: its code, and the tensor or constant behind each of its buffers but `uop`, by name.

    `offsets` are those of tensors that lie within others, by the code's names, in elements.
    """

    code: Code
    buffers: Mapping[str, str]
    offsets: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Chain:
    """The program of a chain, and how many of its instructions each layer has; FINISH is the last one's successor."""

    program: Program
    lengths: list[int]


def most_instructions(code: Code) -> int:
    """Return how many instructions of a chain a layer has at most: each reset, and each LOAD, may get one before it."""
    resets = (code.records["opcode"] == Opcode.GEMM) & (code.records["reset"] == 1)
    return len(code.records) + int(np.count_nonzero(resets | (code.records["opcode"] == Opcode.LOAD)))


def join(
    links: Sequence[ChainLink], sizes: Mapping[str, int], accelerator: Accelerator, ahead: Sequence[Ahead] = ()
) -> Chain:
    """Return one program of all layers, in their order, with a buffer for each name in the links' `buffers`.

    Args:
        links: The layers. A layer may read the output of an earlier one.
        sizes: Bytes of each buffer, by the links' names.
        accelerator: The accelerator that the layers were lowered for.
        ahead: Weights that come among the LOADs of earlier layers, and count as theirs.
    """
    names = [_UOP, *dict.fromkeys(name for link in links for name in link.buffers.values())]
    number = {name: position for position, name in enumerate(names)}
    parameters = accelerator.parameters
    depths = Depths(accelerator.uop_depth, parameters.inp_depth, parameters.wgt_depth, parameters.acc_depth)
    second = accelerator.formats.uop.by_name["src"].high + 1
    shards, owners, moved = [], [], []
    begin = 0
    for link, place in zip(links, places_of([link.code for link in links], depths, second), strict=True):
        code = _early_first(_placed(link.code, place, begin))
        begin += len(code.uops)
        shards.append(in_port_rows(_located(code, link), accelerator))
        owners.append(_owners(code, link, number))
        moved.append(code.uops)
    uops = np.concatenate([np.zeros(0, dtype=UOP), *moved])
    finish = np.zeros(1, dtype=INSTRUCTION)
    finish["opcode"] = Opcode.FINISH
    records = np.concatenate([*shards, finish])
    owner = np.append(np.concatenate(owners), -1)
    lengths = np.array([len(shard) for shard in shards])
    if ahead:
        records, sources, lengths = with_loads_ahead(records, ahead, lengths)
        owner = owner[sources]
    records = with_tokens(
        records, Memory(owner, uops, parameters.wgt_element_bytes // parameters.out_element_bytes), depths
    )
    if accelerator.hazards == "interlock":
        records, places = with_relays_apart(records)
        owner = np.insert(owner, places, -1)
        lengths += np.histogram(places, np.append(0, np.cumsum(lengths)))[0]
    program = _program(records, uops, owner, names, sizes, accelerator)
    return Chain(program, lengths.tolist())


def _located(code: Code, link: ChainLink) -> NDArray[np.void]:
    """Return a layer's instructions with the places of its tensors in the buffers that they lie in."""
    shifts = [link.offsets.get(name, 0) for name in code.names]
    records = code.records.copy()
    records["dram_base"] += np.array([*shifts, 0], dtype=np.uint32)[code.buffers]
    return records


def _owners(code: Code, link: ChainLink, number: Mapping[str, int]) -> NDArray[np.int64]:
    """Return the chain's number of the buffer that each instruction moves, -1 for none; LOADs may bring zeros alone."""
    renamed = [number[_UOP if name == _UOP else link.buffers[name]] for name in code.names]
    moves = (code.records["y_size"] > 0) & (code.records["x_size"] > 0)
    return np.where(moves, np.array([*renamed, -1])[code.buffers], -1)


def _placed(code: Code, where: Place, begin: int) -> Code:
    """Return `code` moved to its place on chip, with its micro-ops at `begin` of the chain's."""
    records, uops = code.records.copy(), code.uops.copy()
    moves = np.isin(records["opcode"], (Opcode.LOAD, Opcode.STORE))
    kinds = records["memory_type"]
    for kind, offset in ((MemoryType.INP, where.inp), (MemoryType.WGT, where.wgt)):
        records["sram_base"][moves & (kinds == kind)] += np.uint32(offset)
    chosen = moves & ((records["opcode"] == Opcode.STORE) | (kinds == MemoryType.ACC))
    records["sram_base"][chosen] = where.accumulators(records["sram_base"][chosen])
    records["uop_bgn"][~moves] += np.uint32(where.uop)
    records["uop_end"][~moves] += np.uint32(where.uop)
    adds, products = code.added_by_alu, code.multiplied
    uops["dst"] = where.accumulators(uops["dst"])
    # A micro-op without a second operand keeps its src: moved, the unread number may not fit its field.
    uops["src"][products] += np.uint32(where.inp)
    uops["src"][adds] = where.accumulators(code.uops["src"][adds])
    uops["wgt"][~adds] += np.uint32(where.wgt)
    loads_uops = moves & (kinds == MemoryType.UOP)
    records["sram_base"][loads_uops], records["dram_base"][loads_uops] = where.uop, begin
    records["x_size"][loads_uops] = where.uops_loaded
    keep = ~loads_uops | (where.uops_loaded > 0)
    moved = Code(records[keep], code.buffers[keep], code.names, uops)
    return _with_more_uops(moved, where, begin + len(uops)) if where.uops_behind else moved


def _with_more_uops(code: Code, where: Place, begin: int) -> Code:
    """Return `code` with a LOAD of the micro-ops of layers behind it, which are at `begin` of the chain's.

    Compute waits there for the first weights and inputs.
    """
    records = code.records
    loads = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP)
    own = int(np.argmax(loads))
    more = records[own : own + 1].copy()
    more["sram_base"], more["dram_base"], more["x_size"] = where.uop + len(code.uops), begin, where.uops_behind
    place = int(np.argmax(multiplies(records)))
    owners = np.insert(code.buffers, place, code.buffers[own])
    return Code(np.insert(records, place, more), owners, code.names, code.uops)


def _early_first(code: Code) -> Code:
    """Return `code` with LOADs of its first tile in the order in which their data is there.

    Weights come before all else, since they wait for no other layer; a residual, which an earlier layer made, comes
    before the input.
    """
    records = code.records
    numbers = np.arange(len(records))
    first = numbers < int(np.flatnonzero(multiplies(records))[:1].sum())
    loads = first & (records["opcode"] == Opcode.LOAD)
    weights = loads & (records["memory_type"] == MemoryType.WGT)
    inputs = loads & (records["memory_type"] == MemoryType.INP)
    residual = inputs & (code.buffers == (code.names.index(RESIDUAL) if RESIDUAL in code.names else -1))
    wanted = np.where(weights, -1, numbers).astype(np.float64)
    if residual.any():
        wanted[residual] = int(np.argmax(inputs)) - 0.5
    order = np.argsort(wanted, kind="stable")
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
        moves = np.flatnonzero(owner == number)
        size = len(uops) * accelerator.uop_element_bytes if name == _UOP else sizes[name]
        blocks = records["memory_type"][moves] == MemoryType.WGT
        for where in filter(len, (moves[~blocks], moves[blocks])):  # weights that VTA itself wrote are a buffer twice
            kind, element = _kind(records, where, accelerator)
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
