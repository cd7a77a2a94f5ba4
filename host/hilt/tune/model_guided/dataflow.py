"""The end of a program on a machine with a known time for each instruction.

A VTA has three stages (load, compute, store). Each executes its instructions in order, and dependence tokens order the
stages among each other. Instructions of one stage with no token between them act as one, so they form one segment.
Programs repeat a few steps many times: only the first segments are followed, and the rest is extrapolated by work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode
from hilt.vta.program import Program

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STAGES = 3
"""The number of stages: load, compute, store."""
_WIDTH = 4096
"""Programs times machines that are followed at once: wide enough to be cheap, small enough to hold in memory."""


@dataclass(frozen=True, eq=False)
class Dataflow:
    """The dependence graph of one program's first segments."""

    instructions: npt.NDArray[np.void]
    """Decoded instructions (n,), without FINISH."""
    stage: npt.NDArray[np.int8]
    """Stage of each instruction (n,)."""
    segment: Ints
    """Segment of each instruction (n,), in an order in which every dependence leads back; all of the program."""
    sources: npt.NDArray[np.int32]
    """Segments (k, 3) that end before each of the first k begins: the one before in its stage, the senders of its
    tokens. 0 stands for none, so segment i is written i + 1."""

    @classmethod
    def of(cls, program: Program, accelerator: Accelerator, most: int, longest: int | None = None) -> Dataflow:
        """Return the graph of a program's first `longest` instructions, with `most` segments followed."""
        decoded = decode(program.instructions[:longest], accelerator)
        decoded = decoded[decoded["opcode"] != Opcode.FINISH]
        stage = _stages(decoded)
        senders = _senders(decoded, stage)
        segment, first = _segments(decoded, stage)
        before = np.full(len(first), -1, dtype=np.int64)
        for number in range(STAGES):
            own = np.flatnonzero(stage[first] == number)
            before[own[1:]] = own[:-1]
        tokens = np.where(senders[first] >= 0, segment[senders[first]], -1)
        sources = np.concatenate((before[:, None], tokens), axis=1)[:most] + 1
        return cls(decoded, stage, segment, sources.astype(np.int32))

    @property
    def segments(self) -> int:
        """Number of segments that are followed."""
        return len(self.sources)

    def durations(self, cycles: Floats) -> Floats:
        """Sum the cycles (n, m) of instructions by followed segment (k, m)."""
        inside = self.segment < self.segments
        summed = np.zeros((self.segments, cycles.shape[1]))
        np.add.at(summed, self.segment[inside], cycles[inside])
        return summed


def _stages(decoded: npt.NDArray[np.void]) -> npt.NDArray[np.int8]:
    loads = (decoded["opcode"] == Opcode.LOAD) & np.isin(decoded["memory_type"], (MemoryType.INP, MemoryType.WGT))
    return np.where(loads, 0, np.where(decoded["opcode"] == Opcode.STORE, 2, 1)).astype(np.int8)


def _senders(decoded: npt.NDArray[np.void], stage: npt.NDArray[np.int8]) -> Ints:
    """Return the instructions (n, 2) whose tokens each one takes from the stages before and after it; -1 for none."""
    senders = np.full((len(decoded), 2), -1, dtype=np.int64)
    for column, pop, push, step in ((0, "pop_prev", "push_next", -1), (1, "pop_next", "push_prev", 1)):
        for number in range(STAGES):
            takers = np.flatnonzero((stage == number) & (decoded[pop] == 1))
            givers = np.flatnonzero((stage == number + step) & (decoded[push] == 1))
            count = min(len(takers), len(givers))
            senders[takers[:count], column] = givers[:count]
    return senders


def _segments(decoded: npt.NDArray[np.void], stage: npt.NDArray[np.int8]) -> tuple[Ints, Ints]:
    """Return each instruction's segment (n,) and each segment's first instruction (k,)."""
    pops = (decoded["pop_prev"] == 1) | (decoded["pop_next"] == 1)
    pushes = (decoded["push_prev"] == 1) | (decoded["push_next"] == 1)
    leader = np.zeros(len(decoded), dtype=np.int64)
    for number in range(STAGES):
        own = np.flatnonzero(stage == number)
        begins = pops[own].copy()
        begins[:1] = True
        begins[1:] |= pushes[own[:-1]]
        leader[own] = own[np.maximum.accumulate(np.where(begins, np.arange(len(own)), 0))] if len(own) else own
    first, segment = np.unique(leader, return_inverse=True)
    return segment, first


