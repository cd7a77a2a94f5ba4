"""A program's timeline as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing.

It has one track for each stage, one slice for each instruction, one arrow for each dependence token. The format is
the JSON of Chrome's trace events. Its times are microseconds; here one cycle is one nanosecond, so a display of
481,550 ns is 481,550 cycles, whatever the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode, disassemble

FETCH, LOAD, COMPUTE, STORE = range(4)
STAGES = ("fetch", "load", "compute", "store")
_PROCESS = 1
_NANOSECONDS = 1000  # of a microsecond

# Which queue a token bit pushes to or pops from: (from stage, to stage).
_PUSHES = (("push_prev", -1), ("push_next", +1))
_POPS = (("pop_prev", -1), ("pop_next", +1))


def stage_timeline(
    title: str, instructions: NDArray[np.uint64], accelerator: Accelerator, spans: NDArray[np.void], fetch_busy: int
) -> dict[str, Any]:
    """Return the trace: `instructions` uint64 (n, words) and when each was executed, hilt.simulator.twin.SPAN (n,).

    Fetch has no instructions of its own; its one slice is the `fetch_busy` cycles in which it brings them.
    Instructions that were never executed have no slice.
    """
    records = decode(instructions, accelerator)
    texts = disassemble(instructions, accelerator)
    executed = [ordinal for ordinal in range(len(records)) if spans["end"][ordinal]]
    by_time = sorted(executed, key=lambda ordinal: int(spans["start"][ordinal]))
    events = [*_names(title), _slice(FETCH, 0, fetch_busy, "fetch", {"instructions": len(records)})]
    for ordinal in by_time:
        record, span = records[ordinal], spans[ordinal]
        start, end = int(span["start"]), int(span["end"])
        arguments = {
            "ordinal": ordinal,
            "instruction": texts[ordinal],
            "bytes": bytes_moved(record, accelerator),
            "cycles": end - start,
        }
        events.append(_slice(int(span["stage"]), start, end, _kind(record), arguments))
    events += _arrows(records, spans, executed)
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"one nanosecond": "one cycle"}}


def bytes_moved(record: np.void, accelerator: Accelerator) -> int:
    """Return the bytes that a LOAD or STORE moves over the bus, padding excluded; 0 for the others."""
    if record["opcode"] not in (Opcode.LOAD, Opcode.STORE) or record["memory_type"] == MemoryType.TABLE:
        return 0
    parameters = accelerator.parameters
    element = {
        MemoryType.UOP: accelerator.uop_element_bytes,
        MemoryType.WGT: parameters.wgt_element_bytes,
        MemoryType.INP: parameters.inp_element_bytes,
        MemoryType.ACC: parameters.acc_element_bytes,
        MemoryType.OUT: parameters.out_element_bytes,
        MemoryType.ACC_8BIT: parameters.out_element_bytes,
        MemoryType.OUT_BY_TABLE: parameters.out_element_bytes,
    }[MemoryType(int(record["memory_type"]))]
    rows = 1 if record["memory_type"] == MemoryType.UOP else int(record["y_size"])
    return rows * int(record["x_size"]) * element


def _names(title: str) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": title}}
    for stage, name in enumerate(STAGES):
        yield {"ph": "M", "pid": _PROCESS, "tid": stage, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "pid": _PROCESS, "tid": stage, "name": "thread_sort_index", "args": {"sort_index": stage}}


def _slice(stage: int, start: int, end: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": start / _NANOSECONDS, "dur": (end - start) / _NANOSECONDS}
    return {"ph": "X", "pid": _PROCESS, "tid": stage, "name": name, "cat": STAGES[stage], **times, "args": arguments}


def _kind(record: np.void) -> str:
    opcode = Opcode(int(record["opcode"]))
    if opcode is Opcode.LOAD:
        return f"LOAD {MemoryType(int(record['memory_type'])).name}"
    return "GEMM reset" if opcode is Opcode.GEMM and record["reset"] else opcode.name


def _arrows(records: NDArray[np.void], spans: NDArray[np.void], executed: list[int]) -> Iterator[dict[str, Any]]:
    """A queue is first in, first out, and a stage executes in program order: the n-th pop has the n-th push's token."""
    pushed: dict[tuple[int, int], deque[int]] = {}
    for ordinal in executed:
        for bit, direction in _PUSHES:
            if records[bit][ordinal]:
                stage = int(spans["stage"][ordinal])
                pushed.setdefault((stage, stage + direction), deque()).append(ordinal)
    arrow = 0
    for ordinal in executed:
        for bit, direction in _POPS:
            stage = int(spans["stage"][ordinal])
            tokens = pushed.get((stage + direction, stage))
            if records[bit][ordinal] and tokens:
                yield _arrow_end("s", arrow, spans[tokens.popleft()], "end")
                yield {**_arrow_end("f", arrow, spans[ordinal], "start"), "bp": "e"}
                arrow += 1


def _arrow_end(phase: str, arrow: int, span: np.void, edge: str) -> dict[str, Any]:
    """An arrow leaves a slice in its last cycle and meets one in its first, so that viewers find the slices."""
    time = int(span["end"]) - 1 if edge == "end" else int(span["start"])
    where = {"pid": _PROCESS, "tid": int(span["stage"]), "ts": time / _NANOSECONDS}
    return {"ph": phase, "id": arrow, "name": "token", "cat": "token", **where}
