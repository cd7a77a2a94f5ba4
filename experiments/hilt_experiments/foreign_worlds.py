"""Machines of another structure than hilt's RTL, for evaluation alone; those of a seed are in drawn_worlds.

The named ones have figures of published designs and of machines like them, which the tuner's makers knew.

A world gives the cycles of each instruction and the way the stages depend on each other. It keeps the valid
configurations of the recorded space of the home board, and may add rules of its own that no compiler knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import Dataset, DatasetKey
from hilt.measure.dataset.dataset_key import SCHEMA
from hilt.measure.dataset.outcomes import OUTCOMES, REASONS
from hilt.schedule import Rejected, lower_many
from hilt.schedule.reasons import TVM_RUNTIME, Reason
from hilt.simulator.critical_path import CriticalPaths
from hilt.trial import Outcome
from hilt.tune.model_guided.dataflow import Dataflow, FollowedWork, finish
from hilt.vta.isa import MemoryType, Opcode

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Columns = dict[str, npt.NDArray[np.int64]]

_MOST_SEGMENTS = 20_000
_TOGETHER = 64
"""Programs that are held in memory at once."""


@dataclass(frozen=True, eq=False)
class ProgramWork:
    """The work of each instruction of a program, arrays (n,)."""

    is_gemm: Bools
    is_alu: Bools
    is_store: Bools
    rows: Floats
    """DMA rows; 0 for GEMM and ALU."""
    row_bytes: Floats
    stride_bytes: Floats
    pads: Floats
    """Tensors written as zero padding."""
    iterations: Floats
    """Turns of the two loops of a GEMM or ALU instruction."""
    uops: Floats
    """Micro-ops of one turn."""
    factor: Floats
    """Step of the inner loop in the accumulator, in tensors."""
    footprint: float
    """Bytes of all distinct DRAM addresses that the program reads, roughly."""

    @property
    def bytes(self) -> Floats:
        """Bytes moved (n,)."""
        return self.rows * self.row_bytes


Cycles = Callable[[ProgramWork], Floats]
Rule = Callable[[Columns], Bools]
Factor = Callable[[Columns], Floats]


@dataclass(frozen=True)
class World:
    """A machine: the cycles of each instruction, and the other traits that distinguish it."""

    name: str
    family: str
    """`hls`, `chisel`, `serial`, `rules`, `noise`, `other`, or the kind of a drawn world."""
    cycles: Cycles
    overlap: bool = True
    """True if the stages run side by side."""
    refuses: Rule | None = None
    """Valid configurations whose answers are wrong all the same."""
    error: float = 0.0
    """Deviation of a fixed factor's logarithm that each configuration has."""
    error_seed: int = 0
    """Seed of these factors."""
    overhead: float = 0.0
    """Cycles that any program takes besides."""
    factor: Factor | None = None
    """Factor on the cycles by knobs."""


def _rtl(read: float = 32, per_byte: float = 1 / 8, gemm: float = 1.0, alu: float = 0.5) -> Cycles:
    def cycles(work: ProgramWork) -> Floats:
        dma = 10 + read / 2 + work.rows * 2 + work.bytes * per_byte
        compute = 10 + work.iterations * work.uops * np.where(work.is_gemm, gemm, alu)
        return np.where(work.rows > 0, dma, compute)

    return cycles


def _hls(iteration: float, alu: float, alu_turn: float, row: float = 55, cache: float = 480e3) -> Cycles:
    """The public HLS design: a DMA row at a time, nested loops that drain, an L2 cache before the memory."""

    def cycles(work: ProgramWork) -> Floats:
        missed = 1 - np.exp(-work.footprint / cache)
        per_byte = missed / 3.9 + (1 - missed) / 8
        dma = 20 + work.rows * np.where(work.is_store, 35, row) + work.bytes * per_byte + work.pads * 2
        gemm = 20 + work.iterations * (iteration + work.uops)
        vector = 20 + work.iterations * (alu_turn + work.uops * alu)
        return np.where(work.rows > 0, dma, np.where(work.is_alu, vector, gemm))

    return cycles