def finish(flows: Sequence[Dataflow], durations: Sequence[Floats], total: Floats) -> Floats:
    """Return the end of each program, in cycles (programs, machines).

    Args:
        flows: the programs' graphs.
        durations: cycles of each one's followed segments, (k, machines).
        total: cycles of all instructions of each program, (programs, machines), to extrapolate the rest.
    """
    ends = np.zeros(total.shape)
    order = np.argsort([-flow.segments for flow in flows], kind="stable")
    each = max(_WIDTH // max(total.shape[1], 1), 1)
    for first in range(0, len(order), each):
        chosen = order[first : first + each].tolist()
        followed, _ = _ends([flows[i] for i in chosen], [durations[i] for i in chosen])
        for column, number in enumerate(chosen):
            ends[number] = _extrapolated(followed[:, column], durations[number], total[number])
    return ends


def _extrapolated(ends: Floats, durations: Floats, total: Floats) -> Floats:
    """Return the end (machines,) of a whole program from the ends of its followed segments (k + 1, machines).

    The rest goes on at the pace of the second half of the followed segments, which is past the program's beginning.
    """
    end = ends.max(axis=0)
    rest = total - durations.sum(axis=0)
    if not (rest > 1e-9 * total).any():
        return np.asarray(end)
    half = len(durations) // 2
    pace = (end - ends[: half + 1].max(axis=0)) / np.maximum(durations[half:].sum(axis=0), 1e-9)
    return np.asarray(end + np.maximum(rest, 0) * pace)


def _ends(flows: Sequence[Dataflow], durations: Sequence[Floats]) -> tuple[Floats, Ints]:
    """Return the end of each segment (k + 1, programs, machines) and its sources (k, 3, programs)."""
    longest, machines = flows[0].segments, durations[0].shape[1]
    counts = np.array([flow.segments for flow in flows])
    ends = np.zeros((longest + 1, len(flows), machines))
    sources = np.zeros((longest, 3, len(flows)), dtype=np.int64)
    for number, (flow, cycles) in enumerate(zip(flows, durations, strict=True)):
        sources[: flow.segments, :, number] = flow.sources
        ends[1 : flow.segments + 1, number] = cycles
    flat = ends.reshape(-1, machines)
    places = sources * len(flows) + np.arange(len(flows))
    alive = (counts[None] > np.arange(longest)[:, None]).sum(axis=1).tolist()
    for step, some in enumerate(alive):
        before = flat.take(places[step, :, :some].ravel(), axis=0).reshape(3, some, machines)
        ends[step + 1, :some] += np.maximum.reduce(before)
    return ends, sources


def critical_work(
    flows: Sequence[Dataflow], works: Sequence[Floats], all_works: Sequence[Floats], cycles: Floats
) -> tuple[Floats, Floats]:
    """Return the end of each program (programs,), and its derivatives by the logarithms of the costs (programs, c).

    Args:
        flows: the programs' graphs.
        works: work of each kind in each one's followed segments, (k, c).
        all_works: work of each kind in the whole of each program, (c,).
        cycles: the cost of each kind (c,).
    """
    order = np.argsort([-flow.segments for flow in flows], kind="stable")
    end, slope = np.zeros(len(flows)), np.zeros((len(flows), len(cycles)))
    for first in range(0, len(order), _WIDTH // 16):
        chosen = order[first : first + _WIDTH // 16].tolist()
        ends, sources = _ends([flows[i] for i in chosen], [(works[i] @ cycles)[:, None] for i in chosen])
        ends = ends[:, :, 0]
        whole = _walk_back(ends, sources, ends.argmax(axis=0))
        halves = [flows[i].segments // 2 for i in chosen]
        early = [int(ends[: half + 1, column].argmax()) for column, half in enumerate(halves)]
        begun = _walk_back(ends, sources, np.array(early))
        for column, (number, half) in enumerate(zip(chosen, halves, strict=True)):
            work, segments = works[number] * cycles, flows[number].segments
            path = work[whole[1 : segments + 1, column]].sum(axis=0)
            rest = all_works[number] * cycles - work.sum(axis=0)
            end[number], slope[number] = path.sum(), path
            if rest.sum() > 1e-9 * work.sum():
                paced = path - work[begun[1 : segments + 1, column]].sum(axis=0)
                seen = np.maximum(work[half:].sum(axis=0), 0)
                length = max(float(seen.sum()), 1e-9)
                pace = float(paced.sum()) / length
                left = max(float(rest.sum()), 0.0)
                end[number] += left * pace
                slope[number] += rest * pace + left * (paced - pace * seen) / length
    return end, slope


def _walk_back(ends: Floats, sources: Ints, last: Ints) -> npt.NDArray[np.bool_]:
    """Mark (k + 1, programs) the segments on the way to segment `last` (programs,), by the latest of the sources."""
    programs = np.arange(ends.shape[1])
    latest = ends[sources, programs].argmax(axis=1)
    before = np.zeros(ends.shape, dtype=np.int64)
    before[1:] = np.take_along_axis(sources, latest[:, None], axis=1)[:, 0]
    flat = (before * len(programs) + programs).ravel()
    here = last * len(programs) + programs
    on_path = np.zeros(ends.size, dtype=np.bool_)
    while (here >= len(programs)).any():
        on_path[here] = True
        here = flat.take(here)
    return on_path.reshape(ends.shape)
