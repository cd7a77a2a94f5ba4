"""Timing of machines that are built differently from hilt's RTL, by the work of each instruction.

A machine of the family takes some cycles for each instruction, transfer, DMA row, byte, byte that misses the cache,
turn of a GEMM's or ALU's loops, and micro-op. Measurements determine these numbers. Its stages run side by side as the
tokens allow, or one after another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hilt.schedule.features import Features
from hilt.simulator.critical_path import CriticalPaths
from hilt.tune.model_guided.cache_misses import CACHE_BYTES, CacheMisses
from hilt.tune.model_guided.dataflow import Dataflow, FollowedWork, critical_work, finish
from hilt.tune.model_guided.lowered import LoweredPrograms
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode

Floats = npt.NDArray[np.float64]

RANGES: Mapping[str, tuple[float, float]] = {
    "instruction": (2.0, 64.0),  # decoding and tokens, to instructions that a bus of 32 bits fetches one by one
    "row": (1.0, 100.0),  # one beat of a burst, to a whole DRAM latency (0.3 us at 333 MHz) that nothing hides
    "stored row": (1.0, 80.0),  # the same, with posted writes
    "byte": (0.5, 2.5),  # times a beat of the bus: twice as wide as assumed, to 40 % of its bandwidth
    "padding": (0.05, 2.0),  # a row of zeros at once, to two cycles a tensor
    "gemm turn": (0.1, 16.0),  # a loop that never drains, to a pipeline of that depth
    "gemm micro-op": (0.5, 3.0),  # two a cycle, to an initiation interval of 3
    "alu turn": (0.1, 16.0),
    "alu micro-op": (0.25, 16.0),  # four vectors a cycle, to a lane at a time
    "transfer": (1.0, 50.0),  # a request that is queued, to one that waits for its predecessor
    "missed byte": (0.001, 0.1),  # no cache, to a tenth of a cycle
}
"""The kinds of work that describe a machine of the family, each with a range of cycles.

It holds nine of ten accelerators in programmable logic: what clocks of 50 to 333 MHz, buses of 32 to 128 bits,
pipelines and DRAM allow, whatever a design. No figure is that of a known machine.
"""
COSTS = tuple(RANGES)
_NINE_OF_TEN = 1.645
"""Deviations of a normal distribution on either side that hold nine of ten."""
_LOGARITHMS = np.log(np.array(list(RANGES.values())))
USUAL = np.asarray(_LOGARITHMS.mean(axis=1))
"""Logarithms of the costs in the middle of their ranges; that of a byte is relative to a beat of the bus."""
DEVIATION = np.asarray((_LOGARITHMS[:, 1] - _LOGARITHMS[:, 0]) / (2 * _NINE_OF_TEN))
"""Prior deviations of the logarithms of the costs."""
_STEP = 0.1
"""Difference of logarithms for numerical derivatives of an estimate."""
_MOST_SEGMENTS = 2000
_LONGEST = 20_000
"""Most instructions of a program that are decoded; longer programs repeat themselves."""


class Timing(Protocol):
    """Cycles of the family's machines, whose costs are logarithms of COSTS."""

    def log_cycles(self, rows: Sequence[int], costs: Floats, overlap: bool) -> Floats:
        """Return natural logarithms (rows, machines) for costs (machines, 11) and runnable rows."""

    def derivatives(self, rows: Sequence[int], costs: Floats, overlap: bool) -> tuple[Floats, Floats]:
        """Return natural logarithms (rows,) and their derivatives (rows, 11) by costs (11,)."""


class StructuralTiming:
    """The cycles of lowered programs. Runs of one problem may share it."""

    def __init__(self, lowered: LoweredPrograms) -> None:
        """Raises MissingToolError or BuildError where the library of critical paths cannot be built."""
        self._lowered = lowered
        self._cache = CacheMisses(lowered.accelerator)
        self._paths = CriticalPaths(lowered.accelerator)
        self._followed: dict[bytes, FollowedWork] = {}

    def log_cycles(self, rows: Sequence[int], costs: Floats, overlap: bool) -> Floats:
        programs, places = self._programs(rows)
        if not programs:
            return np.zeros((0, len(costs)))
        cycles = np.exp(costs).T
        total = finish(self._paths, programs, cycles) if overlap else _all_work(programs) @ cycles
        return np.asarray(np.log(total)[places])

    def derivatives(self, rows: Sequence[int], costs: Floats, overlap: bool) -> tuple[Floats, Floats]:
        programs, places = self._programs(rows)
        if not programs:
            return np.zeros(0), np.zeros((0, len(costs)))
        cycles = np.exp(costs)
        if overlap:
            total, slope = critical_work(self._paths, programs, cycles)
        else:
            slope = _all_work(programs) * cycles
            total = slope.sum(axis=1)
        return np.asarray(np.log(total)[places]), np.asarray((slope / total[:, None])[places])

    def _programs(self, rows: Sequence[int]) -> tuple[list[FollowedWork], list[int]]:
        """Return the distinct programs of rows, and the place of each runnable row's among them."""
        wanted = [digest for digest in self._lowered.digests(rows) if digest is not None]
        position = {digest: place for place, digest in enumerate(dict.fromkeys(wanted))}
        return [self._work_of(digest) for digest in position], [position[digest] for digest in wanted]

    def _work_of(self, digest: bytes) -> FollowedWork:
        if digest not in self._followed:
            program = self._lowered.program(digest)
            flow = Dataflow.of(program, self._lowered.accelerator, _MOST_SEGMENTS, _LONGEST)
            missed = self._cache.missed_bytes(program)
            work = _work(flow, self._lowered.accelerator, missed[: len(flow.stage)])
            share = max(len(program.instructions) - 1, 1) / max(len(flow.stage), 1)
            all_work = work.sum(axis=0) * share
            all_work[-1] = missed.sum()
            self._followed[digest] = FollowedWork.of(flow, work, all_work)
        return self._followed[digest]


