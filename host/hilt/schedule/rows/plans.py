"""Sizes, transfers and micro-ops of the row programs of many configurations, before any is lowered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hilt.schedule.rows.choices import SLOTS, FoldedLoop, Keep
from hilt.schedule.rows.geometry import NEVER, Geometry, Span, largest_divisor
from hilt.schedule.tiling import IntArray, Tiling, TilingProblem
from hilt.schedule.transfers import DmaTransfers, fold

_RESET_MICRO_OPS = 128
"""Most micro-ops of a reset: an iteration of several costs next to nothing, and they take room on chip."""


@dataclass(frozen=True, eq=False)
class RowPlans:
    """Arrays (n,) over configurations; `which` is each one's place in `geometries`."""

    tiling: Tiling
    fold: IntArray
    keep: IntArray
    geometries: tuple[Geometry, ...]
    which: IntArray
    full_tiles: IntArray
    """Tiles of the output that have any products; the others are all padding."""
    inp_slots: IntArray
    """Places of an input box: of all reduction steps if the input is kept."""
    wgt_slots: IntArray
    acc_slots: IntArray
    inp_box: IntArray
    """Elements of the largest input box of a step."""
    reset_uops: IntArray
    kernel_uops: IntArray
    """Micro-ops of the GEMMs of one step, with one place of each operand."""
    uops: IntArray
    hazard_distance: IntArray
    inp_boxes: IntArray
    wgt_boxes: IntArray
    inp_loads: IntArray
    wgt_loads: IntArray
    stores: IntArray
    load_rows: IntArray
    """DMA rows of all LOADs of inputs and weights."""
    store_rows: IntArray
    inp_elements: IntArray
    """Elements of inputs that are loaded, in all."""
    products: IntArray
    """GEMM micro-ops that the program runs, in all."""
    gemms: IntArray
    """GEMM instructions without resets."""
    turns: IntArray
    """Iterations of all GEMMs without resets."""

    @classmethod
    def of(cls, tiling: Tiling, knobs: Mapping[str, IntArray]) -> RowPlans:
        """Return the plans of these configurations."""
        problem = tiling.problem
        choices, keep, merge = knobs["fold"], knobs["keep"], knobs["merge"]
        shapes, which = np.unique(np.stack([tiling.height, tiling.width, merge]), axis=1, return_inverse=True)
        which = which.reshape(-1)
        geometries = tuple(
            Geometry.of(problem, height, width, bool(merged)) for height, width, merged in shapes.T.tolist()
        )
        counts = _Counts.of(problem, geometries, shapes)

        def of(column: IntArray) -> IntArray:
            return column.take(which)

        full = tiling.b_tiles * tiling.co_tiles * of(counts.full)
        by_tile = tiling.b_tiles * of(counts.full) * problem.groups
        reads = np.where(keep == Keep.INPUT, by_tile, full)
        weight_reads = np.where(keep == Keep.WEIGHTS, tiling.co_tiles * (full > 0), full)
        steps = full * tiling.ci_steps
        passes = reads // np.maximum(of(counts.full), 1)
        inp_slots = np.minimum(
            np.where(keep == Keep.INPUT, np.minimum(by_tile, SLOTS) * tiling.ci_steps, SLOTS), np.maximum(steps, 1)
        )
        wgt_slots = np.minimum(
            np.where(keep == Keep.WEIGHTS, np.minimum(tiling.co_tiles, SLOTS) * tiling.ci_steps, SLOTS),
            np.maximum(steps, 1),
        )
        acc_slots = np.minimum(tiling.tiles, SLOTS)
        inp = _input_moves(problem, geometries, tiling.ci, which)
        wgt = _weight_moves(problem, tiling)
        out = _output_moves(problem, tiling)
        per_step = _by_fold(choices, of(counts.products), of(counts.runs_taps), tiling)
        reset = largest_divisor(tiling.acc_elements, _RESET_MICRO_OPS)
        return cls(
            tiling,
            choices,
            keep,
            geometries,
            which,
            full_tiles=full,
            inp_slots=inp_slots,
            wgt_slots=wgt_slots,
            acc_slots=acc_slots,
            inp_box=of(counts.box) * tiling.ci,
            reset_uops=reset,
            kernel_uops=per_step,
            uops=acc_slots * reset
            + _bias_uops(tiling, acc_slots)
            + per_step * _places(tiling, keep, acc_slots, inp_slots, wgt_slots, of(counts.full)),
            hazard_distance=_distance(tiling, choices, geometries, which),
            inp_boxes=reads * tiling.ci_steps,
            wgt_boxes=weight_reads * tiling.ci_steps,
            inp_loads=passes * tiling.ci_steps * inp.counts,
            wgt_loads=weight_reads * tiling.ci_steps * wgt.counts,
            stores=tiling.tiles * out.counts,
            load_rows=passes * tiling.ci_steps * inp.rows + weight_reads * tiling.ci_steps * wgt.rows,
            store_rows=tiling.tiles * out.rows,
            inp_elements=passes * tiling.ci_steps * tiling.ci * of(counts.loaded),
            products=tiling.b_tiles * problem.all_co * problem.ci * of(counts.all_products),
            gemms=tiling.b_tiles
            * tiling.co_tiles
            * tiling.ci_steps
            * np.where(choices == FoldedLoop.ROWS, of(counts.full), of(counts.runs)),
            turns=tiling.b_tiles * tiling.co_tiles * tiling.ci_steps * _turns(tiling, choices, counts, which),
        )

    def take(self, row: int) -> RowPlans:
        """Return the plan of one configuration."""
        chosen = np.array([row])
        columns: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            columns[field.name] = value.take(chosen) if isinstance(value, np.ndarray) else value
        return RowPlans(**{**columns, "tiling": self.tiling.take(chosen)})


