"""Lower one configuration with plain loops: the place to begin reading hilt's lowering.

A convolution is cut into tiles of the output. For each tile, each *step* of its reduction loads a box of the input
and one of the weights, and runs one GEMM instruction; the last step adds the bias, shifts, clips and stores. Virtual
threads interleave the steps of several tiles, so that one tile's loads run beside another's computation.

`hilt.schedule.lowering` writes the same programs, word for word (tests/unit/schedule/test_reference_lowering.py),
for thousands of configurations at once over arrays. The checks (`hilt.schedule.checks`) have decided before either
which configurations fit, which two loops GEMM counts, and whether the weights stay on chip.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Analysis, Checks, analyse
from hilt.schedule.loops import LOOPS
from hilt.schedule.reference_steps import ReductionStep, ScalarTiling, WorkTile, order_of_work
from hilt.schedule.tvm_rules import as_tvm
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from hilt.vta.program import Buffer, Program

_UNROLLED = ("w", "h", "co", "b", "kw", "kh", "ci")
"""The loops of a tile from the innermost out, as its micro-ops have them."""


def lower_one(
    workload: Conv2d, knobs: Mapping[str, int], accelerator: Accelerator, checks: Checks = CheckLevel.COMPILER
) -> Program:
    """Return the program of one configuration, as `hilt.schedule.lower` does.

    Raises:
        Rejected: `checks` refuses the configuration.
        FieldOverflowError: A field overflows, which only check level `off` lets through.
    """
    columns = {name: [value] for name, value in knobs.items()}
    analysis = analyse(workload, accelerator, as_tvm(columns) if checks == "tvm" else columns)
    rejected = analysis.rejection(checks)
    if rejected is not None:
        raise rejected
    return _Lowering(analysis).program()


@dataclass
class _Code:
    """The instructions and micro-ops so far. `owners` are the instructions whose dram_base counts from each buffer."""

    instructions: list[dict[str, int]] = field(default_factory=list)
    uops: list[tuple[int, int, int]] = field(default_factory=list)
    owners: dict[str, list[int]] = field(default_factory=dict)

    def add(self, fields: dict[str, int], buffer: str = "") -> dict[str, int]:
        if buffer:
            self.owners.setdefault(buffer, []).append(len(self.instructions))
        self.instructions.append(fields)
        return fields


class _Lowering:
    """One configuration: its sizes as plain numbers, and the code as it is written."""

    def __init__(self, analysis: Analysis) -> None:
        self.analysis, self.sizes = analysis, ScalarTiling(analysis)
        self.problem, self.workload = self.sizes.problem, self.sizes.problem.workload
        self.accelerator = self.problem.accelerator
        self.code = _Code()

    def program(self) -> Program:
        tiles, steps = order_of_work(self.sizes)
        bias_sets, gemm_sets = self._micro_ops(tiles, steps)
        code = self.code
        code.add(_load_all(MemoryType.UOP, len(code.uops)), "uop")
        if self.workload.bias:
            code.add(_load_all(MemoryType.ACC, self.problem.bias_elements), "bias")
        for step in steps:
            self._load(step)
            self._compute(step, gemm_sets[self._gemm_key(step)])
            if step.ci == self.sizes.ci_steps - 1:
                self._finish_tile(step.tile, bias_sets.get((step.tile.slot, step.tile.co), 0))
        code.add({"opcode": Opcode.FINISH, "pop_next": 1})
        return self._assemble()

    # --- micro-ops ---

    def _gemm_key(self, step: ReductionStep) -> tuple[int, int, int, int]:
        """Return the micro-op set of a step, in the order of the sets: shape of tile, and the slots."""
        return self._kind(step.tile), step.tile.slot, step.inp_slot, step.wgt_slot

    def _kind(self, tile: WorkTile) -> int:
        """Return 0 for a whole tile, 1 for one with fewer columns, 2 with fewer rows, 3 with fewer of both."""
        return (tile.width < self.sizes.width) + 2 * (tile.height < self.sizes.height)

    def _micro_ops(
        self, tiles: list[WorkTile], steps: list[ReductionStep]
    ) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int, int, int], tuple[int, int]]]:
        """Write all micro-ops: one for each slot, the bias's, the GEMMs'. Return the places of the latter two."""
        uops, first = self.code.uops, self.problem.bias_elements
        uops += [(first + slot * self.sizes.acc_elements, 0, 0) for slot in range(self.sizes.acc_slots)]
        bias_sets: dict[tuple[int, int], int] = {}
        if self.workload.bias:
            for slot, co in sorted({(tile.slot, tile.co) for tile in tiles}):
                bias_sets[slot, co] = len(uops)
                begin, step = first + slot * self.sizes.acc_elements, self.sizes.acc_elements // self.sizes.batch
                uops += [(begin + image * step, co * self.sizes.co, 0) for image in range(self.sizes.batch)]
        gemm_sets: dict[tuple[int, int, int, int], tuple[int, int]] = {}
        shapes = {self._kind(tile): tile for tile in tiles}
        for kind, slot, inp_slot, wgt_slot in sorted({self._gemm_key(step) for step in steps}):
            begin = len(uops)
            for dst, src, wgt in self._offsets(shapes[kind]):
                uops.append(
                    (
                        first + slot * self.sizes.acc_elements + dst,
                        inp_slot * self.sizes.inp_elements + src,
                        wgt_slot * self.sizes.wgt_elements + wgt,
                    )
                )
            gemm_sets[kind, slot, inp_slot, wgt_slot] = begin, len(uops)
        return bias_sets, gemm_sets

    def _offsets(self, tile: WorkTile) -> Iterator[tuple[int, int, int]]:
        """Yield dst, src and wgt of a tile's micro-ops, counted from where its operands begin."""
        extents, strides, counted = self._extents(tile), self._strides(tile), self._counted(tile)
        loops = [loop for loop in reversed(_UNROLLED) if loop not in counted]
        for turns in itertools.product(*(range(extents[loop]) for loop in loops)):
            dst, src, wgt = (
                sum(turn * strides[operand][loop] for loop, turn in zip(loops, turns, strict=True))
                for operand in ("dst", "src", "wgt")
            )
            yield dst, src, wgt

    def _counted(self, tile: WorkTile) -> tuple[str, str]:
        """Return the two loops that GEMM counts for tiles of this shape."""
        choice = self.analysis.loops
        for shape, exists, of_shape in self.analysis.edges:
            if exists[0] and (shape.height[0], shape.width[0]) == (tile.height, tile.width):
                choice = of_shape
        return LOOPS[int(choice.out[0])], LOOPS[int(choice.into[0])]

    def _extents(self, tile: WorkTile) -> dict[str, int]:
        kernel_height, kernel_width = self.workload.kernel
        sizes = (self.sizes.batch, self.sizes.co, tile.height, tile.width, self.sizes.ci, kernel_height, kernel_width)
        return dict(zip(LOOPS, sizes, strict=True))

    def _strides(self, tile: WorkTile) -> dict[str, dict[str, int]]:
        """Return the elements that each loop moves dst, src and wgt by."""
        problem, pixels = self.problem, tile.height * tile.width
        box_width = problem.box_width(tile.width)
        box = problem.box_height(tile.height) * box_width
        down, across = self.workload.dilation
        return {
            "dst": dict.fromkeys(LOOPS, 0) | {"b": self.sizes.co * pixels, "co": pixels, "h": tile.width, "w": 1},
            "src": dict.fromkeys(LOOPS, 0)
            | {"b": self.sizes.inp_channels * box, "co": box if problem.block_by_block else 0, "ci": box}
            | {"h": problem.box_row_stride * box_width, "w": self.workload.stride[1]}
            | {"kh": down * box_width, "kw": across},
            "wgt": dict.fromkeys(LOOPS, 0)
            | {"co": self.sizes.ci * problem.taps, "ci": problem.taps, "kh": self.workload.kernel[1], "kw": 1},
        }

    # --- instructions ---

    def _load(self, step: ReductionStep) -> None:
        """Load the operands that are not on chip. The first load waits for room; the last tells the GEMM."""
        added: list[dict[str, int]] = []
        if step.loads_inp:
            added += self._load_input(step)
        if step.loads_wgt:
            problem = self.problem
            begin = (step.tile.co * self.sizes.co * problem.ci + step.ci * self.sizes.ci) * problem.taps
            box = [(self.sizes.co, problem.ci * problem.taps), (self.sizes.ci * problem.taps, 1)]
            added += self._move("wgt", step.wgt_slot * self.sizes.wgt_elements, begin, box)
        if added:
            added[0]["pop_next"] = int(step.waits)
            added[-1]["push_next"] = 1

    def _load_input(self, step: ReductionStep) -> list[dict[str, int]]:
        """Load the input box of a tile, zeros where it reaches past the input."""
        tile, problem, workload = step.tile, self.problem, self.workload
        row, rows, top, bottom = _interval(
            tile.h * self.sizes.height, tile.height, workload.height, 0, workload, problem.row_step
        )
        column, columns, left, right = _interval(tile.w * self.sizes.width, tile.width, workload.width, 1, workload, 1)
        plane, on_chip = workload.height * workload.width, step.inp_slot * self.sizes.inp_elements
        if rows == 0 or columns == 0:  # all padding: a row of zeros above no rows
            whole = self.sizes.batch * self.sizes.inp_channels * (top + rows + bottom) * (left + columns + right)
            return self._move("inp", on_chip, 0, [(0, problem.row_step * workload.width), (whole, 1)], (1, 0, 0, 0))
        channel = tile.b * self.sizes.batch * problem.all_ci + step.ci * self.sizes.ci
        if problem.groups > 1:
            channel += tile.co * self.sizes.co // problem.co * problem.ci
        box = [
            (self.sizes.batch, problem.all_ci * plane),
            (self.sizes.inp_channels, plane),
            (rows, problem.row_step * workload.width),
            (columns, 1),
        ]
        begin = channel * plane + row * workload.width + column
        return self._move("inp", on_chip, begin, box, (top, bottom, left, right))

    def _compute(self, step: ReductionStep, uops: tuple[int, int]) -> None:
        """Reset the sums of a new tile, then multiply and add."""
        tile = step.tile
        if step.ci == 0:
            self.code.add({"opcode": Opcode.GEMM, "reset": 1, "pop_next": int(tile.pops)} | self._whole(tile))
        extents, strides = self._extents(tile), self._strides(tile)
        fields: dict[str, int] = {"opcode": Opcode.GEMM, "uop_bgn": uops[0], "uop_end": uops[1]}
        for suffix, loop in zip(("out", "in"), self._counted(tile), strict=True):
            fields[f"iter_{suffix}"] = extents[loop]
            for operand in ("dst", "src", "wgt"):
                fields[f"{operand}_factor_{suffix}"] = strides[operand][loop] if extents[loop] > 1 else 0
        fields |= {"pop_prev": int(step.loads_inp or step.loads_wgt), "push_prev": int(step.signals)}
        self.code.add(fields)

    def _whole(self, tile: WorkTile) -> dict[str, int]:
        """Return the loops over all outputs of a tile."""
        rows, pixels = self.sizes.batch * self.sizes.co, tile.height * tile.width
        return {
            "uop_bgn": tile.slot,
            "uop_end": tile.slot + 1,
            "iter_out": rows,
            "iter_in": pixels,
            "dst_factor_out": pixels if rows > 1 else 0,
            "dst_factor_in": int(pixels > 1),
        }

    def _finish_tile(self, tile: WorkTile, bias_begin: int) -> None:
        """Add the bias, shift, clip, and store."""
        workload, problem, alu = self.workload, self.problem, Opcode.ALU
        if workload.bias:
            fields = self._whole(tile) | {"uop_bgn": bias_begin, "uop_end": bias_begin + self.sizes.batch}
            pixels = tile.height * tile.width
            fields |= {"iter_out": self.sizes.co, "dst_factor_out": pixels if self.sizes.co > 1 else 0}
            fields["src_factor_out"] = int(self.sizes.co > 1)
            self.code.add({"opcode": alu, "alu_opcode": AluOpcode.ADD} | fields)
        operations = [(AluOpcode.SHR, workload.shift)] if workload.shift else []
        for operation, immediate in (*operations, (AluOpcode.MAX, workload.clip[0]), (AluOpcode.MIN, workload.clip[1])):
            fields = self._whole(tile) | {"use_imm": 1, "imm": immediate}
            last = self.code.add({"opcode": alu, "alu_opcode": operation} | fields)
        last["push_next"] = 1
        plane = problem.out_height * problem.out_width
        channel = tile.b * self.sizes.batch * problem.all_co + tile.co * self.sizes.co
        begin = channel * plane + tile.h * self.sizes.height * problem.out_width + tile.w * self.sizes.width
        box = [
            (self.sizes.batch, problem.all_co * plane),
            (self.sizes.co, plane),
            (tile.height, problem.out_width),
            (tile.width, 1),
        ]
        stores = self._move("out", problem.bias_elements + tile.slot * self.sizes.acc_elements, begin, box)
        stores[0]["pop_prev"] = 1
        stores[-1]["push_prev"] = int(tile.pushes)

    def _move(
        self,
        buffer: str,
        on_chip: int,
        in_memory: int,
        box: list[tuple[int, int]],
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> list[dict[str, int]]:
        """Add the LOADs or STOREs of a box: (count, stride) of its dimensions from the outermost in.

        `pads`: zeros above, below, left and right. Two dimensions go into one instruction; dimensions that follow each
        other in memory without a gap are one.
        """
        *outer, rows, columns = box
        top, bottom, left, right = pads
        levels = [columns]
        joinable = not (left or right)
        if top or bottom:
            levels.append(rows)
            joinable = False
        else:
            outer.append(rows)
        for count, stride in reversed(outer):
            if count == 1:
                continue
            inner_count, inner_stride = levels[-1]
            if joinable and inner_count * inner_stride == stride:
                levels[-1] = (inner_count * count, inner_stride)
            else:
                levels.append((count, stride))
            joinable = True
        (x_size, _), (y_size, x_stride) = levels[0], levels[1] if len(levels) > 1 else (1, 0)
        elements = (top + y_size + bottom) * (left + x_size + right)
        kind = {"inp": MemoryType.INP, "wgt": MemoryType.WGT, "out": MemoryType.OUT}[buffer]
        shape = {"y_size": y_size, "x_size": x_size, "x_stride": x_stride if y_size > 1 else 0}
        shape |= {"y_pad_0": top, "y_pad_1": bottom, "x_pad_0": left, "x_pad_1": right}
        added: list[dict[str, int]] = []
        for turns in itertools.product(*(range(count) for count, _ in reversed(levels[2:]))):
            offset = sum(turn * stride for turn, (_, stride) in zip(turns, reversed(levels[2:]), strict=True))
            opcode = Opcode.STORE if buffer == "out" else Opcode.LOAD
            place = {"sram_base": on_chip + len(added) * elements, "dram_base": in_memory + offset}
            added.append(self.code.add({"opcode": opcode, "memory_type": kind} | shape | place, buffer))
        return added

    def _assemble(self) -> Program:
        code, problem, workload, accelerator = self.code, self.problem, self.workload, self.accelerator
        records = np.zeros(len(code.instructions), dtype=INSTRUCTION)
        for number, fields in enumerate(code.instructions):
            for name, value in fields.items():
                records[name][number] = value
        uops = np.array(code.uops, dtype=UOP)
        parameters = accelerator.parameters
        sizes: dict[str, tuple[MemoryType, int, int]] = {
            "uop": (MemoryType.UOP, len(uops), accelerator.uop_element_bytes),
            "inp": (
                MemoryType.INP,
                problem.batch * problem.all_ci * workload.height * workload.width,
                parameters.inp_element_bytes,
            ),
            "wgt": (MemoryType.WGT, problem.wgt_elements, parameters.wgt_element_bytes),
            "bias": (MemoryType.ACC, problem.bias_elements, parameters.acc_element_bytes),
            "out": (
                MemoryType.OUT,
                problem.batch * problem.all_co * problem.out_height * problem.out_width,
                parameters.out_element_bytes,
            ),
        }
        buffers = tuple(
            Buffer(name, kind, elements * element_bytes, element_bytes, np.array(code.owners[name], dtype=np.int64))
            for name, (kind, elements, element_bytes) in sizes.items()
            if name in code.owners
        )
        return Program.assemble(accelerator, encode(records, accelerator), encode_uops(uops, accelerator), buffers)


def _interval(first: int, count: int, size: int, axis: int, workload: Conv2d, step: int) -> tuple[int, int, int, int]:
    """Return the input rows (axis 0) or columns (1) that `count` outputs from `first` on need.

    The result is the first that lies in the input, how many, and how many zeros before and after them. `step`: only
    every so many-th row is loaded.
    """
    stride, reach = workload.stride[axis], workload.reach[axis]
    start = first * stride - workload.padding[axis]
    box = (count - 1) * (stride // step) + reach
    before = min(max(-(start // step), 0), box)
    after = min(max(box + (start - size) // step, 0), box - before)
    return start + before * step, box - before - after, before, after


def _load_all(memory: MemoryType, elements: int) -> dict[str, int]:
    """Return a LOAD of a whole buffer to the start of its memory."""
    return {"opcode": Opcode.LOAD, "memory_type": memory, "y_size": 1, "x_size": elements}
