"""Tile geometry of many configurations at once: what each tile needs on chip, and how many tiles there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.space import ConfigurationError
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import blocks

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A workload in an accelerator's blocks. Sizes in elements of the buffers."""

    workload: Conv2d
    accelerator: Accelerator
    batch: int
    ci: int
    co: int
    out_height: int
    out_width: int

    @classmethod
    def of(cls, workload: Conv2d, accelerator: Accelerator) -> Problem:
        parameters = accelerator.parameters
        return cls(
            workload,
            accelerator,
            blocks(workload.batch, parameters.batch),
            blocks(workload.in_channels, parameters.block),
            blocks(workload.out_channels, parameters.block),
            workload.out_height,
            workload.out_width,
        )

    @property
    def taps(self) -> int:
        return self.workload.kernel[0] * self.workload.kernel[1]

    @property
    def row_step(self) -> int:
        """Input rows from one row of a box to the next: a kernel of one row needs only the rows that it meets."""
        return self.workload.stride[0] if self.workload.kernel[0] == 1 else 1

    @property
    def box_row_stride(self) -> int:
        """Rows of the box on chip between two output rows."""
        return self.workload.stride[0] // self.row_step

    @property
    def bias_elements(self) -> int:
        """Accumulator elements that hold the bias throughout the program."""
        return self.co if self.workload.bias else 0

    @property
    def wgt_elements(self) -> int:
        """All weights."""
        return self.co * self.ci * self.taps


@dataclass(frozen=True)
class Tiling:
    """Arrays (n,) over configurations: the tile in batch blocks, output rows and columns, and channel blocks; and the
    virtual threads."""

    problem: Problem
    batch: IntArray
    height: IntArray
    width: IntArray
    ci: IntArray
    co: IntArray
    oc_threads: IntArray
    h_threads: IntArray

    @classmethod
    def of(cls, problem: Problem, columns: Mapping[str, ArrayLike]) -> Tiling:
        """From knob values by name, each (n,). Raises ConfigurationError for a tile that does not divide its loop."""

        def column(name: str) -> IntArray:
            if name not in columns:
                raise ConfigurationError(f"the configuration has no {name}")
            return np.atleast_1d(np.asarray(columns[name], dtype=np.int64))

        tiling = cls(
            problem,
            batch=column("tile_b"),
            height=column("tile_h"),
            width=column("tile_w"),
            ci=column("tile_ci"),
            co=column("tile_co"),
            oc_threads=column("oc_nthread"),
            h_threads=column("h_nthread"),
        )
        for name, tile, extent in (
            ("tile_b", tiling.batch, problem.batch),
            ("tile_h", tiling.height, problem.out_height),
            ("tile_w", tiling.width, problem.out_width),
            ("tile_ci", tiling.ci, problem.ci),
            ("tile_co", tiling.co, problem.co),
        ):
            wrong = (tile < 1) | (extent % np.maximum(tile, 1) != 0)
            if wrong.any():
                raise ConfigurationError(f"{name} is {int(tile[wrong.argmax()])}, which does not divide {extent}")
        for name, threads in (("oc_nthread", tiling.oc_threads), ("h_nthread", tiling.h_threads)):
            wrong = (threads < 1) | (threads > 2)
            if wrong.any():
                raise ConfigurationError(f"{name} is {int(threads[wrong.argmax()])}; it may be 1 or 2")
        return tiling

    @property
    def threads(self) -> IntArray:
        return self.oc_threads * self.h_threads

    @property
    def box_height(self) -> IntArray:
        """Input rows of a tile as they lie on chip, padding included."""
        workload = self.problem.workload
        return (self.height - 1) * self.problem.box_row_stride + workload.kernel[0]

    @property
    def box_width(self) -> IntArray:
        workload = self.problem.workload
        return (self.width - 1) * workload.stride[1] + workload.kernel[1]

    @property
    def inp_elements(self) -> IntArray:
        """Of one tile's input box."""
        return self.batch * self.ci * self.box_height * self.box_width

    @property
    def wgt_elements(self) -> IntArray:
        return self.co * self.ci * self.problem.taps

    @property
    def acc_elements(self) -> IntArray:
        return self.batch * self.co * self.height * self.width

    @property
    def ci_steps(self) -> IntArray:
        return self.problem.ci // self.ci

    @property
    def co_tiles(self) -> IntArray:
        return self.problem.co // self.co

    @property
    def h_tiles(self) -> IntArray:
        return self.problem.out_height // self.height

    @property
    def w_tiles(self) -> IntArray:
        return self.problem.out_width // self.width

    @property
    def b_tiles(self) -> IntArray:
        return self.problem.batch // self.batch

    @property
    def tiles(self) -> IntArray:
        return self.b_tiles * self.h_tiles * self.w_tiles * self.co_tiles

    @property
    def weight_boxes(self) -> IntArray:
        """Different weight boxes: as many as there are tiles of the weights."""
        return self.co_tiles * self.ci_steps
