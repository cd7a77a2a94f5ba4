"""Programs in the form of TVM v0.9's VTA templates: the boards of the published logs ran them (docs/silicon.md).

A tile is reset, reduced, shifted, clipped and stored. Two virtual threads take tiles in turn, each with buffers of its
own, so that one loads while the other computes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from hilt.silicon.packed_task import CLIP, DENSE, SHIFT, PackedTask, TaskError
from hilt.silicon.tvm_blocks import Block, fold, padded_rows
from hilt.silicon.tvm_nest import TvmTile, alu_kernel, box_size, gemm_kernel, reset_kernel, tile_of
from hilt.silicon.tvm_stream import COMPUTE, LOAD, STORE, TvmStream
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode
from hilt.vta.program import Program

_ALU_PASSES = ((AluOpcode.SHR, SHIFT), (AluOpcode.MAX, CLIP[0]), (AluOpcode.MIN, CLIP[1]))


def tvm_program(task: PackedTask, knobs: dict[str, int], accelerator: Accelerator) -> Program:
    """Return the program of this configuration, with buffers `uop`, `inp`, `wgt` and `out`.

    Args:
        task: The packed workload.
        knobs: Inner factors tile_h, tile_w, tile_ci, tile_co (of a dense layer tile_b, tile_ci, tile_co), oc_nthread
            and h_nthread, as TVM's logs name them.
        accelerator: Geometry and ISA.

    Raises:
        TaskError: The templates have no such configuration, or TVM compiles none.
        FieldOverflowError: A factor of a loop does not fit its field.
    """
    task.check_geometry(accelerator.parameters)
    return _Writer(task, knobs, accelerator).program()


@dataclass(frozen=True)
class _Place:
    """The output tile at these numbers of tiles."""

    batch: int
    h: int
    co: int
    w: int


class _Writer:
    def __init__(self, task: PackedTask, knobs: dict[str, int], accelerator: Accelerator) -> None:
        self.task, self.tile = task, tile_of(task, knobs)
        self.stream = TvmStream(accelerator)
        self.oc_threads, self.h_threads = knobs.get("oc_nthread", 1), knobs.get("h_nthread", 1)
        self.threads = self.oc_threads * self.h_threads
        self.rows, self.columns = task.output_size
        self.box = box_size(task, self.tile)
        self.h_tiles, self.co_tiles = self.rows // self.tile.height, task.out_blocks // self.tile.co
        if self.threads not in (1, 2) or self.h_tiles % self.h_threads or self.co_tiles % self.oc_threads:
            raise TaskError(
                f"task {task.name}: {self.oc_threads}x{self.h_threads} threads of {self.co_tiles}x{self.h_tiles} "
                "tiles; TVM runs one or two that divide them"
            )
        # A dense layer's rows are reduced one by one into one tile of the output.
        self.batch_tile = knobs.get("tile_b", 1) if task.kind == DENSE else 1
        if task.batch % self.batch_tile:
            raise TaskError(f"task {task.name}: tile_b is {self.batch_tile}; give a factor of {task.batch}")
        self._measure_tile(accelerator)

    def _measure_tile(self, accelerator: Accelerator) -> None:
        task, tile, parameters = self.task, self.tile, accelerator.parameters
        self.inp = tile.ci * self.box[0] * self.box[1]
        self.wgt = tile.co * tile.ci * task.kernel[0] * task.kernel[1]
        self.plane = tile.co * tile.height * tile.width
        self.acc = self.batch_tile * self.plane
        for name, size, depth in (
            ("inp", self.inp, parameters.inp_depth),
            ("wgt", self.wgt, parameters.wgt_depth),
            ("acc", self.acc, parameters.acc_depth),
        ):
            if size * self.threads > depth:
                raise TaskError(f"task {task.name}: {size * self.threads} elements of {name}; the buffer holds {depth}")
        self.gemm, self.reset = gemm_kernel(task, tile), reset_kernel(task, tile)
        self.alu = alu_kernel(TvmTile(self.batch_tile * tile.height, tile.width, tile.ci, tile.co))

    def program(self) -> Program:
        stream, task = self.stream, self.task
        for _ in range(self.threads):
            stream.push(STORE, COMPUTE)
        for place in self._places():
            self._write_tile([self._of_thread(place, thread) for thread in range(self.threads)])
        for _ in range(self.threads):
            stream.pop(COMPUTE, STORE)
        stream.finish()
        parameters = stream.accelerator.parameters
        height, width = task.input_size
        taps = task.kernel[0] * task.kernel[1]
        return stream.program(
            {
                "inp": task.batch * task.in_blocks * height * width * parameters.inp_element_bytes,
                "wgt": task.out_blocks * task.reduce_blocks * taps * parameters.wgt_element_bytes,
                "out": task.batch * task.out_blocks * self.rows * self.columns * parameters.out_element_bytes,
            }
        )

    def _places(self) -> Iterator[_Place]:
        """Tiles of thread 0 in the order of the loops; extents are those outside the threads."""
        for numbers in itertools.product(
            range(self.task.batch // self.batch_tile),
            range(self.h_tiles // self.h_threads),
            range(self.co_tiles // self.oc_threads),
            range(self.columns // self.tile.width),
        ):
            batch, h, co, w = numbers
            yield _Place(batch, h * self.h_threads, co * self.oc_threads, w)

    def _of_thread(self, place: _Place, thread: int) -> _Place:
        if self.oc_threads == 2:
            return _Place(place.batch, place.h, place.co + thread, place.w)
        return _Place(place.batch, place.h + thread * (self.h_threads == 2), place.co, place.w)

    def _write_tile(self, places: list[_Place]) -> None:
        stream = self.stream
        for thread in range(len(places)):
            stream.pop(COMPUTE, STORE)
            for row in range(self.batch_tile):
                kernel = self.reset.at(thread * self.acc + row * self.plane, 0, 0)
                stream.gemm((f"reset{row}", thread), kernel, reset=True)
            stream.push(COMPUTE, LOAD)
        for row in range(self.batch_tile):
            for step in range(self.task.reduce_blocks // self.tile.ci):
                self._load(places, row, step)
                for thread in range(len(places)):
                    self._multiply(thread, row)
        for _ in places:
            stream.pop(LOAD, COMPUTE)
        for thread in range(len(places)):
            self._clip(thread)
        for thread, place in enumerate(places):
            stream.pop(STORE, COMPUTE)
            self._store(thread, place)
            stream.push(STORE, COMPUTE)

    def _load(self, places: list[_Place], row: int, step: int) -> None:
        for thread, place in enumerate(places):
            self.stream.pop(LOAD, COMPUTE)
            block, first = self._input(place, row, step)
            self.stream.load("inp", block, thread * self.inp, first)
            block, first = self._weights(place, step)
            self.stream.load("wgt", block, thread * self.wgt, first)
            self.stream.push(LOAD, COMPUTE)

    def _multiply(self, thread: int, row: int) -> None:
        self.stream.pop(COMPUTE, LOAD)
        dst = thread * self.acc + row * self.plane
        kernel = self.gemm.at(dst, thread * self.inp, thread * self.wgt)
        self.stream.gemm((f"gemm{row}", thread), kernel)
        self.stream.push(COMPUTE, LOAD)

    def _clip(self, thread: int) -> None:
        kernel = self.alu.at(thread * self.acc, thread * self.acc, 0)
        for operation, immediate in _ALU_PASSES:
            self.stream.alu((operation.name, thread), kernel, operation, immediate)
        self.stream.push(COMPUTE, STORE)

    def _input(self, place: _Place, row: int, step: int) -> tuple[Block, int]:
        """One reduction step's box, and its first element."""
        task, tile = self.task, self.tile
        height, width = task.input_size
        group = place.co * tile.co // (task.out_blocks // task.groups)
        if tile.co > task.out_blocks // task.groups:
            raise TaskError(f"task {task.name}: tile_co {tile.co} spans groups; take a factor of one group's blocks")
        image = place.batch * self.batch_tile + row
        channel = image * task.in_blocks + group * task.reduce_blocks + step * tile.ci
        rows = (place.h * tile.height * task.slide[0] - task.pads[0], self.box[0])
        columns = (place.w * tile.width * task.slide[1] - task.pads[1], self.box[1])
        if max(task.pads) == 0:
            first = channel * height * width + rows[0] * width + columns[0]
            return fold([(tile.ci, height * width), (rows[1], width), (columns[1], 1)]), first
        if tile.ci > 1:
            raise TaskError(f"task {task.name}: tile_ci is {tile.ci}; TVM loads padded inputs block by block")
        block, first = padded_rows(rows, columns, (height, width))
        return block, channel * height * width + first

    def _weights(self, place: _Place, step: int) -> tuple[Block, int]:
        task, tile = self.task, self.tile
        taps = task.kernel[0] * task.kernel[1]
        first = (place.co * tile.co * task.reduce_blocks + step * tile.ci) * taps
        return fold([(tile.co, task.reduce_blocks * taps), (tile.ci * taps, 1)]), first

    def _store(self, thread: int, place: _Place) -> None:
        task, tile = self.task, self.tile
        plane = self.rows * self.columns
        first = (place.batch * self.batch_tile * task.out_blocks + place.co * tile.co) * plane
        first += place.h * tile.height * self.columns + place.w * tile.width
        dimensions = [(tile.co, plane), (tile.height, self.columns), (tile.width, 1)]
        if self.batch_tile > 1:
            dimensions.insert(0, (self.batch_tile, task.out_blocks * plane))
        self.stream.store(fold(dimensions), thread * self.acc, first)
