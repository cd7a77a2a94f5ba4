"""A workload and a configuration to a Program.

For each step (hilt.schedule.steps) the stream has: its LOADs, the reset of a new tile, the GEMM, after the last
reduction step bias, shift and clip, and the STOREs. Every instruction depends only on earlier ones, so instruction
queues of any depth are enough. What varies from step to step is added to template words; no Python runs per
instruction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilt.schedule.checks import Checks, analyse
from hilt.schedule.microops import micro_ops, tile_loops
from hilt.schedule.plan import Plan, Sizes, plans
from hilt.schedule.reasons import Rejected
from hilt.schedule.spans import Span, axis_spans
from hilt.schedule.steps import steps_of
from hilt.schedule.stream import Stream, Words
from hilt.schedule.tiling import IntArray
from hilt.schedule.transfers import Moves, Pads, fold, zeros
from hilt.schedule.tvm_rules import as_tvm
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.fields import Format
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from hilt.vta.program import Buffer, Program


def lower(
    workload: Conv2d, configuration: Mapping[str, int], accelerator: Accelerator, checks: Checks = "compiler"
) -> Program:
    """The program of this configuration, with buffers `uop`, `inp`, `wgt`, `out` and, if the workload has one, `bias`.

    With checks `off`, fields that overflow keep their low bits. Raises Rejected, with the reason, where `checks`
    refuses it, and ConfigurationError for what is no configuration.
    """
    columns = {name: [value] for name, value in configuration.items()}
    (lowered,) = lower_many(workload, columns, accelerator, checks)
    if isinstance(lowered, Rejected):
        raise lowered
    return lowered


def lower_many(
    workload: Conv2d, columns: Mapping[str, ArrayLike], accelerator: Accelerator, checks: Checks = "compiler"
) -> Iterator[Program | Rejected]:
    """What `lower` gives for each of these configurations, knob values by name (Space.columns), in their order; they
    are judged together, which is faster than one by one. Raises ConfigurationError for what is no configuration."""
    analysis = analyse(workload, accelerator, as_tvm(columns) if checks == "tvm" else columns)
    for plan in plans(analysis, checks):
        yield plan if isinstance(plan, Rejected) else _Lowering(plan, wrap=checks == "off").program()


class _Lowering:
    """One lowering: the pieces of the stream are written in the order of a step, then put in place together."""

    def __init__(self, plan: Plan, wrap: bool) -> None:
        sizes = plan.sizes
        self.problem = plan.problem
        self.workload = self.problem.workload
        self.accelerator = self.problem.accelerator
        self.formats = self.accelerator.formats
        self.wrap = wrap
        self.steps = steps_of(plan)
        self.shapes = [shape.sizes for shape in plan.shapes]
        self.loops = [tile_loops(plan.problem, shape) for shape in plan.shapes]
        self.shape_of_tile = np.zeros(len(self.steps.tile_b), dtype=np.int64)
        for number, shape in enumerate(self.shapes[1:], start=1):
            self.shape_of_tile[self._is_edge(sizes, shape)] = number
        self.uops = micro_ops(plan, self.steps, self.shape_of_tile, self.loops, wrap)
        self.tile_b, self.tile_h, self.tile_w = sizes.batch, sizes.height, sizes.width
        self.tile_ci, self.tile_co, self.inp_channels = sizes.ci, sizes.co, sizes.inp_channels
        self.inp_elements, self.wgt_elements = sizes.inp_elements, sizes.wgt_elements
        self.acc_elements, self.acc_places = sizes.acc_elements, sizes.acc_places
        self.stream = Stream(len(self.steps.tile), self.formats.instruction_words)

    def _is_edge(self, whole: Sizes, edge: Sizes) -> NDArray[np.bool_]:
        found = np.ones(len(self.steps.tile_b), dtype=np.bool_)
        if edge.height != whole.height:
            found &= self.steps.tile_h == whole.h_tiles - 1
        if edge.width != whole.width:
            found &= self.steps.tile_w == whole.w_tiles - 1
        return found

    def program(self) -> Program:
        self._load_inputs()
        self._load_weights()
        self._compute()
        self._store()
        return self._assemble()

    def _load_inputs(self) -> None:
        """Each tile's box, zeros where it reaches past the input. Tiles of the same size and pads have the same
        transfers: each pair of a kind of rows and a kind of columns."""
        steps, workload, problem = self.steps, self.workload, self.problem
        row, rows, row_kind = self._spans(0, steps.tile_h)
        column, columns, column_kind = self._spans(1, steps.tile_w)
        plane = workload.height * workload.width
        image = steps.tile_b * (self.tile_b * problem.all_ci)
        if problem.groups > 1:
            image = image + steps.tile_co * self.tile_co // problem.co * problem.ci
        corner = image * plane + row * workload.width + column
        kind_of_tile = (row_kind * len(columns) + column_kind).astype(np.int16)
        loading = np.flatnonzero(steps.inp_load)
        tile = steps.tile.take(loading)
        kind_of_load = kind_of_tile.take(tile)
        in_memory = corner.take(tile) + steps.ci.take(loading) * (self.tile_ci * plane)
        on_chip = steps.inp_place.take(loading) * self.inp_elements
        wait, signal = steps.wait_free.take(loading), ~steps.wgt_load.take(loading)
        boxes = [self._box(vertical, horizontal) for vertical, horizontal in itertools.product(rows, columns)]
        nothing = np.array([box.y_size == 0 for box in boxes])
        if nothing.any():
            in_memory[nothing.take(kind_of_load)] = 0
        counts = np.array([len(box.sram_offset) for box in boxes])
        for count in set(counts.tolist()):
            kinds = np.flatnonzero(counts == count)
            if len(kinds) == len(boxes):
                chosen: slice | IntArray = slice(None)
            else:
                chosen = np.flatnonzero((counts == count).take(kind_of_load))
            which = (np.cumsum(counts == count) - 1).take(kind_of_load[chosen]) if len(kinds) > 1 else None
            moves = [boxes[kind] for kind in kinds]
            words = self._moves(
                (Opcode.LOAD, MemoryType.INP), moves, which, on_chip[chosen], in_memory[chosen]
            )
            self._set(words, 0, "pop_next", wait[chosen])
            self._set(words, -1, "push_next", signal[chosen])
            self.stream.add("inp", loading[chosen], words)

    def _box(self, vertical: Span, horizontal: Span) -> Moves:
        """The transfers of an input box of these rows and columns."""
        if not vertical.inside or not horizontal.inside:
            return zeros(self.tile_b * self.inp_channels * vertical.size * horizontal.size)
        plane = self.workload.height * self.workload.width
        dimensions = (
            (self.tile_b, self.problem.all_ci * plane),
            (self.inp_channels, plane),
            (vertical.inside, self.problem.row_step * self.workload.width),
            (horizontal.inside, 1),
        )
        return self._fold(dimensions, (vertical.before, vertical.after), (horizontal.before, horizontal.after))

    def _spans(self, axis: int, number: IntArray) -> tuple[IntArray, tuple[Span, ...], IntArray]:
        """Of tiles by their number along an axis: the first row (column) of the input in the box, and which of the
        spans returned the box has."""
        workload, problem = self.workload, self.problem
        if axis == 0:
            size, out, tile, step = workload.height, problem.out_height, self.tile_h, problem.row_step
        else:
            size, out, tile, step = workload.width, problem.out_width, self.tile_w, 1
        starts, spans, kinds = axis_spans(
            size, out, tile, workload.kernel[axis], workload.stride[axis], workload.padding[axis], step
        )
        return starts.take(number), spans, kinds.take(number)

    def _load_weights(self) -> None:
        steps, taps = self.steps, self.problem.taps
        chosen = np.flatnonzero(steps.wgt_load)
        channel = steps.tile_co[steps.tile[chosen]] * self.tile_co * self.problem.ci + steps.ci[chosen] * self.tile_ci
        words = self._moves(
            (Opcode.LOAD, MemoryType.WGT),
            [self._fold(((self.tile_co, self.problem.ci * taps), (self.tile_ci * taps, 1)))],
            None,
            steps.wgt_place[chosen] * self.wgt_elements,
            channel * taps,
        )
        self._set(words, 0, "pop_next", steps.wait_free[chosen] & ~steps.inp_load[chosen])
        self._set(words, -1, "push_next", np.ones(len(chosen), dtype=np.bool_))
        self.stream.add("wgt", chosen, words)

    def _compute(self) -> None:
        """Reset, GEMM, and after the last reduction step bias, shift and clip of the whole tile."""
        steps, workload, uops = self.steps, self.workload, self.uops
        code = self.shape_of_tile * self.acc_places + steps.acc_place

        first = np.flatnonzero(steps.first)
        tile = steps.tile[first]
        whole = self._whole_tiles()
        resetting = np.array(self.formats.gemm.words_of({"opcode": int(Opcode.GEMM), "reset": 1}), dtype=np.uint64)
        reset = (whole | resetting).take(code[tile], axis=0)[:, None]
        self._set(reset, 0, "pop_next", steps.reuses[tile])
        self.stream.add("", first, reset)

        per_shape = np.array([len(tile.dst) for tile in self.loops])
        sets: dict[str, int | IntArray] = {"uop_bgn": uops.gemm_begin}
        sets["uop_end"] = uops.gemm_begin + per_shape[uops.gemm_shape]
        if len(self.loops) == 1:
            sets.update(self.loops[0].factors)
        else:
            for name in self.loops[0].factors:
                sets[name] = np.array([tile.factors[name] for tile in self.loops])[uops.gemm_shape]
        gemm = self._loops(Opcode.GEMM, sets, len(uops.gemm_begin)).take(uops.gemm_set, axis=0)
        self._set(gemm, 0, "pop_prev", steps.inp_load | steps.wgt_load)
        self._set(gemm, 0, "push_prev", steps.signal_free)
        self.stream.add("", None, gemm)

        last = np.flatnonzero(steps.last)
        tile = steps.tile[last]
        if workload.bias:
            self.stream.add("", last, self._bias()[tile])
        epilogue = _epilogue(self.formats.alu, workload.shift, workload.clip)
        self.stream.add("", last, (whole[:, None, :] | epilogue).take(code[tile], axis=0))

    def _whole_tiles(self) -> Words:
        """The loops over all outputs of a tile, by shape and place: (shapes x places, words). Their fields lie at the
        same bits in GEMM and ALU."""
        places = np.arange(self.acc_places)
        tables = []
        for shape in self.shapes:
            rows, pixels = self.tile_b * self.tile_co, shape.height * shape.width
            loops: dict[str, int | IntArray] = {
                **{"uop_bgn": places, "uop_end": places + 1, "iter_out": rows, "iter_in": pixels},
                "dst_factor_out": pixels if rows > 1 else 0,
                "dst_factor_in": 1 if pixels > 1 else 0,
            }
            tables.append(self.formats.gemm.pack(loops, self.acc_places, self.wrap))
        return tables[0] if len(tables) == 1 else np.concatenate(tables)

    def _bias(self) -> Words:
        """The addition of the bias by tile: (tiles, 1, words)."""
        pixels = np.array([shape.height * shape.width for shape in self.shapes])[self.shape_of_tile]
        many = (pixels > 1).astype(np.int64)
        return self._loops(
            Opcode.ALU,
            {
                "alu_opcode": int(AluOpcode.ADD),
                "uop_bgn": self.uops.bias_begin,
                "uop_end": self.uops.bias_begin + self.tile_b,
                "iter_out": self.tile_co,
                "iter_in": pixels,
                "dst_factor_out": pixels if self.tile_co > 1 else 0,
                "dst_factor_in": many,
                "src_factor_out": 1 if self.tile_co > 1 else 0,
            },
            len(pixels),
        )

    def _store(self) -> None:
        steps, problem = self.steps, self.problem
        last = np.flatnonzero(steps.last)
        plane = problem.out_height * problem.out_width
        channel = steps.tile_b * self.tile_b * problem.all_co + steps.tile_co * self.tile_co
        in_memory = channel * plane + steps.tile_h * self.tile_h * problem.out_width + steps.tile_w * self.tile_w
        shape_of_last = self.shape_of_tile[steps.tile[last]]
        # The last store of all tells FINISH.
        told = steps.reused.copy()
        told[-1] = True
        for number, shape in enumerate(self.shapes):
            chosen = last if len(self.shapes) == 1 else last[shape_of_last == number]
            tile = steps.tile[chosen]
            dimensions = (
                (self.tile_b, problem.all_co * plane),
                (self.tile_co, plane),
                (shape.height, problem.out_width),
                (shape.width, 1),
            )
            words = self._moves(
                (Opcode.STORE, MemoryType.OUT),
                [self._fold(dimensions)],
                None,
                problem.bias_elements + steps.acc_place[tile] * self.acc_elements,
                in_memory[tile],
            )
            self._set(words, 0, "pop_prev", np.ones(len(chosen), dtype=np.bool_))
            self._set(words, -1, "push_prev", told[tile])
            self.stream.add("out", chosen, words)

    def _assemble(self) -> Program:
        uops = self.uops.words
        prologue = [("uop", self._row(MemoryType.UOP, len(uops)))]
        if self.workload.bias:
            prologue.append(("bias", self._row(MemoryType.ACC, self.problem.bias_elements)))
        finish = self.formats.gemm.pack({"opcode": int(Opcode.FINISH), "pop_next": 1}, 1)
        instructions, positions = self.stream.assemble(prologue, finish)
        parameters, problem, workload = self.accelerator.parameters, self.problem, self.workload
        plane, out_plane = workload.height * workload.width, problem.out_height * problem.out_width
        sizes = {
            "uop": (MemoryType.UOP, len(uops), self.accelerator.uop_element_bytes),
            "inp": (MemoryType.INP, problem.batch * problem.all_ci * plane, parameters.inp_element_bytes),
            "wgt": (MemoryType.WGT, problem.wgt_elements, parameters.wgt_element_bytes),
            "bias": (MemoryType.ACC, problem.bias_elements, parameters.acc_element_bytes),
            "out": (MemoryType.OUT, problem.batch * problem.all_co * out_plane, parameters.out_element_bytes),
        }
        buffers = tuple(
            Buffer(name, memory, elements * element_bytes, element_bytes, positions[name])
            for name, (memory, elements, element_bytes) in sizes.items()
            if name in positions
        )
        return Program.assemble(self.accelerator, instructions, uops, buffers)

    def _fold(self, dimensions: tuple[tuple[int, int], ...], y_pads: Pads = (0, 0), x_pads: Pads = (0, 0)) -> Moves:
        return fold(dimensions, self.formats.memory.by_name["x_stride"].high, y_pads, x_pads)

    def _moves(
        self,
        operation: tuple[Opcode, MemoryType],
        kinds: list[Moves],
        kind: IntArray | None,
        on_chip: IntArray,
        in_memory: IntArray,
    ) -> Words:
        """LOADs or STOREs (m, moves, words) of boxes that begin at `on_chip` and `in_memory` (m,). They are of `kinds`,
        with as many moves each; of which `kind` (m,) says, where there is more than one."""
        opcode, memory = operation
        held = self._memory_type(opcode, memory)
        form = self.formats.memory
        templates = [_template(form, opcode, held, moves, self.wrap) for moves in kinds]
        words = np.empty((len(on_chip), len(kinds[0].sram_offset), self.formats.instruction_words), dtype=np.uint64)
        if kind is None:
            words[:] = templates[0]
            sram_offset, dram_offset = kinds[0].sram_offset, kinds[0].dram_offset
        else:
            words[:] = np.array(templates, dtype=np.uint64).take(kind, axis=0)[:, None]
            sram_offset = np.array([moves.sram_offset for moves in kinds]).take(kind, axis=0)
            dram_offset = np.array([moves.dram_offset for moves in kinds]).take(kind, axis=0)
        for name, begin, offset in (("sram_base", on_chip, sram_offset), ("dram_base", in_memory, dram_offset)):
            field = form.by_name[name]
            value = begin[:, None] + offset
            if self.wrap:
                value &= field.mask
            words[:, :, field.word] |= value.view(np.uint64) << np.uint64(field.bit)
        return words

    def _row(self, memory: MemoryType, elements: int) -> Words:
        """One LOAD of a whole buffer to the start of its memory."""
        columns = {"opcode": int(Opcode.LOAD), "memory_type": int(memory), "y_size": 1, "x_size": elements}
        return np.array(self.formats.memory.words_of(columns, self.wrap), dtype=np.uint64)

    def _memory_type(self, opcode: Opcode, memory: MemoryType) -> int:
        """Revision A has no bits for OUT, and a STORE needs none (hilt.vta.isa.encode)."""
        held = self.formats.memory.by_name["memory_type"].high
        return int(memory) & held if opcode is Opcode.STORE else int(memory)

    def _loops(self, opcode: Opcode, columns: Mapping[str, int | IntArray], count: int) -> Words:
        """GEMM or ALU instructions (count, 1, words)."""
        form = self.formats.alu if opcode is Opcode.ALU else self.formats.gemm
        return form.pack({"opcode": int(opcode), **columns}, count, self.wrap)[:, None, :]

    def _set(self, words: Words, position: int, flag: str, where: NDArray[np.bool_]) -> None:
        """Sets a token flag in the instruction at `position` of each of `words` (m, k, words) for which it holds."""
        field = self.formats.memory.by_name[flag]
        words[:, position, field.word] |= where.astype(np.uint64) << np.uint64(field.bit)


@lru_cache(maxsize=4096)  # the boxes of a space have few sizes
def _template(form: Format, opcode: Opcode, memory_type: int, moves: Moves, wrap: bool) -> Words:
    """One LOAD or STORE (words,) at the start of its memories."""
    values = {"opcode": int(opcode), "memory_type": memory_type, **moves.fields}
    return np.array(form.words_of(values, wrap), dtype=np.uint64)


@lru_cache(maxsize=64)
def _epilogue(form: Format, shift: int, clip: tuple[int, int]) -> Words:
    """Shift and clip (operations, words), the last of which tells the store; over no loops yet."""
    operations = [(AluOpcode.SHR, shift)] if shift else []
    operations += [(AluOpcode.MAX, clip[0]), (AluOpcode.MIN, clip[1])]
    common = {"opcode": int(Opcode.ALU), "use_imm": 1}
    values = [{**common, "alu_opcode": int(operation), "imm": immediate} for operation, immediate in operations]
    values[-1]["push_next"] = 1
    return np.array([form.words_of(each) for each in values], dtype=np.uint64)
