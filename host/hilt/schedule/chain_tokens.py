"""Dependence tokens of a stream of instructions, derived from the reads and writes of each instruction.

The stream is in an order in which running one instruction after another is right. The load, compute and store
stages run it side by side; each token makes one stage wait for an instruction of its neighbour. A stage runs its
instructions in order, so a wait for one instruction is a wait for all earlier ones of that stage, and needs no
second token.

A LOAD that reads the data of a STORE waits for that STORE by way of compute: a compute instruction between them, the
relay, pops the STORE's token and pushes one to the load stage. A STORE ends when the memory has answered, so the data
is there. The relay is the first instruction that probably does not wait for the STORE itself.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.operand_spans import operand_spans
from hilt.vta.isa import MemoryType, Opcode, multiplies

_LOAD, _FINISH = int(Opcode.LOAD), int(Opcode.FINISH)
_STORE_CYCLES = 512
"""A STORE of a tile takes about that long."""
_COLUMNS = (
    *("opcode", "memory_type", "sram_base", "dram_base", "y_size", "x_size", "x_stride"),
    *("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"),
)
TOKEN_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
Records = NDArray[np.void]
_Span = tuple[int, int]


class TokenError(ValueError):
    """A stream in which a dependence cannot be expressed by tokens."""


@dataclass(frozen=True)
class Depths:
    """Elements of the accelerator's buffers."""

    uop: int
    inp: int
    wgt: int
    acc: int


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory behind LOADs and STOREs.

    `buffer` (n,) is the number of the buffer that each instruction moves (-1 for none), `uops` are UOP records of
    the micro-op buffer, from which every LOAD of UOP reads at its dram_base. A weight block is as large as
    `block_elements` elements that STOREs write.
    """

    buffer: NDArray[np.int64]
    uops: Records
    block_elements: int


def with_tokens(records: Records, memory: Memory, depths: Depths) -> Records:
    """Return INSTRUCTION records (n,) with the tokens that their dependences need, in place of any they had.

    Raises:
        TokenError: A LOAD follows the STORE of its data with no compute instruction between them.
    """
    return _Scheduler(records, memory, depths).run()


def with_relays_apart(records: Records) -> tuple[Records, NDArray[np.int64]]:
    """Return records (m,) in which a GEMM of nothing passes on the tokens of resets and LOADs, and their places (k,).

    A reset that pushes a token is not folded into the GEMM behind it, and clears its accumulators itself. A LOAD of
    micro-ops or accumulators passes a token on when its data is there. A GEMM of nothing takes two cycles. `records`
    (n,) have tokens. A window GEMM that resets also reads: its token means that its operands are free, and stays.
    """
    resets = (records["opcode"] == Opcode.GEMM) & (records["reset"] == 1) & ~multiplies(records)
    passes = (resets | (records["opcode"] == Opcode.LOAD)) & (records["push_prev"] == 1)
    places = np.flatnonzero(passes)
    relays = np.zeros(len(places), dtype=records.dtype)
    relays["opcode"], relays["iter_out"], relays["iter_in"] = Opcode.GEMM, 1, 1
    freed = records.copy()
    for flag in TOKEN_FLAGS:
        relays[flag] = records[flag][places]
        freed[flag][places] = 0
    return np.insert(freed, places, relays), places


@dataclass(frozen=True)
class MovedRows:
    """The elements that a LOAD or STORE moves in memory: rows of `wide` elements, `stride` apart."""

    first: int
    high: int
    wide: int
    stride: int

    def in_parts(self, parts: int) -> MovedRows:
        """Return the same memory in elements of which each of these has `parts`."""
        return MovedRows(self.first * parts, self.high, self.wide * parts, self.stride * parts)

    @property
    def elements(self) -> NDArray[np.int64]:
        """Return their numbers in the buffer."""
        return (self.first + self.stride * np.arange(self.high)[:, None] + np.arange(self.wide)).reshape(-1)


class Stored:
    """Knows the last STORE of each element that STOREs write, by buffer.

    A weight block is as large as `block_elements` such elements.
    """

    def __init__(self, block_elements: int) -> None:
        self._block_elements = block_elements
        self._known: dict[int, NDArray[np.int64]] = {}
        """The last STORE of each element; -1 is none."""

    def note(self, number: int, buffer: int, block: MovedRows) -> None:
        """Note that STORE `number` writes this part of a buffer."""
        known = self._known.get(buffer, np.zeros(0, dtype=np.int64))
        elements = block.elements
        if (end := int(elements.max(initial=-1)) + 1) > len(known):
            known = np.concatenate((known, np.full(max(end - len(known), len(known)), -1)))
            self._known[buffer] = known
        known[elements] = number

    def last(self, buffer: int, block: MovedRows, kind: MemoryType) -> int:
        """Return the last STORE that wrote some of the data of a LOAD of `kind`; -1 if none did."""
        known = self._known.get(buffer)
        if known is None:
            return -1
        elements = (block.in_parts(self._block_elements) if kind is MemoryType.WGT else block).elements
        return int(known[elements[elements < len(known)]].max(initial=-1))


class _Channel:
    """One queue of tokens. `covered` is the latest producer that the consumer has waited for."""

    def __init__(self, push: list[int], pop: list[int]) -> None:
        self._push, self._pop = push, pop
        self._consumers: list[int] = []
        self._producers: list[int] = []

    def wait(self, consumer: int, producer: int) -> None:
        """Let instruction `consumer` wait for instruction `producer`, unless it does so already."""
        if producer <= self.covered:
            return
        if self._consumers and self._consumers[-1] == consumer:  # one token a pop: the later producer pushes it
            self._push[self._producers.pop()] = 0
            self._consumers.pop()
        self._push[producer] = 1
        self._pop[consumer] = 1
        self._consumers.append(consumer)
        self._producers.append(producer)

    @property
    def covered(self) -> int:
        return self._producers[-1] if self._producers else -1

    @property
    def last_consumer(self) -> int:
        return self._consumers[-1] if self._consumers else -1

    def first_behind(self, producer: int) -> int:
        """Return the first consumer that has waited for `producer` or for a later one."""
        return self._consumers[bisect_left(self._producers, producer)]


def _latest(instructions: NDArray[np.int64], first: int, end: int) -> int:
    """Return the last of the instructions that touched the elements from `first` to before `end`; -1 if none did."""
    return int(np.maximum.reduce(instructions[first:end])) if first < end else -1


class _Scheduler:
    def __init__(self, records: Records, memory: Memory, depths: Depths) -> None:
        self.records = records.copy()
        for flag in TOKEN_FLAGS:
            self.records[flag] = 0
        self.memory = memory
        field = {flag: [0] * len(records) for flag in TOKEN_FLAGS}
        self.flags = field
        self.to_compute = _Channel(push=field["push_next"], pop=field["pop_prev"])
        self.to_load = _Channel(push=field["push_prev"], pop=field["pop_next"])
        self.to_store = _Channel(push=field["push_next"], pop=field["pop_prev"])
        self.from_store = _Channel(push=field["push_prev"], pop=field["pop_next"])

        def never(depth: int) -> NDArray[np.int64]:
            return np.full(depth, -1, dtype=np.int64)

        self.writer = {MemoryType.INP: never(depths.inp), MemoryType.WGT: never(depths.wgt)}
        self.reader = {MemoryType.INP: never(depths.inp), MemoryType.WGT: never(depths.wgt)}
        self.out_writer, self.out_reader = never(depths.acc), never(depths.acc)
        spans = operand_spans(records, memory.uops, depths.uop)
        self.written = spans["dst"]
        """The accumulators, from the first to behind the last, that each instruction writes."""
        self.operands = [
            (spans[name], self.writer[kind], self.reader[kind])
            for name, kind in (("src", MemoryType.INP), ("wgt", MemoryType.WGT))
        ]
        operations = records["opcode"] == Opcode.ALU
        self.multiplies = multiplies(records).tolist()
        self.passes_on = (~operations | (records["use_imm"] == 0)).tolist()
        turns = records["iter_out"].astype(np.int64) * records["iter_in"]
        self.issues = ((records["uop_end"].astype(np.int64) - records["uop_bgn"]) * turns).tolist()
        self.stored = Stored(memory.block_elements)
        self.last_compute = self.last_store = -1
        self.relays: list[int] = []
        """Instructions of the compute stage but ALU instructions with an immediate."""
        self.relay_begins: list[int] = []
        """About when the compute stage begins each of `relays`: micro-ops issued before."""
        self.store_begins: dict[int, int] = {}
        """The same for each STORE."""
        self.issued = 0

    def run(self) -> Records:
        loads = (self.records["opcode"] == Opcode.LOAD) & np.isin(
            self.records["memory_type"], (MemoryType.INP, MemoryType.WGT)
        )
        stores = self.records["opcode"] == Opcode.STORE
        columns = {name: self.records[name].tolist() for name in _COLUMNS}
        for number, (is_load, is_store) in enumerate(zip(loads.tolist(), stores.tolist(), strict=True)):
            if not (is_load or is_store):
                self._compute(number, columns["opcode"][number])
                continue
            _, kind, sram, dram, high, wide, stride, top, bottom, left, right = (
                column[number] for column in columns.values()
            )
            block = MovedRows(dram, high, wide, stride)
            if is_load:
                length = (high + top + bottom) * (wide + left + right)
                self._load(number, MemoryType(kind), (sram, sram + length), block)
            else:
                self._store(number, kind, (sram, sram + high * wide), block)
        for flag, values in self.flags.items():
            self.records[flag] = values
        return self.records

    def _load(self, number: int, kind: MemoryType, span: _Span, block: MovedRows) -> None:
        needed = _latest(self.reader[kind], *span)
        store = self.stored.last(int(self.memory.buffer[number]), block, kind)
        if store > self.from_store.covered:
            relay = self._relay(store)
            if relay < store:
                raise TokenError(f"LOAD {number} needs STORE {store}, and no compute instruction is between them")
            self.from_store.wait(relay, store)
        if store >= 0:
            needed = max(needed, self.from_store.first_behind(store))
        self.to_load.wait(number, needed)
        self.writer[kind][span[0] : span[1]] = number

    def _relay(self, store: int) -> int:
        """Return the compute instruction that passes a STORE's token on to a LOAD; the last one if none is better.

        An ALU instruction with an immediate passes no token on: the token would end its chain in the compute stage.
        """
        first = max(store + 1, self.from_store.last_consumer)
        place = bisect_left(self.relays, first)
        if place == len(self.relays):
            return self.last_compute
        enough = self.store_begins[store] + _STORE_CYCLES
        return self.relays[min(bisect_left(self.relay_begins, enough, lo=place), len(self.relays) - 1)]

    def _compute(self, number: int, opcode: int) -> None:
        if opcode == _FINISH:
            self.from_store.wait(number, self.last_store)
        elif opcode != _LOAD:
            self._operate(number)
        if self.passes_on[number]:
            self.relays.append(number)
            self.relay_begins.append(self.issued)
        self.issued += self.issues[number]
        self.last_compute = number

    def _operate(self, number: int) -> None:
        first, end = self.written[number]
        if self.multiplies[number]:
            needed = -1
            for spans, writer, reader in self.operands:
                start, stop = spans[number]
                needed = max(needed, _latest(writer, start, stop))
                reader[start:stop] = number
            self.to_compute.wait(number, needed)
        self.from_store.wait(number, _latest(self.out_reader, first, end))
        self.out_writer[first:end] = number

    def _store(self, number: int, kind: int, span: _Span, block: MovedRows) -> None:
        self.to_store.wait(number, _latest(self.out_writer, *span))
        self.out_reader[span[0] : span[1]] = number
        self.last_store = number
        self.store_begins[number] = self.issued
        if kind == MemoryType.TABLE:  # touches no memory
            return
        self.stored.note(number, int(self.memory.buffer[number]), block)