def _chisel(work: ProgramWork) -> Floats:
    dma = 6 + work.rows * 3 + work.bytes / 8
    compute = 6 + work.iterations * work.uops + np.where(work.is_gemm, 6, 4)
    return np.where(work.rows > 0, dma, compute)


def _cached(work: ProgramWork) -> Floats:
    """Bandwidth that collapses once the program's data outgrow a small cache."""
    per_byte = np.where(work.footprint > 160e3, 0.6, 0.1)
    return np.where(work.rows > 0, 30 + work.rows * 4 + work.bytes * per_byte, 10 + work.iterations * work.uops)


def _pages(work: ProgramWork) -> Floats:
    """DRAM pages: a row far from the last one opens a page."""
    opened = np.where(work.stride_bytes >= 1024, 44.0, 9.0)
    return np.where(work.rows > 0, 24 + work.rows * opened + work.bytes / 6.4, 12 + work.iterations * work.uops)


def _banks(work: ProgramWork) -> Floats:
    """Accumulator banks: steps by an even number of tensors take two cycles, by a multiple of four, four."""
    step = np.where(work.factor % 4 == 0, 4.0, np.where(work.factor % 2 == 0, 2.0, 1.0))
    compute = 12 + work.iterations * work.uops * np.where(work.iterations > 1, step, 1.0)
    return np.where(work.rows > 0, 30 + work.rows * 3 + work.bytes / 8, compute)


def _issue(work: ProgramWork) -> Floats:
    """A host that hands over each instruction."""
    return _rtl()(work) + 130


def _tile_rules(columns: Columns) -> Bools:
    h, w, co, ci = (columns[name] for name in ("tile_h", "tile_w", "tile_co", "tile_ci"))
    return np.asarray((h * w >= 98) | ((co >= 4) & (w <= 7)) | ((ci == 2) & (h % 2 == 1)))


def _thread_rules(columns: Columns) -> Bools:
    h, w, threads = columns["tile_h"], columns["tile_w"], columns["oc_nthread"]
    return np.asarray(((threads == 2) & (h >= 14)) | ((columns["h_nthread"] == 2) & (w == 14)) | ((h == 7) & (w >= 7)))


def _shape_rules(columns: Columns) -> Bools:
    h, w, co = columns["tile_h"], columns["tile_w"], columns["tile_co"]
    return np.asarray((h > 2 * w) | ((co * h) % 16 == 0) | ((w >= 28) & (columns["tile_ci"] >= 2)))


def _cliffs(columns: Columns) -> Floats:
    """Working sets beyond a buffer that nobody knows of cost a third more, wide tiles of few channels a fifth."""
    h, w, co, ci = (columns[name] for name in ("tile_h", "tile_w", "tile_co", "tile_ci"))
    return np.asarray(np.where(h * w * co > 100, 1.33, 1.0) * np.where((w >= 14) & (ci == 1), 1.2, 1.0))


def _pair_factors(columns: Columns) -> Floats:
    """A factor of its own for each pair of tile height and width, and of channel tiles."""
    table = np.random.default_rng(3).standard_normal((2, 64, 64))
    first = table[0][columns["tile_h"] % 64, columns["tile_w"] % 64]
    second = table[1][columns["tile_co"] % 64, columns["tile_ci"] % 64]
    return np.asarray(np.exp(0.12 * first + 0.12 * second))


def _dear_threads(columns: Columns) -> Floats:
    """Virtual threads that disturb each other."""
    threads = columns["oc_nthread"] * columns["h_nthread"]
    return np.asarray(np.where(threads == 1, 1.0, np.where(columns["h_nthread"] > 1, 1.6, 1.25)))


