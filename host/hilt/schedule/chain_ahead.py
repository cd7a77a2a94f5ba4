"""LOADs of a layer that come among those of layers before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.chain_tokens import Records
from hilt.vta.isa import MemoryType, Opcode


@dataclass(frozen=True, order=True)
class Ahead:
    """A LOAD, or a part of one of weights, that comes in front of an earlier LOAD.

    LOADs count those of the load stage in a chain, from 0.

    Attributes:
        load: The LOAD.
        first: The first of its units (`units_of`).
        units: How many.
        before: The LOAD that it comes in front of.
    """

    load: int
    first: int
    units: int
    before: int


def stage_loads(records: Records) -> NDArray[np.int64]:
    """Return the places of the load stage's instructions among INSTRUCTION records (n,)."""
    kinds = np.isin(records["memory_type"], (MemoryType.INP, MemoryType.WGT))
    return np.flatnonzero((records["opcode"] == Opcode.LOAD) & kinds)


def units_of(record: np.void) -> tuple[int, int]:
    """Return the units that a LOAD may come in, and the elements of each: rows, or elements if it has one row.

    A LOAD of inputs is one unit.
    """
    high, wide = int(record["y_size"]), int(record["x_size"])
    if record["memory_type"] == MemoryType.INP:
        return 1, high * wide
    return (wide, 1) if high == 1 else (high, wide)


def with_loads_ahead(
    records: Records, ahead: Sequence[Ahead], lengths: NDArray[np.int64]
) -> tuple[Records, NDArray[np.int64], NDArray[np.int64]]:
    """Return records (m,) with parts of LOADs at earlier places, the place of each (m,) before, and new lengths.

    `records` (n,) have no tokens. No instruction between a part's places touches its elements, or stores its data.
    Parts with one place come in the order of their LOADs. `lengths` are the layers' instructions, in order.
    """
    loads = stage_loads(records)
    kept = np.ones(len(records), dtype=np.bool_)
    pieces, wanted, sources = [], [], []
    for number in sorted({each.load for each in ahead}):
        place = int(loads[number])
        kept[place] = False
        own = sorted(each for each in ahead if each.load == number)
        moved = [(each.first, each.first + each.units, int(loads[each.before]) - 0.5) for each in own]
        for first, end, where in [*moved, *_left(moved, place, units_of(records[place])[0])]:
            pieces.append(_part(records[place : place + 1], first, end))
            wanted.append(where)
            sources.append(place)
    places = np.concatenate((np.flatnonzero(kept), wanted))
    order = np.argsort(places, kind="stable")
    layers = np.searchsorted(np.cumsum(lengths), places, side="right")
    return (
        np.concatenate((records[kept], *pieces))[order],
        np.concatenate((np.flatnonzero(kept), sources)).astype(np.int64)[order],
        np.bincount(layers, minlength=len(lengths))[: len(lengths)],
    )


def _left(moved: Sequence[tuple[int, int, float]], place: int, units: int) -> list[tuple[int, int, float]]:
    """Return the rest of a LOAD between its moved parts: first unit, the one behind the last, place."""
    ends = [0, *(end for _, end, _ in moved)]
    begins = [*(first for first, _, _ in moved), units]
    return [(end, begin, place) for end, begin in zip(ends, begins, strict=True) if begin > end]


def _part(record: Records, first: int, end: int) -> Records:
    """Return the units [first, end) of a LOAD, an array of one."""
    part = record.copy()
    units, wide = units_of(record[0])
    if end - first == units:
        return part
    in_row = int(record["y_size"][0]) == 1
    part["sram_base"] += first * wide
    part["dram_base"] += first if in_row else first * int(record["x_stride"][0])
    part["x_size" if in_row else "y_size"] = end - first
    return part
