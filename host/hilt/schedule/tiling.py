"""Tile geometry of many configurations at once: on-chip sizes and numbers of tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.rows.choices import FoldedLoop, Keep, is_rows
from hilt.schedule.segments import IntArray as IntArray
from hilt.schedule.space import BY_CHANNEL, BY_TILE, ConfigurationError
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.layout import blocks

BoolArray = NDArray[np.bool_]
_Size = TypeVar("_Size", int, IntArray)


@dataclass(frozen=True)
class TilingProblem:
    """A workload in an accelerator's blocks. Sizes in elements of the buffers; a group's channels are whole blocks."""

    workload: Conv2d
    accelerator: Accelerator
    batch: int
    groups: int
    ci: int
    """Blocks of one group."""
    co: int
    """Blocks of one group."""
    out_height: int
    out_width: int

    @classmethod
    def of(cls, workload: Conv2d, accelerator: Accelerator) -> TilingProblem:
        parameters = accelerator.parameters
        groups = workload.block_groups(parameters.block)
        return cls(
            workload,
            accelerator,
            blocks(workload.batch, parameters.batch),
            groups,
            blocks(workload.in_channels // groups, parameters.block),
            blocks(workload.out_channels // groups, parameters.block),
            workload.out_height,
            workload.out_width,
        )

    @cached_property
    def block_by_block(self) -> bool:
        """Grouped, each output block from one input block."""
        return self.groups > 1 and self.ci == self.co == 1

    @cached_property
    def all_ci(self) -> int:
        return self.groups * self.ci

    @cached_property
    def all_co(self) -> int:
        return self.groups * self.co

    @cached_property
    def taps(self) -> int:
        return self.workload.kernel[0] * self.workload.kernel[1]

    @cached_property
    def row_step(self) -> int:
        """Input rows from one row of a box to the next: a kernel of one row needs only the rows that it meets."""
        return self.workload.stride[0] if self.workload.kernel[0] == 1 else 1

    @cached_property
    def box_row_stride(self) -> int:
        """Rows of the box on chip between two output rows."""
        return self.workload.stride[0] // self.row_step

    @cached_property
    def bias_elements(self) -> int:
        """Accumulator elements that hold the bias throughout the program."""
        return self.all_co if self.workload.bias else 0

    @cached_property
    def wgt_elements(self) -> int:
        """All weights."""
        return self.all_co * self.ci * self.taps

    def box_height(self, height: _Size) -> _Size:
        """Return the input rows of `height` output rows as they lie on chip, padding included."""
        return (height - 1) * self.box_row_stride + self.workload.reach[0]

    def box_width(self, width: _Size) -> _Size:
        return (width - 1) * self.workload.stride[1] + self.workload.reach[1]


@dataclass(frozen=True)
class Tiling:
    """Arrays (n,) over configurations.

    The tile in batch blocks, output rows and columns, and channel blocks; the virtual threads; and the loop order
    (hilt.schedule.space.ALL_ORDERS).

    The last tile of rows and of columns is smaller where the tile does not divide the output.
    """

    problem: TilingProblem
    batch: IntArray
    height: IntArray
    width: IntArray
    ci: IntArray
    co: IntArray
    oc_threads: IntArray
    h_threads: IntArray
    order: IntArray

    @classmethod
    def of(cls, problem: TilingProblem, columns: Mapping[str, ArrayLike]) -> Tiling:
        """Return the tiling for knob values by name, each (n,), of any space.

        Raises:
            ConfigurationError: A knob is missing, or a value is in no space.
        """
        knobs = {name: np.atleast_1d(np.asarray(values, dtype=np.int64)) for name, values in columns.items()}
        if is_rows(knobs):
            return cls._of_rows(problem, knobs)
        return cls._of_ml2(problem, knobs) if "TH" in knobs else cls._of_autotvm(problem, knobs)

    @classmethod
    def _of_autotvm(cls, problem: TilingProblem, knobs: Mapping[str, IntArray]) -> Tiling:
        extents = {
            "tile_b": problem.batch,
            "tile_h": problem.out_height,
            "tile_w": problem.out_width,
            "tile_ci": problem.ci,
            "tile_co": problem.all_co,
        }
        _require_factors({name: _knob(knobs, name) for name in extents}, extents)
        for name in ("oc_nthread", "h_nthread"):
            _require_between(name, _knob(knobs, name), 1, 2)
        order = knobs.get("loop_order")
        if order is None:
            order = np.full(len(knobs["tile_b"]), 1)
        _require_between("loop_order", order, 1, 4)
        return cls(
            problem,
            batch=knobs["tile_b"],
            height=knobs["tile_h"],
            width=knobs["tile_w"],
            ci=knobs["tile_ci"],
            co=knobs["tile_co"],
            oc_threads=knobs["oc_nthread"],
            h_threads=knobs["h_nthread"],
            order=order,
        )

    @classmethod
    def _of_ml2(cls, problem: TilingProblem, knobs: Mapping[str, IntArray]) -> Tiling:
        ones = np.ones_like(_knob(knobs, "TH"))
        _require_between("TH", knobs["TH"], 1, problem.out_height)
        _require_between("TW", _knob(knobs, "TW"), 1, problem.out_width)
        _require_between("nVT", _knob(knobs, "nVT"), 1, 4)
        extents = {"nFilterInLoop": problem.all_co, "tile_ci": problem.ci}
        _require_factors({name: _knob(knobs, name) for name in extents}, extents)
        return cls(
            problem,
            batch=ones,
            height=knobs["TH"],
            width=knobs["TW"],
            ci=knobs["tile_ci"],
            co=knobs["nFilterInLoop"],
            oc_threads=knobs["nVT"],
            h_threads=ones,
            order=ones,
        )

    @classmethod
    def _of_rows(cls, problem: TilingProblem, knobs: Mapping[str, IntArray]) -> Tiling:
        extents = {
            "tile_h": problem.out_height,
            "tile_w": problem.out_width,
            "tile_ci": problem.ci,
            "tile_co": problem.co,
        }
        _require_factors({name: _knob(knobs, name) for name in extents}, extents)
        for name, most in (("fold", len(FoldedLoop)), ("keep", len(Keep))):
            _require_between(name, _knob(knobs, name), 1, most)
        _require_between("merge", _knob(knobs, "merge"), 0, 1)
        ones = np.ones_like(knobs["fold"])
        return cls(
            problem,
            batch=ones,
            height=knobs["tile_h"],
            width=knobs["tile_w"],
            ci=knobs["tile_ci"],
            co=knobs["tile_co"],
            oc_threads=ones,
            h_threads=ones,
            order=np.where(knobs["keep"] <= Keep.INPUT, BY_TILE, BY_CHANNEL),
        )

    def take(self, rows: IntArray) -> Tiling:
        """Return the tiling of these configurations only."""
        return Tiling(self.problem, *(array.take(rows) for array in self._arrays()))

    @classmethod
    def interleaved(cls, tilings: Sequence[Tiling]) -> Tiling:
        """Return the first configuration of each, then the second of each, and so on."""
        columns = zip(*(tiling._arrays() for tiling in tilings), strict=True)
        return cls(tilings[0].problem, *(np.stack(column, axis=1).ravel() for column in columns))

    def _arrays(self) -> list[IntArray]:
        """Return the fields but for the problem, in their order."""
        return [getattr(self, field.name) for field in fields(self)[1:]]

    @cached_property
    def threads(self) -> IntArray:
        return self.oc_threads * self.h_threads

    @cached_property
    def inp_channels(self) -> IntArray:
        """Channel blocks of an input box: with groups of one block, as many as of output."""
        return self.co if self.problem.block_by_block else self.ci

    @cached_property
    def box_height(self) -> IntArray:
        return self.problem.box_height(self.height)

    @cached_property
    def box_width(self) -> IntArray:
        return self.problem.box_width(self.width)

    @cached_property
    def inp_elements(self) -> IntArray:
        """Return the elements of one tile's input box."""
        return self.batch * self.inp_channels * self.box_height * self.box_width

    @cached_property
    def wgt_elements(self) -> IntArray:
        return self.co * self.ci * self.problem.taps

    @cached_property
    def acc_elements(self) -> IntArray:
        return self.batch * self.co * self.height * self.width

    @cached_property
    def ci_steps(self) -> IntArray:
        return self.problem.ci // self.ci

    @cached_property
    def co_tiles(self) -> IntArray:
        return self.problem.all_co // self.co

    @cached_property
    def h_tiles(self) -> IntArray:
        return -(-self.problem.out_height // self.height)

    @cached_property
    def w_tiles(self) -> IntArray:
        return -(-self.problem.out_width // self.width)

    @cached_property
    def b_tiles(self) -> IntArray:
        return self.problem.batch // self.batch

    @cached_property
    def tiles(self) -> IntArray:
        return self.b_tiles * self.h_tiles * self.w_tiles * self.co_tiles

    @cached_property
    def weight_boxes(self) -> IntArray:
        """Different weight boxes: as many as there are tiles of the weights."""
        return self.co_tiles * self.ci_steps

    @cached_property
    def banded(self) -> NDArray[np.bool_]:
        """The reduction is outside of a band of output tiles, whose partial sums are all kept on chip."""
        return np.isin(self.order, (3, 4)) & (self.ci_steps > 1)

    @cached_property
    def band_tiles(self) -> IntArray:
        """Output tiles inside the loop of the reduction; `threads` where it is innermost."""
        rows = np.minimum(self.h_threads, self.h_tiles) * self.co_tiles * self.w_tiles
        channels = np.minimum(self.oc_threads, self.co_tiles) * self.h_tiles * self.w_tiles
        return np.where(self.order == 3, rows, np.where(self.order == 4, channels, self.threads))

    @cached_property
    def acc_places(self) -> IntArray:
        """Output tiles that have their sums on chip at once."""
        return np.where(self.banded, self.band_tiles, self.threads)

    def edges(self) -> list[tuple[Tiling, NDArray[np.bool_]]]:
        """Tiles that are smaller in columns, in rows, in both, and where (n,) there are such.

        Nothing if no configuration of all has them. Elsewhere their sizes mean nothing.
        """
        rest_height = self.problem.out_height % self.height
        rest_width = self.problem.out_width % self.width
        kinds = (
            (self.height, np.maximum(rest_width, 1), rest_width > 0),
            (np.maximum(rest_height, 1), self.width, rest_height > 0),
            (np.maximum(rest_height, 1), np.maximum(rest_width, 1), (rest_height > 0) & (rest_width > 0)),
        )
        return [(replace(self, height=height, width=width), exists) for height, width, exists in kinds if exists.any()]


def _knob(knobs: Mapping[str, IntArray], name: str) -> IntArray:
    if name not in knobs:
        raise ConfigurationError(f"the configuration has no {name}")
    return knobs[name]


def _require_factors(tiles: Mapping[str, IntArray], extents: Mapping[str, int]) -> None:
    tile = np.array(list(tiles.values()))
    extent = np.array(list(extents.values()))[:, None]
    wrong = (tile < 1) | (extent % np.maximum(tile, 1) != 0)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ConfigurationError(
            f"{list(tiles)[row]} is {int(tile[row, column])}, which does not divide {int(extent[row, 0])}"
        )


def _require_between(name: str, values: IntArray, least: int, most: int) -> None:
    wrong = (values < least) | (values > most)
    if wrong.any():
        raise ConfigurationError(f"{name} is {int(values[wrong.argmax()])}; it may be {least} to {most}")
