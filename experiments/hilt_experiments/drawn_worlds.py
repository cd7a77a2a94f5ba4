"""Worlds drawn from a seed: machines whose costs and structure no tuner's defaults were set on.

Costs are drawn from ranges that hardware allows (RANGES), evenly in their logarithms. A quarter of the worlds have
costs that are sums over the work of each instruction, as the tuner's own families. The others have a timing that these
families do not contain: rows in bursts or on DRAM pages, transfers bound by the slower of two parts, a cache, banks of
the accumulator, vectors that fill a pipeline, factors by knobs, or an error of each configuration's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from hilt_experiments.foreign_worlds import Columns, Cycles, Factor, Floats, ProgramWork, World

Costs = dict[str, float]
"""Cycles of each kind of work, by the names of RANGES."""

TOGETHER = 20
"""Worlds of one seed."""
RANGES = {
    "start": (2.0, 60.0),  # decoding, and hand-over between stages
    "row": (1.0, 120.0),  # from one beat of a burst to a whole DRAM latency that nothing hides
    "stored_row": (1.0, 80.0),
    "bytes": (1.5, 16.0),  # bytes a cycle: a 32-bit port at 40 % to a 128-bit port
    "pad": (0.1, 3.0),
    "turn": (0.1, 16.0),  # cycles to drain a pipeline
    "gemm": (0.5, 4.0),  # two micro-ops a cycle to an initiation interval of 4
    "alu": (0.3, 24.0),  # a whole vector at once to a lane at a time
    "overhead": (300.0, 30_000.0),
}
"""Least and most cycles of each cost."""
_OWN_SHARE = 0.25
"""Share of the worlds that the tuner's families contain, but for their figures."""


@lru_cache(maxsize=4)
def drawn_worlds(seed: int, count: int = TOGETHER) -> tuple[World, ...]:
    """Return the worlds of a seed; the first of `count` and of more are the same."""
    return tuple(_world(np.random.default_rng([seed, number]), number) for number in range(count))


def _world(generator: np.random.Generator, number: int) -> World:
    costs = {name: float(np.exp(generator.uniform(np.log(low), np.log(high)))) for name, (low, high) in RANGES.items()}
    own = generator.random() < _OWN_SHARE
    kind = "sums" if own else str(generator.choice(list(_FAMILIES)))
    make = _sums if own else _FAMILIES[kind]
    factor = _FACTORS[kind](generator) if kind in _FACTORS else None
    return World(
        f"{number:02} {kind}",
        kind,
        make(costs, generator),
        overlap=bool(generator.random() < 0.7),
        error=float(generator.uniform(0.02, 0.08)) if kind == "error" else 0.0,
        error_seed=int(generator.integers(1 << 30)),
        overhead=costs["overhead"],
        factor=factor,
    )


def _compute(costs: Costs, work: ProgramWork) -> Floats:
    per_uop = np.where(work.is_alu, costs["alu"], costs["gemm"])
    return np.asarray(costs["start"] + work.iterations * (costs["turn"] + work.uops * per_uop))


def _row_cost(costs: Costs, work: ProgramWork) -> Floats:
    return np.where(work.is_store, costs["stored_row"], costs["row"])


def _sums(costs: Costs, generator: np.random.Generator) -> Cycles:
    """Costs as sums: the tuner's families contain it."""

    def cycles(work: ProgramWork) -> Floats:
        rows = work.rows * _row_cost(costs, work)
        dma = costs["start"] + rows + work.bytes / costs["bytes"] + work.pads * costs["pad"]
        return np.where(work.rows > 0, dma, _compute(costs, work))

    return cycles


def _bursts(costs: Costs, generator: np.random.Generator) -> Cycles:
    """Rows are cut into bursts of a fixed size, and the last one takes as long as a whole one."""
    size = float(2 ** generator.integers(6, 11))

    def cycles(work: ProgramWork) -> Floats:
        bursts = np.ceil(work.row_bytes / size)
        dma = costs["start"] + work.rows * bursts * (_row_cost(costs, work) / 4 + size / costs["bytes"] / 2)
        return np.where(work.rows > 0, dma, _compute(costs, work))

    return cycles


