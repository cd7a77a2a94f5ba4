"""The guarantees of a program's tokens, worked out from its decoded instructions alone.

Every access comes after the accesses that it depends on, whatever the stages' speeds. The program ends on queues of
any depth. The distance of its sums is counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode, decode_uops
from hilt.vta.program import Program

LOAD, COMPUTE, STORE = 0, 1, 2
# (flag, stage) -> the token queue it uses, named (from, to).
_POPS = {"pop_prev": -1, "pop_next": 1}


def stage_of(record: np.void) -> int:
    if record["opcode"] == Opcode.STORE:
        return STORE
    if record["opcode"] == Opcode.LOAD and record["memory_type"] in (MemoryType.INP, MemoryType.WGT):
        return LOAD
    return COMPUTE


@dataclass(frozen=True)
class Touched:
    """Element indices that a GEMM or ALU instruction reads and writes."""

    dst: NDArray[np.int64]
    src: NDArray[np.int64]
    wgt: NDArray[np.int64]


class Decoded:
    """A program as records, with the indices that each of its loops touches, in order."""

    def __init__(self, program: Program, accelerator: Accelerator) -> None:
        self.records = decode(program.instructions, accelerator)
        self.all_uops = decode_uops(program.uops, accelerator)
        self.uops = self.all_uops.copy()
        """The micro-ops on chip: at first all are where a single LOAD would bring them; `load_uops` moves them."""

    def load_uops(self, record: np.void) -> None:
        first, source, size = (int(record[name]) for name in ("sram_base", "dram_base", "x_size"))
        self.uops = np.concatenate((self.uops, np.zeros(max(first + size - len(self.uops), 0), self.uops.dtype)))
        self.uops[first : first + size] = self.all_uops[source : source + size]

    def touched(self, record: np.void) -> Touched:
        """Return the indices that the instruction touches, in the order of execution, one entry a micro-op."""
        uops = self.uops[int(record["uop_bgn"]) : int(record["uop_end"])]
        window, turns = bool(record["window"]), {"out": int(record["iter_out"]), "in": int(record["iter_in"])}
        indices = {}
        for name in ("dst", "src", "wgt"):
            counted = {loop: np.arange(turns[loop]) for loop in turns}
            if window and name == "dst":  # the weights' factors are the rows and columns that are read alone
                counted = {loop: np.arange(int(record[f"wgt_factor_{loop}"]), turns[loop]) for loop in turns}
            steps = {loop: int(record[f"{name}_factor_{loop}"]) for loop in turns}
            if window and name == "wgt":
                steps = dict.fromkeys(steps, 0)
            outer, inner = (counted[loop] * steps[loop] for loop in ("out", "in"))
            fields = uops[name].astype(np.int64)
            indices[name] = (outer[:, None, None] + inner[None, :, None] + fields[None, None, :]).ravel()
        return Touched(**indices)


def check_order(program: Program, accelerator: Accelerator) -> None:
    """Check happens-before by vector clocks.

    Raises:
        AssertionError: Two stages touch an element unordered; an element is read but never written, or from memory
        before it is stored; a token is left over or comes from a later instruction; or FINISH does not come after
        everything.
    """
    decoded = Decoded(program, accelerator)
    parameters = accelerator.parameters
    clocks = [[-1, -1, -1] for _ in range(3)]
    tokens: dict[tuple[int, int], deque[list[int]]] = {
        (a, b): deque() for a, b in ((LOAD, COMPUTE), (COMPUTE, LOAD), (COMPUTE, STORE), (STORE, COMPUTE))
    }
    written = {"inp": np.full(parameters.inp_depth, -1), "wgt": np.full(parameters.wgt_depth, -1)}
    read = {"inp": np.full(parameters.inp_depth, -1), "wgt": np.full(parameters.wgt_depth, -1)}
    out_written, out_read = np.full(parameters.acc_depth, -1), np.full(parameters.acc_depth, -1)
    memory = _Stores(program)
    acc_valid = np.zeros(parameters.acc_depth, dtype=bool)
    cache: dict[bytes, Touched] = {}
    for number, record in enumerate(decoded.records):
        stage = stage_of(record)
        clock = clocks[stage]
        for flag, step in _POPS.items():
            if record[flag]:
                queue = tokens[(stage + step, stage)]
                assert queue, f"instruction {number} waits for a token of a later instruction"
                clock[:] = [max(mine, theirs) for mine, theirs in zip(clock, queue.popleft(), strict=True)]
        clock[stage] += 1
        now = clock[stage]
        base, rows = int(record["sram_base"]), int(record["y_pad_0"] + record["y_size"] + record["y_pad_1"])
        box = slice(base, base + rows * int(record["x_pad_0"] + record["x_size"] + record["x_pad_1"]))
        if stage == LOAD:
            name = "inp" if record["memory_type"] == MemoryType.INP else "wgt"
            assert box.stop <= len(read[name]), f"instruction {number} loads past {name}"
            assert np.all(read[name][box] <= clock[COMPUTE]), f"instruction {number} overwrites {name} in use"
            assert memory.last(number, record) <= clock[STORE], f"instruction {number} loads before it is stored"
            written[name][box] = now
        elif stage == STORE:
            assert np.all(out_written[box] >= 0), f"instruction {number} stores elements that were not computed"
            assert np.all(out_written[box] <= clock[COMPUTE]), f"instruction {number} stores too early"
            out_read[box] = now
            memory.store(number, record, now)
        elif record["opcode"] == Opcode.LOAD:
            if record["memory_type"] == MemoryType.ACC:
                acc_valid[box] = True
            elif record["memory_type"] == MemoryType.UOP:
                decoded.load_uops(record)
                cache.clear()
        elif record["opcode"] in (Opcode.GEMM, Opcode.ALU):
            key = record.tobytes()[20:]  # the fields that decide the touched indices: opcode and tokens come first
            touched = cache.get(key) or cache.setdefault(key, decoded.touched(record))
            assert np.all(out_read[touched.dst] <= clock[STORE]), f"instruction {number} overwrites out unstored"
            if record["reset"]:
                acc_valid[touched.dst] = True
            if record["opcode"] == Opcode.GEMM and (record["window"] or not record["reset"]):
                for name, indices in (("inp", touched.src), ("wgt", touched.wgt)):
                    assert np.all(written[name][indices] >= 0), f"instruction {number} reads unwritten {name}"
                    assert np.all(written[name][indices] <= clock[LOAD]), f"instruction {number} reads {name} too early"
                    read[name][indices] = now
            elif record["opcode"] == Opcode.ALU and not record["use_imm"]:
                assert np.all(acc_valid[touched.src]), f"instruction {number} reads unwritten acc"
            assert np.all(acc_valid[touched.dst]), f"instruction {number} adds to unwritten acc"
            out_written[touched.dst] = now
        for flag, step in (("push_prev", -1), ("push_next", 1)):
            if record[flag]:
                tokens[(stage, stage + step)].append(list(clock))
    assert not any(tokens.values()), "tokens are left over"
    assert decoded.records["opcode"][-1] == Opcode.FINISH
    stages = [stage_of(record) for record in decoded.records]
    assert clocks[COMPUTE][STORE] == stages.count(STORE) - 1, "FINISH does not wait for the last store"


class _Stores:
    """Knows the last STORE of each element of each buffer, as the store stage counts."""

    def __init__(self, program: Program) -> None:
        self._buffer = {
            int(place): (each.name, each.element_bytes) for each in program.buffers for place in each.instructions
        }
        self._sizes = {buffer.name: buffer.bytes for buffer in program.buffers}
        self._stored: dict[str, NDArray[np.int64]] = {}

    def store(self, number: int, record: np.void, now: int) -> None:
        name, places = self._bytes(number, record)
        if name:
            self._stored.setdefault(name, np.full(self._sizes[name], -1))[places] = now

    def last(self, number: int, record: np.void) -> int:
        """Return the last STORE of the data of a LOAD; -1 for none."""
        name, places = self._bytes(number, record)
        return int(self._stored[name][places].max(initial=-1)) if name in self._stored else -1

    def _bytes(self, number: int, record: np.void) -> tuple[str, NDArray[np.int64]]:
        name, size = self._buffer.get(number, ("", 1))
        rows = int(record["dram_base"]) + int(record["x_stride"]) * np.arange(int(record["y_size"]))
        elements = (rows[:, None] + np.arange(int(record["x_size"]))).ravel()
        return name, (elements[:, None] * size + np.arange(size)).ravel()


def drains(program: Program, accelerator: Accelerator, queue_depth: int) -> bool:
    """Return whether the program ends on instruction queues of this depth, each stage running as far as it can."""
    records = decode(program.instructions, accelerator)
    queues: list[deque[np.void]] = [deque(), deque(), deque()]
    tokens = dict.fromkeys(((LOAD, COMPUTE), (COMPUTE, LOAD), (COMPUTE, STORE), (STORE, COMPUTE)), 0)
    fetched = executed = 0
    while True:
        moved = False
        while fetched < len(records) and len(queues[stage_of(records[fetched])]) < queue_depth:
            queues[stage_of(records[fetched])].append(records[fetched])
            fetched += 1
            moved = True
        for stage, queue in enumerate(queues):
            while queue:
                wanted = [(stage + step, stage) for flag, step in _POPS.items() if queue[0][flag]]
                if not all(tokens[name] for name in wanted):
                    break
                for name in wanted:
                    tokens[name] -= 1
                record = queue.popleft()
                for flag, step in (("push_prev", -1), ("push_next", 1)):
                    if record[flag]:
                        tokens[(stage, stage + step)] += 1
                executed += 1
                moved = True
        if not moved:
            return executed == len(records) and not any(tokens.values())


def least_sum_distance(program: Program, accelerator: Accelerator) -> int | None:
    """Return the least number of micro-ops between two updates of one accumulator element within one GEMM.

    The result is None if there are no such updates.
    """
    decoded = Decoded(program, accelerator)
    distances = []
    gemms = decoded.records[(decoded.records["opcode"] == Opcode.GEMM) & (decoded.records["reset"] == 0)]
    names = [name for name in gemms.dtype.names or () if name not in ("pop_prev", "pop_next", "push_prev", "push_next")]
    for record in np.unique(gemms[names]):
        dst = decoded.touched(record).dst
        order = np.argsort(dst, kind="stable")
        again = dst[order][1:] == dst[order][:-1]
        if again.any():
            distances.append(int((order[1:] - order[:-1])[again].min()))
    return min(distances, default=None)
