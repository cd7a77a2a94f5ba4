"""Tiles of rows and columns without padding: the input that each loads, and the taps that each output meets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product

import numpy as np

from hilt.schedule.tiling import IntArray, TilingProblem

Taps = tuple[int, int, int]
"""First tap, the one behind the last, and the place in the box of tap 0, which may lie before it; (0, 0, 0): none."""

NEVER = 1 << 30


@dataclass(frozen=True)
class Span:
    """A tile along one axis.

    Attributes:
        first: The first row (column) of the input in its box; 0 of a tile that meets padding only.
        count: Rows (columns) of the box.
        taps: Taps of each output row (column).
    """

    first: int
    count: int
    taps: tuple[Taps, ...]

    @cached_property
    def products(self) -> int:
        """Return the taps of all outputs together."""
        return sum(end - first for first, end, _ in self.taps)

    @cached_property
    def shape(self) -> tuple[int, tuple[Taps, ...]]:
        """Return all but the place in the input: spans of one shape have the same micro-ops."""
        return self.count, self.taps

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """Return the first output and the length of each run of outputs with the same taps; those without any not."""
        found = []
        for (first, end), members in groupby(range(len(self.taps)), key=lambda place: self.taps[place][:2]):
            run = list(members)
            if end > first:
                found.append((run[0], len(run)))
        return tuple(found)

    @cached_property
    def meetings(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """Return for each tap the outputs that meet it, and the places in the box where they do."""
        found = []
        for tap in range(max(end for _, end, _ in self.taps)):
            outputs = np.array(self.outputs_of(tap), dtype=np.int64)
            found.append((outputs, np.array([self.taps[place][2] + tap for place in outputs], dtype=np.int64)))
        return tuple(found)

    def outputs_of(self, tap: int) -> range:
        """Return the outputs that meet a tap; they follow each other."""
        meeting = [place for place, (first, end, _) in enumerate(self.taps) if first <= tap < end]
        return range(meeting[0], meeting[-1] + 1) if meeting else range(0)


@dataclass(frozen=True)
class Axis:
    """The input, kernel, stride and padding along one axis, and the outputs; `step`: input rows between loaded ones."""

    size: int
    kernel: int
    stride: int
    padding: int
    out: int
    step: int = 1

    def spans(self, tile: int) -> tuple[Span, ...]:
        """Return the tiles of so many outputs, in order; `tile` divides the outputs."""
        return tuple(self._span(range(first, first + tile)) for first in range(0, self.out, tile))

    def _span(self, outputs: range) -> Span:
        tops = [place * self.stride - self.padding for place in outputs]
        met = [(max(-top, 0), min(self.kernel, self.size - top), top) for top in tops]
        rows = [row for low, end, top in met if low < end for row in (top + low, top + end - 1)]
        if not rows:
            return Span(0, 0, ((0, 0, 0),) * len(tops))
        first = min(rows)
        taps = tuple((low, end, (top - first) // self.step) if low < end else (0, 0, 0) for low, end, top in met)
        return Span(first, (max(rows) - first) // self.step + 1, taps)


def axes_of(problem: TilingProblem, merge: bool) -> tuple[Axis, Axis]:
    """Return the rows and the columns. Without `merge`, a kernel of one row loads the rows that it meets only."""
    workload = problem.workload
    row_step = 1 if merge else problem.row_step
    rows, columns = (
        Axis(size, workload.kernel[axis], workload.stride[axis], workload.padding[axis], out)
        for axis, (size, out) in enumerate(((workload.height, problem.out_height), (workload.width, problem.out_width)))
    )
    return Axis(rows.size, rows.kernel, rows.stride, rows.padding, rows.out, row_step), columns


@dataclass(frozen=True, eq=False)
class Geometry:
    """The tiles of one height and width over an output plane."""

    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    row_axis: Axis
    column_axis: Axis

    @classmethod
    def of(cls, problem: TilingProblem, height: int, width: int, merge: bool) -> Geometry:
        rows, columns = axes_of(problem, merge)
        return cls(rows.spans(height), columns.spans(width), rows, columns)

    @cached_property
    def row_shapes(self) -> tuple[Span, ...]:
        """Return one span of rows of each shape."""
        return tuple({span.shape: span for span in reversed(self.rows)}.values())

    @cached_property
    def column_shapes(self) -> tuple[Span, ...]:
        return tuple({span.shape: span for span in reversed(self.columns)}.values())

    @cached_property
    def row_kinds(self) -> tuple[int, ...]:
        """Return the same number for tiles whose rows have the same shape."""
        return _numbered(self.rows)

    @cached_property
    def column_kinds(self) -> tuple[int, ...]:
        return _numbered(self.columns)

    @cached_property
    def distance(self) -> int:
        """Return how many micro-ops lie between two updates of an element at least, with one channel and one row."""
        return min((_distance(span, self.column_axis.kernel) for span in self.column_shapes), default=NEVER)

    @cached_property
    def narrowest(self) -> int:
        """Return the fewest columns that meet one tap."""
        sizes = [len(span.outputs_of(tap)) for span in self.column_shapes for tap in range(self.column_axis.kernel)]
        return min((size for size in sizes if size), default=0)

    @cached_property
    def rows_between(self) -> int:
        """Return the rows between two updates of a row at least, with all rows of the tile in the micro-ops."""
        return min((_between(span, self.row_axis.kernel) for span in self.row_shapes), default=0)

    @cached_property
    def most_taps(self) -> int:
        """Return the most taps that one output meets."""
        rows, columns = (
            max((end - first for span in shapes for first, end, _ in span.taps), default=0)
            for shapes in (self.row_shapes, self.column_shapes)
        )
        return rows * columns


def _numbered(spans: tuple[Span, ...]) -> tuple[int, ...]:
    numbers: dict[tuple[int, tuple[Taps, ...]], int] = {}
    return tuple(numbers.setdefault(span.shape, len(numbers)) for span in spans)


def _distance(span: Span, kernel: int) -> int:
    """Return the least distance of two updates if the outputs of each tap follow those of any other."""
    met = [outputs for outputs in map(span.outputs_of, range(kernel)) if outputs]
    return min((one.stop - other.start for one, other in product(met, met) if _meet(one, other)), default=NEVER)


def _between(span: Span, kernel: int) -> int:
    met = [outputs for outputs in map(span.outputs_of, range(kernel)) if outputs]
    following = [*zip(met, [*met[1:], *met[:1]], strict=True), *zip(met, met, strict=True)]
    return max(min((one.stop - 1 - other.start for one, other in following), default=0), 0)


def _meet(one: range, other: range) -> bool:
    return max(one.start, other.start) < min(one.stop, other.stop)


def largest_divisor(numbers: IntArray, most: int) -> IntArray:
    """Return the largest divisor up to `most` of each number (n,)."""
    found = np.ones_like(numbers)
    for divisor in range(2, most + 1):
        found = np.where(numbers % divisor == 0, divisor, found)
    return found
