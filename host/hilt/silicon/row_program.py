"""hilt's own lowering for machines where rows, iterations and padding cost (docs/silicon.md).

A tile has the full width, so its rows lie end to end in memory and move in one burst. The input is loaded without its
padding, and products with padding are left out. Loads run two steps ahead and wait for no reset.
"""

from __future__ import annotations

from dataclasses import dataclass

from hilt.silicon.packed_task import CLIP, CONV2D, SHIFT, PackedTask, TaskError
from hilt.silicon.row_nest import RowTile, clip_rows, input_rows, reset_rows, row_kernels
from hilt.silicon.tvm_blocks import fold
from hilt.silicon.tvm_nest import TvmKernel
from hilt.silicon.tvm_stream import COMPUTE, LOAD, STORE, TvmStream
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode
from hilt.vta.program import Program

_SLOTS = 2
_ALU_PASSES = ((AluOpcode.SHR, SHIFT), (AluOpcode.MAX, CLIP[0]), (AluOpcode.MIN, CLIP[1]))


@dataclass(frozen=True)
class RowSchedule:
    """Tile of a row program, and whether a tile's input stays on chip for all blocks of output channels."""

    tile: RowTile
    resident: bool


def row_program(task: PackedTask, schedule: RowSchedule, accelerator: Accelerator) -> Program:
    """Return the program of this schedule, with buffers `uop`, `inp`, `wgt` and `out`.

    Raises:
        TaskError: The task is no convolution, or the tile does not divide it or fit the buffers.
    """
    task.check_geometry(accelerator.parameters)
    return _Writer(task, schedule, accelerator).program()