@dataclass(frozen=True)
class _Counts:
    """Arrays (geometries,) over the tiles of one output plane; `products` and `runs_taps` of one tile of each shape."""

    full: IntArray
    box: IntArray
    loaded: IntArray
    products: IntArray
    runs_taps: IntArray
    all_products: IntArray
    runs: IntArray
    run_rows: IntArray

    @classmethod
    def of(cls, problem: TilingProblem, geometries: tuple[Geometry, ...], shapes: IntArray) -> _Counts:
        table = [_counts_of(geometry) for geometry in geometries]
        return cls(*np.array(table, dtype=np.int64).reshape(-1, len(fields(cls))).T)


def _counts_of(geometry: Geometry) -> list[int]:
    rows = [span for span in geometry.rows if span.products]
    columns = [span for span in geometry.columns if span.products]
    return [
        len(rows) * len(columns),
        max((span.count for span in rows), default=0) * max((span.count for span in columns), default=0),
        sum(span.count for span in rows) * sum(span.count for span in columns),
        _products(geometry.row_shapes) * _products(geometry.column_shapes),
        sum(_run_taps(span) for span in geometry.row_shapes) * _products(geometry.column_shapes),
        _products(rows) * _products(columns),
        sum(len(span.runs) for span in rows) * len(columns),
        sum(length for span in rows for _, length in span.runs) * len(columns),
    ]


def _products(spans: Iterable[Span]) -> int:
    return sum(span.products for span in spans)


def _run_taps(span: Span) -> int:
    return sum(span.taps[first][1] - span.taps[first][0] for first, _ in span.runs)


def _by_fold(choices: IntArray, products: IntArray, runs_taps: IntArray, tiling: Tiling) -> IntArray:
    outputs, inputs = runs_taps * tiling.co, runs_taps * tiling.ci
    return np.where(choices == FoldedLoop.ROWS, products, np.where(choices == FoldedLoop.OUTPUTS, outputs, inputs))


def _turns(tiling: Tiling, choices: IntArray, counts: _Counts, which: IntArray) -> IntArray:
    """Return the iterations of the GEMMs of all tiles of a plane in one step (n,)."""
    rows = counts.run_rows.take(which)
    return np.where(
        choices == FoldedLoop.ROWS,
        counts.full.take(which) * tiling.ci * tiling.co,
        np.where(choices == FoldedLoop.OUTPUTS, rows * tiling.ci, rows * tiling.co),
    )


def _bias_uops(tiling: Tiling, acc_slots: IntArray) -> IntArray:
    if not tiling.problem.workload.bias:
        return np.zeros_like(acc_slots)
    found: IntArray = np.minimum(acc_slots * tiling.co_tiles, tiling.tiles)
    return found


