"""The place of each layer of a chain on chip.

A layer takes the start or the end of a buffer, whichever the layers before it leave earlier: then its first LOADs, and
its first tile, do not wait for the last tile of the layer before it. Micro-ops of consecutive layers lie one behind
another as long as they fit, and one LOAD brings them all. Those of the first layer come alone, since compute waits
for them; those of the layers behind it come while compute waits for the first layer's weights and inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hilt.schedule.chain_tokens import Depths, Records
from hilt.schedule.code import Code
from hilt.vta.isa import MemoryType, Opcode, multiplies

_Span = tuple[int, int]
_HELD = (MemoryType.INP, MemoryType.WGT, MemoryType.OUT)


@dataclass(frozen=True)
class Place:
    """The first element of a layer in each buffer.

    Attributes:
        uop: Its micro-ops.
        inp: Its inputs.
        wgt: Its weights.
        tiles: Its output tiles, in the accumulators.
        bias: Its bias, in the accumulators.
        bias_size: Elements of the bias; the layer's own code has it in front of the tiles.
        uops_loaded: How many micro-ops a LOAD before the layer brings, its own and those of layers behind it; 0 if an
            earlier layer's LOAD brings them.
        uops_behind: How many micro-ops of layers behind it a second LOAD brings, before its first GEMM that multiplies.
    """

    uop: int
    inp: int
    wgt: int
    tiles: int
    bias: int
    bias_size: int
    uops_loaded: int
    uops_behind: int = 0

    def accumulators(self, elements: NDArray[Any]) -> NDArray[Any]:
        """Return where accumulator elements of the layer's own code lie."""
        moved = np.where(elements < self.bias_size, elements + self.bias, elements - self.bias_size + self.tiles)
        return moved.astype(elements.dtype)


def places_of(codes: list[Code], depths: Depths, second: int) -> list[Place]:
    """Return the place of each layer of a chain, in its order.

    Args:
        codes: The layers.
        depths: Elements of the buffers.
        second: Accumulators, from the first on, that the second operand of an ALU instruction can name. ISA A and B
            name as many as there are inputs.
    """
    rooms = [min(depths.acc, second) if _adds_two(code) else depths.acc for code in codes]
    chooser = _Chooser(depths)
    uops = _micro_op_places(codes, depths.uop)
    chosen: dict[int, tuple[int, int, int]] = {}
    order = sorted(range(len(codes)), key=lambda number: number + 1.5 * _writes_table(codes[number]))
    for number in order:  # what writes the table takes what the layer behind it leaves
        code = codes[number]
        if _writes_table(code):
            chosen[number] = chooser.beside(code, rooms[number])
        else:
            chosen[number] = chooser.next(code, _bias_size(code), rooms[number])
    places = []
    for number, (code, own) in enumerate(zip(codes, uops, strict=True)):
        inp, wgt, tiles = chosen[number]
        bias = _bias_size(code)
        behind = tiles + code.accumulators - bias
        place = behind if behind + bias <= rooms[number] else tiles - bias
        places.append(Place(own.place, inp, wgt, tiles, place, bias, own.loaded, own.behind))
    return places


def _adds_two(code: Code) -> bool:
    """Return whether a code has ALU instructions with two operands in the accumulators."""
    return bool(((code.records["opcode"] == Opcode.ALU) & (code.records["use_imm"] == 0)).any())


def _writes_table(code: Code) -> bool:
    """Return whether a code writes the table, for the layer behind it."""
    stores = code.records["opcode"] == Opcode.STORE
    return bool((stores & (code.records["memory_type"] == MemoryType.TABLE)).any())


def _bias_size(code: Code) -> int:
    """Return the elements of a layer's bias, which LOADs bring to the first accumulators."""
    loads = (code.records["opcode"] == Opcode.LOAD) & (code.records["memory_type"] == MemoryType.ACC)
    return code.used(MemoryType.ACC) if loads.any() else 0


@dataclass(frozen=True)
class _MicroOps:
    """The place of a layer's micro-ops, and those that its LOADs bring (`Place`)."""

    place: int
    loaded: int
    behind: int = 0


def _micro_op_places(codes: list[Code], depth: int) -> list[_MicroOps]:
    """Return the place of each layer's micro-ops, and how many the LOADs in it bring."""
    groups = _micro_op_groups(codes, depth)
    places = [each for group in groups for each in _one_behind_another(group)]
    if len(groups) > 1 and _behind_the_first(groups[:1], groups[1][0], depth):
        first = len(codes[0].uops)
        moved = [replace(each, place=each.place + first, loaded=0) for each in places[1 : 1 + len(groups[1])]]
        places[: 1 + len(moved)] = [replace(places[0], behind=places[1].loaded), *moved]
    return places


def _micro_op_groups(codes: list[Code], depth: int) -> list[list[Code]]:
    """Return the layers whose micro-ops one LOAD brings; the first layer is one alone."""
    groups: list[list[Code]] = []
    held = 0
    for code in codes:
        fits = held + len(code.uops) <= depth
        if len(groups) > 1 and fits and _computes_before_input(code):
            groups[-1].append(code)
        else:
            held = _behind_the_first(groups, code, depth)
            groups.append([code])
        held += len(code.uops)
    return groups