WORLDS: dict[str, World] = {
    world.name: world
    for world in (
        World("hls_older", "hls", _hls(10, 26, 0), overhead=10_000),
        World("hls_newer", "hls", _hls(1.5, 1.75, 0), overhead=10_000),
        World("hls_alu2", "hls", _hls(5, 2, 5, row=30, cache=1e12), overhead=3_000),
        World("hls_serial", "serial", _hls(10, 2, 5), overlap=False),
        World("rtl_serial", "serial", _rtl(), overlap=False),
        World("chisel", "chisel", _chisel),
        World("random_error", "noise", _rtl(), error=0.1, error_seed=1),
        World("hls_random_error", "noise", _hls(1.5, 1.75, 0), error=0.05, error_seed=2),
        World("tile_rules", "rules", _rtl(), refuses=_tile_rules),
        World("thread_rules", "rules", _hls(10, 2, 5), refuses=_thread_rules),
        World("shape_rules", "rules", _rtl(read=120, per_byte=1 / 3), refuses=_shape_rules),
        World("cliffs", "other", _rtl(), factor=_cliffs),
        World("pair_factors", "other", _rtl(), factor=_pair_factors),
        World("dear_threads", "other", _chisel, factor=_dear_threads),
        World("small_cache", "other", _cached),
        World("slow_gemm", "other", _rtl(gemm=4.0)),
        World("slow_alu", "other", _rtl(alu=24.0)),
        World("dram_pages", "other", _pages),
        World("bank_conflicts", "other", _banks),
        World("slow_issue", "other", _issue),
    )
}


@lru_cache(maxsize=32)
def worlds_with_factors(seed: int) -> tuple[World, ...]:
    """Return the named worlds whose configurations have factors of their own, with those of a seed."""
    return tuple(replace(world, error_seed=seed) for world in WORLDS.values() if world.error)


@lru_cache(maxsize=32)
def foreign_datasets(subject: DatasetKey, worlds: tuple[World, ...] = tuple(WORLDS.values())) -> dict[str, Dataset]:
    """Return the dataset of the subject's space on every world, by the world's name.

    Worlds in which nothing is valid are left out. A layer of ResNet-18 at `tvm` takes some seconds.
    """
    rows, columns = _valid(subject)
    cycles = _cycles(subject, tuple((world.cycles, world.overlap) for world in worlds))
    datasets = {}
    for number, world in enumerate(worlds):
        taken = cycles[:, number] + world.overhead
        if world.factor is not None:
            taken = taken * world.factor(columns)
        if world.error:
            noise = np.random.default_rng(world.error_seed).standard_normal(len(subject.space))
            taken = taken * np.exp(world.error * noise[rows])
        refused = world.refuses(columns) if world.refuses is not None else np.zeros(len(rows), dtype=np.bool_)
        if not refused.all():
            datasets[world.name] = _dataset(subject, world, rows, taken, refused)
    return datasets


def _dataset(subject: DatasetKey, world: World, rows: npt.NDArray[np.int64], taken: Floats, refused: Bools) -> Dataset:
    verdicts = subject.summarize_validity.verdicts
    outcome = np.full(len(verdicts), OUTCOMES.index(Outcome.REJECTED), dtype=np.uint8)
    outcome[np.isin(verdicts, list(TVM_RUNTIME))] = OUTCOMES.index(Outcome.CRASH)
    outcome[rows] = np.where(refused, OUTCOMES.index(Outcome.WRONG_ANSWER), OUTCOMES.index(Outcome.OK))
    cycles = np.zeros(len(verdicts), dtype=np.uint64)
    cycles[rows] = np.where(refused, 0, np.maximum(np.rint(taken), 1)).astype(np.uint64)
    metadata = {
        "schema": SCHEMA,
        "name": f"{subject.name}@{world.name}",
        "identity": {"clock_hz": subject.accelerator.clock_hz},
        "outcomes": [str(each) for each in OUTCOMES],
        "reasons": REASONS,
    }
    return Dataset(metadata, outcome, verdicts.astype(np.uint8), cycles)


