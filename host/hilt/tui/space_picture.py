"""A space as a picture.

Every configuration is a cell of a grid whose neighbours along a row or a column differ in one knob. It is the grid
graph
of HW-Aware Initialization's Figure 1, unfolded into a plane.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hilt.schedule import Space
from hilt.trial import Outcome
from hilt.tui.run_context import SpaceFacts

LEVELS = 8
"""Number of levels: of latency by its logarithm between the fastest and the slowest, and of clusters."""
REJECTED, ACCEPTED, FAILED, BEST, FIRST_LEVEL = range(5)
"""Kinds of a cell. FIRST_LEVEL and the LEVELS - 1 after it are measured, or cluster numbers, fastest or largest
first."""
GLYPHS = [" ", "·", "×", "@", *"█▇▆▅▄▃▂▁"]
"""The character of each kind of cell: nothing depends on colour alone."""
_CELL_RATIO = 2.0
"""A cell is so many times as high as wide."""


class Unfolding:
    """The layout of a space: knobs go to rows and columns in turn, those with most values first and innermost."""

    def __init__(self, space: Space) -> None:
        sizes = space.sizes
        columns: list[int] = []
        rows: list[int] = []
        width = height = 1
        for knob in sorted(np.flatnonzero(sizes > 1).tolist(), key=lambda knob: (-sizes[knob], knob)):
            if width <= _CELL_RATIO * height:
                columns.append(knob)
                width *= int(sizes[knob])
            else:
                rows.append(knob)
                height *= int(sizes[knob])
        self.width, self.height = width, height
        self.columns = tuple(space.knobs[knob].name for knob in columns)
        """Names of the knobs along a row, innermost first."""
        self.rows = tuple(space.knobs[knob].name for knob in rows)
        positions = space.positions(np.arange(len(space)))
        self._cells = _mixed(positions, rows, sizes) * width + _mixed(positions, columns, sizes)
        self._indices = np.empty(len(space), dtype=np.int64)
        self._indices[self._cells] = np.arange(len(space))

    def place(self, index: int) -> tuple[int, int]:
        """Return (column, row) of a configuration."""
        row, column = divmod(int(self._cells[index]), self.width)
        return column, row

    def index(self, column: int, row: int) -> int:
        """Return the configuration at a place."""
        return int(self._indices[row * self.width + column])

    def grid(self, values: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return an array of configurations (n,) as cells (height, width)."""
        return values[self._indices].reshape(self.height, self.width)


def _mixed(positions: NDArray[np.int64], knobs: list[int], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.zeros(len(positions), dtype=np.int64)
    stride = 1
    for knob in knobs:
        found += positions[:, knob] * stride
        stride *= int(sizes[knob])
    return found


def by_latency(
    facts: SpaceFacts, trials: Iterable[tuple[int, str, float | None]]
) -> tuple[NDArray[np.int8], dict[int, float]]:
    """Return the kind of each cell, and the measured latencies in microseconds."""
    cells = np.where(facts.labels >= 0, ACCEPTED, REJECTED).astype(np.int8)
    measured: dict[int, float] = {}
    for index, outcome, microseconds in trials:
        if microseconds is not None:
            measured[index] = microseconds
        elif outcome != Outcome.REJECTED:
            cells[index] = FAILED
    if measured:
        indices = np.fromiter(measured.keys(), dtype=np.int64)
        logs = np.log(np.fromiter(measured.values(), dtype=np.float64))
        span = max(float(np.ptp(logs)), 1e-9)
        levels = np.minimum((LEVELS * (logs - logs.min()) / span).astype(np.int64), LEVELS - 1)
        cells[indices] = FIRST_LEVEL + levels
        cells[indices[np.argmin(logs)]] = BEST
    return cells, measured


def by_cluster(facts: SpaceFacts) -> NDArray[np.int8]:
    """The largest clusters have a level each, all further ones the last."""
    levels = np.minimum(facts.labels, LEVELS - 1) + FIRST_LEVEL
    return np.where(facts.labels >= 0, levels, REJECTED).astype(np.int8)