def _behind_the_first(groups: list[list[Code]], code: Code, depth: int) -> int:
    """Return where the second group of layers, which begins with `code`, has its micro-ops: behind the first layer's.

    Return 0 for a later group, and where a LOAD in the second layer brings them: because there is no room, or because
    the layer's input waits for that LOAD.
    """
    if len(groups) != 1:
        return 0
    first = len(groups[0][0].uops)
    fits = first + len(code.uops) <= depth
    return first if fits and _computes_before_input(code) and multiplies(groups[0][0].records).any() else 0


def _one_behind_another(group: list[Code]) -> list[_MicroOps]:
    """Return the places of micro-ops that one LOAD brings."""
    ends = np.cumsum([len(code.uops) for code in group]).tolist()
    return [
        _MicroOps(end - len(code.uops), 0 if number else ends[-1])
        for number, (code, end) in enumerate(zip(group, ends, strict=True))
    ]


def _computes_before_input(code: Code) -> bool:
    """Return whether another compute instruction than LOADs of micro-ops comes before the first LOAD of its input.

    That LOAD may wait for the layer before by way of such an instruction.
    """
    records = code.records
    loads = records["opcode"] == Opcode.LOAD
    computes = ~loads & (records["opcode"] != Opcode.STORE) | (loads & (records["memory_type"] == MemoryType.ACC))
    inputs = loads & (records["memory_type"] == MemoryType.INP)
    return bool(computes[: int(np.argmax(inputs))].any())


class _Chooser:
    """Knows the last instruction that held each element of the input, weight and accumulator buffers."""

    def __init__(self, depths: Depths) -> None:
        self._held = {
            kind: np.full(depth, -1, dtype=np.int64)
            for kind, depth in zip(_HELD, (depths.inp, depths.wgt, depths.acc), strict=True)
        }
        self._high = dict.fromkeys(self._held, True)
        self._instructions = 0

    def next(self, code: Code, bias: int, room: int) -> tuple[int, int, int]:
        """Return the first element of a layer's inputs, weights and output tiles; room for its bias is left.

        Tiles and bias take none but the first `room` accumulators, unless the layer's own code does.
        """
        inp = self._choose(MemoryType.INP, code, 0, code.used(MemoryType.INP))
        wgt = self._choose(MemoryType.WGT, code, 0, code.used(MemoryType.WGT))
        tiles = self._choose(MemoryType.OUT, code, bias, code.accumulators - bias, room)
        self._instructions += len(code.records)
        return inp, wgt, tiles

    def beside(self, code: Code, room: int) -> tuple[int, int, int]:
        """Return the same for a few elements, where neither this layer nor those beside it wait: they hold nothing."""
        inp, wgt = code.used(MemoryType.INP), code.used(MemoryType.WGT)
        sizes = zip(_HELD, (inp, wgt, code.accumulators), strict=True)
        latest = [sliding_window_view(self._held[kind], size).max(axis=1) for kind, size in sizes]
        latest[2] = latest[2][: max(room - code.accumulators + 1, 1)]
        first, second, third = (int(np.argmin(each)) for each in latest)
        return first, second, third

    def _choose(self, kind: MemoryType, code: Code, begin: int, size: int, room: int | None = None) -> int:
        """Return the place of `size` elements that `code` has from `begin` on, among the first `room` of the buffer."""
        held = self._held[kind]
        room = len(held) if room is None else room
        # `begin` elements beside them hold the bias.
        low, high = (0, room - size) if size + begin <= room else (begin, begin)
        if size + begin > len(held):
            raise AssertionError("a layer's tiles and bias were lowered for a smaller buffer")
        spans, first = _spans(code.records, kind)

        def latest(offset: int) -> int:
            whole = (held[offset + start - begin : offset + end - begin] for start, end in first)
            return max((int(part.max(initial=-1)) for part in whole), default=-1)

        # The other end than the layer before, unless that end is free earlier.
        order = (low, high) if self._high[kind] else (high, low)
        place = min(order, key=latest)
        self._high[kind] = place == high
        for (start, end), number in spans.items():
            held[place + start - begin : place + end - begin] = self._instructions + number
        return place


def _spans(records: Records, kind: MemoryType) -> tuple[dict[_Span, int], list[_Span]]:
    """Return the elements that a layer's LOADs (OUT: STOREs) move with the last instruction, and those of its start."""
    loads = (records["opcode"] == Opcode.LOAD) & (records["memory_type"] == kind)
    moves = np.flatnonzero(records["opcode"] == Opcode.STORE if kind == MemoryType.OUT else loads)
    gemms = np.flatnonzero(multiplies(records))
    begin = int(gemms[0]) if len(gemms) else 0
    spans: dict[_Span, int] = {}
    early: list[_Span] = []
    for number in moves.tolist():
        record = records[number]
        rows = int(record["y_size"]) + int(record["y_pad_0"]) + int(record["y_pad_1"])
        columns = int(record["x_size"]) + int(record["x_pad_0"]) + int(record["x_pad_1"])
        span = (int(record["sram_base"]), int(record["sram_base"]) + rows * columns)
        spans.pop(span, None)
        spans[span] = number
        if number < begin or not early:
            early.append(span)
    return spans, early
