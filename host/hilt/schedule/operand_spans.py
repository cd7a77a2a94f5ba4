"""The elements on chip that instructions of the compute stage touch, of a whole stream together."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from hilt.vta.isa import MemoryType, Opcode

OPERANDS = ("dst", "src", "wgt")
_Numbers = NDArray[np.int64]


def operand_spans(
    records: NDArray[np.void], micro_ops: NDArray[np.void], depth: int
) -> dict[str, list[tuple[int, int]]]:
    """Return the elements from the first to behind the last that each instruction touches, by micro-op field.

    `records` are INSTRUCTION records (n,), `micro_ops` the UOP records (m,) from which LOADs of UOP read at their
    dram_base, `depth` the elements of the micro-op buffer. Instructions that are no GEMM and no ALU touch nothing.
    """
    least = {name: np.zeros(len(records), dtype=np.int64) for name in OPERANDS}
    largest = {name: np.full(len(records), -1, dtype=np.int64) for name in OPERANDS}
    reads = np.isin(records["opcode"], (Opcode.GEMM, Opcode.ALU)) & (records["uop_end"] > records["uop_bgn"])
    held = np.zeros(depth + 1, dtype=micro_ops.dtype)  # one more: `_extremes` reads behind the last range
    loads = np.flatnonzero((records["opcode"] == Opcode.LOAD) & (records["memory_type"] == MemoryType.UOP))
    for begin, end in itertools.pairwise([0, *loads.tolist(), len(records)]):
        own = begin + np.flatnonzero(reads[begin:end])
        if begin in loads:
            _load(held, micro_ops, records[begin])
        if len(own):
            ranges = records["uop_bgn"][own].astype(np.int64), records["uop_end"][own].astype(np.int64)
            for name in OPERANDS:
                least[name][own], largest[name][own] = _extremes(held[name].astype(np.int64), *ranges)
    return {name: _moved(records, name, least[name], largest[name]) for name in OPERANDS}


def _load(held: NDArray[np.void], micro_ops: NDArray[np.void], record: np.void) -> None:
    """Load micro-ops to the buffer as a LOAD of UOP does."""
    first, source, size = (int(record[name]) for name in ("sram_base", "dram_base", "x_size"))
    held[first : first + size] = micro_ops[source : source + size]


def _extremes(values: _Numbers, begins: _Numbers, ends: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Return the least and the largest of `values` in each range (k,), none of them empty."""
    keys, which = np.unique(begins << 32 | ends, return_inverse=True)
    bounds = np.stack((keys >> 32, keys & 0xFFFFFFFF), axis=1).reshape(-1)
    least, largest = (reduce.reduceat(values, bounds)[::2] for reduce in (np.minimum, np.maximum))
    return least[which], largest[which]


def _moved(records: NDArray[np.void], name: str, least: _Numbers, largest: _Numbers) -> list[tuple[int, int]]:
    """Return the spans (n) that the loops make of micro-ops' fields."""
    outer, inner = (records[f"{name}_factor_{loop}"].astype(np.int64) for loop in ("out", "in"))
    turns_out, turns_in = (records[f"iter_{loop}"].astype(np.int64) - 1 for loop in ("out", "in"))
    windows = records["window"] != 0
    if name == "wgt":
        outer, inner = np.where(windows, 0, outer), np.where(windows, 0, inner)
    firsts = least
    if name == "dst" and windows.any():  # the weights' factors are the rows and columns not written
        rows, columns = (records[f"wgt_factor_{loop}"].astype(np.int64) for loop in ("out", "in"))
        firsts = least + np.where(windows, rows * outer + columns * inner, 0)
    ends = largest + turns_out * outer + turns_in * inner + 1
    return list(zip(firsts.tolist(), ends.tolist(), strict=True))