def _places(
    tiling: Tiling, keep: IntArray, acc_slots: IntArray, inp_slots: IntArray, wgt_slots: IntArray, full: IntArray
) -> IntArray:
    """Return how many combinations of places GEMMs meet at most (n,).

    Operands that are not kept change places from step to step. A kept one changes with its tile or block, and each of
    its reduction steps has a place; the other's place follows from the step's number and the tile's.
    """
    kept = np.where(keep == Keep.INPUT, inp_slots, np.where(keep == Keep.WEIGHTS, wgt_slots, 0))
    one_tile = np.where(
        keep == Keep.INPUT,
        tiling.co_tiles == tiling.problem.groups,
        tiling.b_tiles * tiling.h_tiles * tiling.w_tiles == 1,
    )
    with_kept = kept * np.where(one_tile, 1, acc_slots)
    streamed = np.where(tiling.ci_steps == 1, acc_slots, acc_slots * np.minimum(inp_slots, SLOTS))
    places = np.where(kept > 0, with_kept, streamed)
    # Tiles of padding only have no steps, so the numbers of tiles and steps do not go together.
    uneven = full < tiling.h_tiles * tiling.w_tiles
    found: IntArray = np.where(uneven, np.maximum(kept, 1) * acc_slots * SLOTS, places)
    return found


def _distance(tiling: Tiling, choices: IntArray, geometries: tuple[Geometry, ...], which: IntArray) -> IntArray:
    """Return the micro-ops between two updates of an element at least (n,)."""
    alone, narrowest, between, taps = np.array(
        [[each.distance, each.narrowest, each.rows_between, each.most_taps] for each in geometries], dtype=np.int64
    ).T
    more = np.where(
        choices == FoldedLoop.ROWS, between.take(which), np.where(choices == FoldedLoop.OUTPUTS, tiling.co - 1, 0)
    )
    once = taps.take(which) * tiling.ci <= 1
    return np.where(once, NEVER, np.minimum(alone.take(which) + more * narrowest.take(which), NEVER))


@dataclass(frozen=True)
class _Moves:
    """Instructions and DMA rows (n,)."""

    counts: IntArray
    rows: IntArray


def input_moves(problem: TilingProblem, ci: IntArray, rows: int, columns: int, step: int) -> DmaTransfers:
    """Return the LOADs of boxes of so many rows and columns, and of `ci` (n,) channel blocks."""
    workload, ones = problem.workload, np.ones_like(ci)
    return _fold(
        problem,
        [(ci, workload.height * workload.width), (ones * rows, step * workload.width), (ones * columns, 1)],
    )


def weight_moves(problem: TilingProblem, co: IntArray, ci: IntArray) -> DmaTransfers:
    """Return the LOADs of blocks of weights (n,)."""
    return _fold(problem, [(co, problem.ci * problem.taps), (ci * problem.taps, 1)])


def output_moves(problem: TilingProblem, co: IntArray, height: IntArray, width: IntArray) -> DmaTransfers:
    """Return the STOREs of tiles (n,)."""
    plane = problem.out_height * problem.out_width
    return _fold(problem, [(co, plane), (height, problem.out_width), (width, 1)])


def _fold(problem: TilingProblem, dimensions: list[tuple[IntArray, int]]) -> DmaTransfers:
    none = np.zeros_like(dimensions[0][0])
    largest_stride = problem.accelerator.formats.memory.by_name["x_stride"].high
    return fold(dimensions, largest_stride, (none, none), (none, none))


def _input_moves(problem: TilingProblem, geometries: tuple[Geometry, ...], ci: IntArray, which: IntArray) -> _Moves:
    """Return the LOADs of one pass over all boxes of one image and `ci` (n,) of its channel blocks."""
    sizes, place = np.unique(ci, return_inverse=True)
    counts = np.zeros((len(geometries), len(sizes)), dtype=np.int64)
    rows = np.zeros_like(counts)
    for number, geometry in enumerate(geometries):
        for high, times_high in _multiples(geometry.rows):
            for wide, times_wide in _multiples(geometry.columns):
                moves = input_moves(problem, sizes, high, wide, geometry.row_axis.step)
                counts[number] += times_high * times_wide * moves.counts
                rows[number] += times_high * times_wide * moves.counts * moves.y_size
    return _Moves(counts[which, place], rows[which, place])


def _multiples(spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    """Return the sizes of boxes along an axis, and how many tiles have each."""
    sizes = [span.count for span in spans if span.products]
    return [(size, sizes.count(size)) for size in sorted(set(sizes))]


def _weight_moves(problem: TilingProblem, tiling: Tiling) -> _Moves:
    moves = weight_moves(problem, tiling.co, tiling.ci)
    return _Moves(moves.counts, moves.counts * moves.y_size)


def _output_moves(problem: TilingProblem, tiling: Tiling) -> _Moves:
    moves = output_moves(problem, tiling.co, tiling.height, tiling.width)
    return _Moves(moves.counts, moves.counts * moves.y_size)