@lru_cache(maxsize=8)
def _valid(subject: DatasetKey) -> tuple[npt.NDArray[np.int64], Columns]:
    """Return the valid configurations' indices (n,), and their knobs."""
    rows = np.flatnonzero(subject.summarize_validity.verdicts == Reason.OK)
    return rows, subject.space.columns(rows)


@lru_cache(maxsize=8)
def _cycles(subject: DatasetKey, machines: tuple[tuple[Cycles, bool], ...]) -> Floats:
    """Return the cycles (valid configurations, machines); a machine is its instructions' cycles and its overlap."""
    rows, columns = _valid(subject)
    overlap = np.array([overlaps for _, overlaps in machines])
    paths, cost = CriticalPaths(subject.accelerator), np.eye(len(machines))
    parts = [np.zeros((0, len(machines)))]
    for first in range(0, len(rows), _TOGETHER):
        some = {name: values[first : first + _TOGETHER] for name, values in columns.items()}
        programs = []
        for program in lower_many(subject.workload, some, subject.accelerator, subject.checks):
            if isinstance(program, Rejected):
                raise ValueError(f"{subject.name}: a configuration that was accepted is refused now")
            flow = Dataflow.of(program, subject.accelerator, _MOST_SEGMENTS)
            work = _work(flow, subject)
            cycles = np.stack([of(work) for of, _ in machines], axis=1)
            programs.append(FollowedWork.of(flow, cycles, cycles.sum(axis=0)))
        total = np.stack([each.all_work for each in programs])
        parts.append(np.where(overlap, finish(paths, programs, cost), total))
    return np.concatenate(parts)


def _work(flow: Dataflow, subject: DatasetKey) -> ProgramWork:
    parameters = subject.accelerator.parameters
    fields = {name: flow.instructions[name].astype(np.float64) for name in flow.instructions.dtype.names or ()}
    opcode = flow.instructions["opcode"]
    dma = np.isin(opcode, (Opcode.LOAD, Opcode.STORE))
    kind = flow.instructions["memory_type"]
    sizes = np.ones(16)
    sizes[MemoryType.UOP] = 4
    sizes[MemoryType.INP] = parameters.inp_element_bytes
    sizes[MemoryType.WGT] = parameters.wgt_element_bytes
    sizes[MemoryType.ACC] = parameters.acc_element_bytes
    sizes[MemoryType.OUT] = parameters.out_element_bytes
    element = sizes[np.minimum(kind, 15)]
    width = fields["x_size"] + fields["x_pad_0"] + fields["x_pad_1"]
    height = fields["y_size"] + fields["y_pad_0"] + fields["y_pad_1"]
    loads = dma & (opcode == Opcode.LOAD)
    ends = (fields["dram_base"] + fields["y_size"] * np.maximum(fields["x_stride"], fields["x_size"])) * element
    footprint = sum(float(ends[loads & (kind == each)].max(initial=0)) for each in (MemoryType.INP, MemoryType.WGT))
    return ProgramWork(
        is_gemm=opcode == Opcode.GEMM,
        is_alu=opcode == Opcode.ALU,
        is_store=opcode == Opcode.STORE,
        rows=np.where(dma, np.maximum(fields["y_size"], 1), 0),
        row_bytes=np.where(dma, fields["x_size"] * element, 0),
        stride_bytes=np.where(dma, fields["x_stride"] * element, 0),
        pads=np.where(loads, width * height - fields["x_size"] * fields["y_size"], 0),
        iterations=np.where(dma, 0, fields["iter_out"] * fields["iter_in"]),
        uops=np.where(dma, 0, fields["uop_end"] - fields["uop_bgn"]),
        factor=np.where(dma, 0, fields["dst_factor_in"]),
        footprint=footprint,
    )
