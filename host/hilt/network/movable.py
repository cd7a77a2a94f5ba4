"""The LOADs of a chain that may come before their layer, and from which instruction on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.chain import Chain
from hilt.schedule.chain_ahead import stage_loads, units_of
from hilt.schedule.chain_tokens import MovedRows, Stored
from hilt.schedule.operand_spans import operand_spans
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode, decode_uops, multiplies
from hilt.vta.program import Program


@dataclass(frozen=True)
class Movable:
    """Units of a LOAD of weights, or LOADs of inputs in their order, that may come before their layer.

    Instructions count from the chain's first, LOADs those of the load stage; -1 is none.

    Attributes:
        kind: INP or WGT.
        loads: The LOADs; of weights one.
        units: Of weights, its units from the first to behind the last.
        blocks: The blocks of a unit.
        touched: The last instruction before that reads or fills their place on chip.
        stored: The last STORE of their data.
        latest: The instruction behind which they may come.
        begin: Their layer's first instruction.
    """

    kind: MemoryType
    loads: tuple[int, ...]
    units: tuple[int, int]
    blocks: int
    touched: int
    stored: int
    latest: int
    begin: int


def movable_loads(chain: Chain, accelerator: Accelerator) -> list[Movable]:
    """Return the LOADs that may come early: their layer and the one before make no data and no room for them."""
    return list(_Finder(chain, accelerator).found())


class _Finder:
    """Goes through a chain and knows the last instruction that touched each place on chip, or stored each element."""

    def __init__(self, chain: Chain, accelerator: Accelerator) -> None:
        program, parameters = chain.program, accelerator.parameters
        self._records = decode(program.instructions, accelerator)
        spans = operand_spans(self._records, decode_uops(program.uops, accelerator), accelerator.uop_depth)
        self._read = {MemoryType.INP: spans["src"], MemoryType.WGT: spans["wgt"]}
        self._multiplies = multiplies(self._records).tolist()
        self._touched = {
            MemoryType.INP: np.full(parameters.inp_depth, -1, dtype=np.int64),
            MemoryType.WGT: np.full(parameters.wgt_depth, -1, dtype=np.int64),
        }
        self._buffers = _buffers(program)
        self._stored = Stored(parameters.wgt_element_bytes // parameters.out_element_bytes)
        self._numbers = {place: number for number, place in enumerate(stage_loads(self._records).tolist())}
        self._computes = np.flatnonzero(_computes(self._records))
        self._ends = np.cumsum(chain.lengths)

    def found(self) -> Iterator[Movable]:
        """Yield the LOADs that may come before their layer, layer by layer."""
        for begin, end in pairwise([0, *self._ends.tolist()]):
            groups: dict[int, list[Movable]] = {}  # of LOADs of inputs, by the places of each
            for place in range(begin, end):
                if place in self._numbers:
                    yield from self._load(place, begin, groups)
                elif self._records["opcode"][place] == Opcode.STORE:
                    self._stored.note(place, self._buffers[place], _block(self._records[place]))
                elif self._multiplies[place]:
                    for kind, spans in self._read.items():
                        self._touched[kind][slice(*spans[place])] = place
            yield from dict.fromkeys(_together(group) for group in groups.values())

    def _load(self, place: int, begin: int, groups: dict[int, list[Movable]]) -> Iterator[Movable]:
        """Yield the parts of a LOAD of weights; add one of inputs to the LOADs that it comes behind."""
        record = self._records[place]
        kind = MemoryType(int(record["memory_type"]))
        stored = self._stored.last(self._buffers[place], _block(record), kind)
        behind = self._behind(stored)
        if kind is MemoryType.WGT:
            yield from self._weights(place, begin, stored, behind)
            return
        elements = self._touched[kind][slice(*_span(record))]
        before = np.unique(elements[elements >= begin]).tolist()
        touched = int(elements[elements < begin].max(initial=-1))
        elements[:] = place
        own = [groups.get(each, []) for each in before] or [[]]
        if behind < begin and all(each is own[0] for each in own) and (own[0] or not before):
            load = (self._numbers[place],)
            own[0].append(Movable(kind, load, (0, 1), 0, touched, stored, max(touched, behind), begin))
            groups[place] = own[0]

    def _weights(self, place: int, begin: int, stored: int, behind: int) -> Iterator[Movable]:
        """Yield runs of units whose places on chip the same layer touched last."""
        record = self._records[place]
        units, wide = units_of(record)
        blocks = self._touched[MemoryType.WGT][slice(*_span(record))]
        touched = blocks.reshape(units, wide).max(axis=1)
        blocks[:] = place
        load = (self._numbers[place],)
        layers = np.where(touched < 0, -1, np.searchsorted(self._ends, touched, side="right"))
        for first, end in pairwise([0, *(np.flatnonzero(np.diff(layers)) + 1).tolist(), units]):
            last = int(touched[first:end].max())
            latest = max(last, behind)
            if latest < begin:
                yield Movable(MemoryType.WGT, load, (first, end), wide, last, stored, latest, begin)

    def _behind(self, store: int) -> int:
        """Return the first instruction behind a STORE that may pass its token on; -1 of no STORE."""
        if store < 0:
            return -1
        place = int(np.searchsorted(self._computes, store))
        return int(self._computes[place]) if place < len(self._computes) else len(self._records)


def _together(group: list[Movable]) -> Movable:
    """Return LOADs of inputs as one."""
    last = [max(getattr(each, name) for each in group) for name in ("touched", "stored", "latest")]
    loads = tuple(load for each in group for load in each.loads)
    return Movable(MemoryType.INP, loads, (0, 1), 0, last[0], last[1], last[2], group[0].begin)


def _computes(records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which instructions the compute stage has that are no GEMMs of nothing."""
    moves = np.isin(records["opcode"], (Opcode.LOAD, Opcode.STORE))
    found: NDArray[np.bool_] = ~moves & (records["uop_end"] > records["uop_bgn"])
    return found


def _span(record: np.void) -> tuple[int, int]:
    """Return the elements that a LOAD fills, from the first to behind the last."""
    high = int(record["y_size"]) + int(record["y_pad_0"]) + int(record["y_pad_1"])
    wide = int(record["x_size"]) + int(record["x_pad_0"]) + int(record["x_pad_1"])
    first = int(record["sram_base"])
    return first, first + high * wide


def _block(record: np.void) -> MovedRows:
    return MovedRows(*(int(record[name]) for name in ("dram_base", "y_size", "x_size", "x_stride")))


def _buffers(program: Program) -> list[int]:
    """Return a number of the memory that each instruction moves, one for each name; -1 for none."""
    names = {name: number for number, name in enumerate(dict.fromkeys(buffer.name for buffer in program.buffers))}
    owners = np.full(len(program.instructions), -1, dtype=np.int64)
    for buffer in program.buffers:
        owners[buffer.instructions] = names[buffer.name]
    found: list[int] = owners.tolist()
    return found