def _all_work(programs: Sequence[FollowedWork]) -> Floats:
    return np.stack([each.all_work for each in programs])


def _work(flow: Dataflow, accelerator: Accelerator, missed: Floats) -> Floats:
    """Return the counts of each of COSTS for each instruction (n, 11)."""
    fields = flow.instructions
    opcode = fields["opcode"]
    load, store = opcode == Opcode.LOAD, opcode == Opcode.STORE
    turns = fields["iter_out"].astype(np.float64) * fields["iter_in"]
    uops = turns * (fields["uop_end"].astype(np.float64) - fields["uop_bgn"])
    rows = fields["y_size"].astype(np.float64)
    elements = rows * fields["x_size"]
    width = fields["x_size"] + fields["x_pad_0"].astype(np.float64) + fields["x_pad_1"]
    height = rows + fields["y_pad_0"] + fields["y_pad_1"]
    gemm, alu = opcode == Opcode.GEMM, opcode == Opcode.ALU
    columns = [
        np.ones(len(fields)),
        np.where(load, rows, 0),
        np.where(store, rows, 0),
        np.where(load | store, elements * _element_bytes(accelerator)[fields["memory_type"]], 0),
        np.where(load, width * height - elements, 0),
        np.where(gemm, turns, 0),
        np.where(gemm, uops, 0),
        np.where(alu, turns, 0),
        np.where(alu, uops, 0),
        load | store,
        missed,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def _element_bytes(accelerator: Accelerator) -> Floats:
    """Return the bytes of one tensor by memory type."""
    parameters = accelerator.parameters
    sizes = np.ones(8)
    sizes[MemoryType.UOP] = 4
    sizes[MemoryType.INP] = parameters.inp_element_bytes
    sizes[MemoryType.WGT] = parameters.wgt_element_bytes
    sizes[MemoryType.ACC] = parameters.acc_element_bytes
    sizes[MemoryType.OUT] = parameters.out_element_bytes
    return sizes


class StructuralEstimate:
    """The same cycles from hidden features, without lowering: rough, but for all candidates at once."""

    def __init__(self, features: Features) -> None:
        """Take hidden features (n, ...)."""

        def column(name: str) -> Floats:
            return features.column(name).astype(np.float64)

        tensors = column("tiles") * column("tile.acc_elements")
        zero = np.zeros_like(tensors)
        gemms, alus, stores = (column(f"instructions.{name}") for name in ("gemm", "alu", "store"))
        inputs, weights = column("instructions.load_inp"), column("instructions.load_wgt")
        passes = np.maximum(alus / np.maximum(column("tiles"), 1), 1)
        turns = np.maximum(column("gemm.iter_out") * column("gemm.iter_in"), 1)
        in_rows = inputs * np.maximum(column("sizeInTileH"), 1) + weights
        out_rows = stores * np.maximum(column("sizeOutTileH"), 1)
        gemm_turns = gemms * turns
        if "dma_rows.load" in features.names:  # of row programs these are known
            in_rows, out_rows, gemm_turns = (column(name) for name in ("dma_rows.load", "dma_rows.store", "gemm.turns"))
        load = [
            inputs + weights,
            in_rows,
            zero,
            column("bytes.inp") + column("bytes.wgt"),
            zero,
            zero,
            zero,
            zero,
            zero,
            inputs + weights,
            _missed_share(column("bytes.inp") + column("bytes.wgt")),
        ]
        compute = [
            gemms + alus, zero, zero, zero, zero, gemm_turns, column("cycles.compute") + tensors,
            passes * tensors, passes * tensors, zero, zero,
        ]  # fmt: skip
        store = [stores, zero, out_rows, column("bytes.out"), zero, zero, zero, zero, zero, stores, zero]
        self._work = [np.stack(columns, axis=1) for columns in (load, compute, store)]
        self._threads = column("nVT")

    def log_cycles(self, costs: Floats, overlap: bool) -> Floats:
        """Return natural logarithms (n,) for logarithms of COSTS (11,)."""
        load, compute, store = (work @ np.exp(costs) for work in self._work)
        everything = load + compute + store
        if not overlap:
            return np.asarray(np.log(everything))
        together = np.maximum(np.maximum(load, compute), store) + 0.1 * everything
        return np.asarray(np.log(np.where(self._threads > 1, together, load + compute + 0.3 * store)))


class EstimatedTiming:
    """The estimate in place of StructuralTiming, without a compiler for its library."""

    def __init__(self, rough: StructuralEstimate) -> None:
        self._rough = rough

    def log_cycles(self, rows: Sequence[int], costs: Floats, overlap: bool) -> Floats:
        return np.stack([self._rough.log_cycles(point, overlap)[list(rows)] for point in costs], axis=1)

    def derivatives(self, rows: Sequence[int], costs: Floats, overlap: bool) -> tuple[Floats, Floats]:
        cycles = self.log_cycles(rows, np.concatenate((costs[None], costs + _STEP * np.eye(len(costs)))), overlap)
        return cycles[:, 0], (cycles[:, 1:] - cycles[:, :1]) / _STEP


def _missed_share(loaded: Floats) -> Floats:
    """Return rough bytes that miss the cache (n,), given the loaded bytes of all candidates (n,).

    The fewest loaded bytes of any candidate stand for the distinct ones, which a program sweeps again and again.
    """
    distinct = float(loaded.min()) if len(loaded) else 0.0
    return np.asarray(loaded * -np.expm1(-distinct / CACHE_BYTES))