class _Writer:
    def __init__(self, task: PackedTask, schedule: RowSchedule, accelerator: Accelerator) -> None:
        self.task, self.tile, self.resident = task, schedule.tile, schedule.resident
        self.stream = TvmStream(accelerator)
        self.rows, self.columns = task.output_size
        tile = self.tile
        if task.kind != CONV2D:
            raise TaskError(f"task {task.name}: row programs are of {CONV2D}")
        if self.rows % tile.height or task.out_blocks % tile.co or task.reduce_blocks % tile.ci:
            raise TaskError(f"task {task.name}: tile {tile} does not divide it")
        self.h_tiles, self.steps = self.rows // tile.height, task.reduce_blocks // tile.ci
        self.co_tiles = task.out_blocks // tile.co
        self.boxes = [input_rows(task, tile, number) for number in range(self.h_tiles)]
        largest = max(box.count for box in self.boxes) * task.input_size[1]
        self.inp = largest * (task.reduce_blocks if self.resident else tile.ci)
        self.wgt = tile.co * tile.ci * task.kernel[0] * task.kernel[1]
        self.acc = tile.co * tile.height * self.columns
        parameters = accelerator.parameters
        inputs = self.inp * (1 if self.resident and self.h_tiles * task.batch == 1 else _SLOTS)
        for name, size, depth in (
            ("inp", inputs, parameters.inp_depth),
            ("wgt", self.wgt * _SLOTS, parameters.wgt_depth),
            ("acc", self.acc * _SLOTS, parameters.acc_depth),
        ):
            if size > depth:
                raise TaskError(f"task {task.name}: tile {tile} needs {size} elements of {name}; there are {depth}")
        self.turn = 0  # steps loaded so far; their parity is the next one's slot
        self.tiles = 0
        self.made: dict[tuple[int, ...], list[tuple[tuple[str, int], TvmKernel]]] = {}
        self.total = task.batch * self.h_tiles * self.co_tiles * self.steps
        self.all_tiles = task.batch * self.h_tiles * self.co_tiles

    def program(self) -> Program:
        task = self.task
        for batch in range(task.batch):
            for h in range(self.h_tiles):
                for co in range(self.co_tiles):
                    self._write_tile(batch, h, co)
        for _ in range(min(self.all_tiles, _SLOTS)):
            self.stream.pop(COMPUTE, STORE)
        self.stream.finish()
        parameters = self.stream.accelerator.parameters
        height, width = task.input_size
        taps = task.kernel[0] * task.kernel[1]
        return self.stream.program(
            {
                "inp": task.batch * task.in_blocks * height * width * parameters.inp_element_bytes,
                "wgt": task.out_blocks * task.reduce_blocks * taps * parameters.wgt_element_bytes,
                "out": task.batch * task.out_blocks * self.rows * self.columns * parameters.out_element_bytes,
            }
        )

    def _write_tile(self, batch: int, h: int, co: int) -> None:
        """Reset, reduce, clip and store; each accumulator slot waits for its last store."""
        stream, slot = self.stream, self.tiles % _SLOTS
        if self.tiles >= _SLOTS:
            stream.pop(COMPUTE, STORE)
        stream.gemm(("reset", slot), reset_rows(self.acc).at(slot * self.acc, 0, 0), reset=True)
        for step in range(self.steps):
            self._multiply(h, self._load(batch, h, co, step), slot)
        kernel = clip_rows(self.acc).at(slot * self.acc, slot * self.acc, 0)
        for operation, immediate in _ALU_PASSES:
            stream.alu(("clip", slot), kernel, operation, immediate)
        stream.push(COMPUTE, STORE)
        stream.pop(STORE, COMPUTE)
        plane = self.rows * self.columns
        first = (batch * self.task.out_blocks + co * self.tile.co) * plane + h * self.tile.height * self.columns
        stream.store(fold([(self.tile.co, plane), (self.tile.height * self.columns, 1)]), slot * self.acc, first)
        stream.push(STORE, COMPUTE)
        self.tiles += 1

    def _load(self, batch: int, h: int, co: int, step: int) -> tuple[int, int]:
        """Load a step's input and weights; returns where they begin on chip."""
        stream, tile, task = self.stream, self.tile, self.task
        slot = self.turn % _SLOTS
        if self.turn >= _SLOTS:
            stream.pop(LOAD, COMPUTE)
        box, (height, width) = self.boxes[h], task.input_size
        plane = box.count * width
        image = batch * self.h_tiles + h
        inp = image % _SLOTS * self.inp + step * tile.ci * plane if self.resident else slot * self.inp
        if not self.resident or co == 0:
            channel = batch * task.in_blocks + step * tile.ci
            block = fold([(tile.ci, height * width), (plane, 1)])
            stream.load("inp", block, inp, channel * height * width + box.first * width)
        taps = task.kernel[0] * task.kernel[1]
        first = (co * tile.co * task.reduce_blocks + step * tile.ci) * taps
        block = fold([(tile.co, task.reduce_blocks * taps), (tile.ci * taps, 1)])
        stream.load("wgt", block, slot * self.wgt, first)
        stream.push(LOAD, COMPUTE)
        self.turn += 1
        return inp, slot * self.wgt

    def _multiply(self, h: int, places: tuple[int, int], slot: int) -> None:
        stream, (inp, wgt) = self.stream, places
        stream.pop(COMPUTE, LOAD)
        for name, kernel in self._kernels(h, inp, wgt, slot):
            stream.gemm(name, kernel)
        if self.turn + _SLOTS <= self.total:
            stream.push(COMPUTE, LOAD)

    def _kernels(self, h: int, inp: int, wgt: int, slot: int) -> list[tuple[tuple[str, int], TvmKernel]]:
        """Return the kernels of a step at these places; tiles whose rows meet the padding alike share them."""
        box = self.boxes[h]
        alike = (box.count, h == 0, inp, wgt, slot)
        if alike not in self.made:
            number = len(self.made)
            self.made[alike] = [
                ((f"rows {number}", run), kernel.at(slot * self.acc, inp, wgt))
                for run, kernel in enumerate(row_kernels(self.task, self.tile, box))
            ]
        return self.made[alike]
