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

from hilt.simulator.critical_path import CriticalPaths, WorkGraph
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode, decode
from hilt.vta.program import Program

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STAGES = 3
"""The number of stages: load, compute, store."""
_LEAST = 1e-9
"""Least cycles of the second half of the followed segments: a program may have no work there."""


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
        behind = sources > np.arange(len(sources))[:, None]  # a token that is sent later in the program
        return cls(decoded, stage, segment, np.ascontiguousarray(np.where(behind, 0, sources), dtype=np.int32))

    def summed(self, work: Floats) -> Floats:
        """Sum the work (n, kinds) of instructions by followed segment (k, kinds)."""
        count = len(self.sources)
        inside = self.segment < count
        segment = self.segment[inside]
        return np.stack([np.bincount(segment, column[inside], count) for column in work.T], axis=1)


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
        begins[1:] |= pushes[own[:-1]]
        leader[own] = own[np.maximum.accumulate(np.where(begins, np.arange(len(own)), 0))] if len(own) else own
    first, segment = np.unique(leader, return_inverse=True)
    return segment, first


@dataclass(frozen=True, eq=False)
class FollowedWork:
    """The work of one program: of its followed segments, and of all of it."""

    graph: WorkGraph
    all_work: Floats
    """Work of each kind in the whole program (kinds,)."""
    followed: Floats
    """Work of each kind in the followed segments (kinds,)."""
    second_half: Floats
    """The same of the second half of them, which is past the program's beginning."""

    @classmethod
    def of(cls, flow: Dataflow, work: Floats, all_work: Floats) -> FollowedWork:
        """Return it for the work of each instruction (n, kinds) and of the whole program (kinds,)."""
        graph = WorkGraph(flow.sources, np.ascontiguousarray(flow.summed(work)))
        half = len(graph.work) // 2
        return cls(graph, all_work, graph.work.sum(axis=0), graph.work[half:].sum(axis=0))


def finish(paths: CriticalPaths, programs: Sequence[FollowedWork], cycles: Floats) -> Floats:
    """Return the end of each program, in cycles (programs, machines), with costs `cycles` (kinds, machines).

    The rest of a program goes on at the pace of the second half of the followed segments.
    """
    half, whole = np.moveaxis(paths.ends([each.graph for each in programs], cycles), 2, 0)
    pace = (whole - half) / np.maximum(_stacked(programs, "second_half") @ cycles, _LEAST)
    return np.asarray(whole + np.maximum(_rest(programs) @ cycles, 0) * pace)


def critical_work(paths: CriticalPaths, programs: Sequence[FollowedWork], cycles: Floats) -> tuple[Floats, Floats]:
    """Return the end of each program (programs,), and its derivatives by the logarithms of the costs (programs, kinds).

    `cycles` (kinds,) are the costs.
    """
    half, path = np.moveaxis(paths.work([each.graph for each in programs], cycles) * cycles, 1, 0)
    paced, seen, rest = path - half, _stacked(programs, "second_half") * cycles, _rest(programs) * cycles
    length = np.maximum(seen.sum(axis=1), _LEAST)
    pace, left = paced.sum(axis=1) / length, np.maximum(rest.sum(axis=1), 0.0)
    slope = path + np.where(
        left[:, None] > 0,
        rest * pace[:, None] + (left / length)[:, None] * (paced - pace[:, None] * seen),
        0.0,
    )
    return np.asarray(path.sum(axis=1) + left * pace), np.asarray(slope)


def _stacked(programs: Sequence[FollowedWork], name: str) -> Floats:
    return np.stack([getattr(each, name) for each in programs])


def _rest(programs: Sequence[FollowedWork]) -> Floats:
    """Return the work (programs, kinds) beyond the followed segments."""
    rest = np.stack([each.all_work - each.followed for each in programs])
    rounding = 1e-9 * np.stack([each.all_work for each in programs])
    return np.where(np.abs(rest) > rounding, rest, 0.0)