def _pages(costs: Costs, generator: np.random.Generator) -> Cycles:
    """A row that lies a page behind the last one opens a page."""
    page, opened = float(2 ** generator.integers(9, 13)), float(generator.uniform(10, 60))

    def cycles(work: ProgramWork) -> Floats:
        row = costs["row"] / 4 + np.where(work.stride_bytes >= page, opened, 0.0)
        dma = costs["start"] + work.rows * row + work.bytes / costs["bytes"]
        return np.where(work.rows > 0, dma, _compute(costs, work))

    return cycles


def _slower_part(costs: Costs, generator: np.random.Generator) -> Cycles:
    """Rows and bytes run side by side: the slower part decides, of micro-ops and turns too."""

    def cycles(work: ProgramWork) -> Floats:
        dma = costs["start"] + np.maximum(work.rows * _row_cost(costs, work), work.bytes / costs["bytes"])
        per_uop = np.where(work.is_alu, costs["alu"], costs["gemm"])
        compute = costs["start"] + work.iterations * np.maximum(costs["turn"], work.uops * per_uop)
        return np.where(work.rows > 0, dma, compute)

    return cycles


def _cache(costs: Costs, generator: np.random.Generator) -> Cycles:
    """A cache before the memory: beyond its size the bandwidth falls, at once or by and by."""
    size, slower = float(np.exp(generator.uniform(np.log(64e3), np.log(1e6)))), float(generator.uniform(1.5, 5.0))
    sharp = bool(generator.integers(2))

    def cycles(work: ProgramWork) -> Floats:
        missed = float(work.footprint > size) if sharp else 1 - np.exp(-work.footprint / size)
        per_byte = (1 + missed * (slower - 1)) / costs["bytes"]
        dma = costs["start"] + work.rows * _row_cost(costs, work) / 3 + work.bytes * per_byte
        return np.where(work.rows > 0, dma, _compute(costs, work))

    return cycles


def _banks(costs: Costs, generator: np.random.Generator) -> Cycles:
    """Steps of the accumulator by a multiple of its banks collide."""
    banks, slower = int(2 ** generator.integers(1, 4)), float(generator.uniform(1.5, 4.0))
    plain = _sums(costs, generator)

    def cycles(work: ProgramWork) -> Floats:
        collide = (work.iterations > 1) & (work.factor % banks == 0)
        return np.asarray(plain(work) * np.where((work.rows == 0) & collide, slower, 1.0))

    return cycles


def _pipeline(costs: Costs, generator: np.random.Generator) -> Cycles:
    """A pipeline of some depth: instructions of fewer micro-ops take as long as it is deep."""
    depth = float(2 ** generator.integers(4, 9))
    plain = _sums(costs, generator)

    def cycles(work: ProgramWork) -> Floats:
        return np.maximum(plain(work), np.where(work.rows > 0, 0.0, costs["start"] + depth))

    return cycles


def _pair_factor(generator: np.random.Generator) -> Factor:
    """A factor of its own for each pair of values of two knobs."""
    table, deviation = generator.standard_normal((2, 64, 64)), float(generator.uniform(0.05, 0.15))

    def factor(columns: Columns) -> Floats:
        first = table[0][columns["tile_h"] % 64, columns["tile_w"] % 64]
        second = table[1][columns["tile_co"] % 64, columns["tile_ci"] % 64]
        return np.asarray(np.exp(deviation * (first + second)))

    return factor


def _thread_factor(generator: np.random.Generator) -> Factor:
    """Virtual threads that disturb each other, differently along each axis."""
    first, second = generator.uniform(0.9, 1.7, size=2)

    def factor(columns: Columns) -> Floats:
        return np.asarray(
            np.where(columns["h_nthread"] > 1, first, 1.0) * np.where(columns["oc_nthread"] > 1, second, 1.0)
        )

    return factor


_FAMILIES: dict[str, Callable[[Costs, np.random.Generator], Cycles]] = {
    "bursts": _bursts,
    "pages": _pages,
    "slower part": _slower_part,
    "cache": _cache,
    "banks": _banks,
    "pipeline": _pipeline,
    "pair factors": _sums,
    "thread factors": _sums,
    "error": _sums,
}
"""Timings that the tuner's families do not contain."""
_FACTORS: dict[str, Callable[[np.random.Generator], Factor]] = {
    "pair factors": _pair_factor,
    "thread factors": _thread_factor,
}
