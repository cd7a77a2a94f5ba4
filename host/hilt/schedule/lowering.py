"""Lower workloads and configurations to Programs.

For each step (hilt.schedule.steps) the stream has: its LOADs, the reset of a new tile, the GEMM, after the last
reduction step bias, shift and clip, and the STOREs. Every instruction depends only on earlier ones, so instruction
queues of any depth are enough. Values that vary from step to step are added to template words. No Python runs for each
instruction, and little for each program: programs lowered together lie one after another in the same arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from hilt.run_choices import CheckLevel
from hilt.schedule.checks import Checks, analyse
from hilt.schedule.footprints import Footprints
from hilt.schedule.intervals import Intervals
from hilt.schedule.microops import micro_ops
from hilt.schedule.plan import Plans
from hilt.schedule.reasons import Reason, Rejected
from hilt.schedule.rows.lowering import lower_rows
from hilt.schedule.segments import ragged, starts
from hilt.schedule.steps import steps_of
from hilt.schedule.stream import InstructionStream, Words
from hilt.schedule.tiling import BoolArray, IntArray
from hilt.schedule.tvm_rules import as_tvm
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.fields import Field, Format
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from hilt.vta.program import Buffer, Program

_INSTRUCTIONS_TOGETHER = 1 << 19
"""Programs are lowered together up to about so many: enough to be cheap, few enough to hold in memory."""


def lower_many(
    workload: Conv2d, columns: Mapping[str, ArrayLike], accelerator: Accelerator, checks: Checks = CheckLevel.COMPILER
) -> Iterator[Program | Rejected]:
    """Yield the program, or the rejection, of each of these configurations, in order.

    The configurations are knob values by name (Space.columns). They are checked and lowered together, which is
    faster than
    one by one.

    Raises:
        ConfigurationError: The knobs are no configurations.
    """
    analysis = analyse(workload, accelerator, as_tvm(columns) if checks == "tvm" else columns)
    refused = analysis.verdict(checks) != 0
    if analysis.rows is not None:
        for row in range(len(refused)):
            rejection = analysis.rejection(checks, row) if refused[row] else None
            yield rejection or lower_rows(analysis.rows, row, wrap=checks == "off")
        return
    instructions, _ = analysis.needs[Reason.INSN_LIMIT]
    for first, end in _batches(np.where(refused, 0, instructions)):
        accepted = first + np.flatnonzero(~refused[first:end])
        programs: Iterator[Program] = iter(())
        if accepted.size:
            programs = _Lowering(Plans.of(analysis, accepted), wrap=checks == "off").programs()
        for row in range(first, end):
            yield (analysis.rejection(checks, row) if refused[row] else None) or next(programs)


def _batches(instructions: IntArray) -> Iterator[tuple[int, int]]:
    """Yield consecutive configurations that are lowered together, by the most instructions (n,) of each."""
    first, total = 0, 0
    for row, count in enumerate(instructions.tolist()):
        if total and total + count > _INSTRUCTIONS_TOGETHER:
            yield first, row
            first, total = row, 0
        total += count
    yield first, len(instructions)


class _Lowering:
    """One batch: the pieces of the stream are written in the order of a step, then put in place together."""

    def __init__(self, plans: Plans, wrap: bool) -> None:
        self.plans, self.tiling, self.problem = plans, plans.tiling, plans.problem
        self.workload = self.problem.workload
        self.accelerator = self.problem.accelerator
        self.formats = self.accelerator.formats
        self.wrap = wrap
        self.steps = steps_of(plans)
        self.tiles = self.steps.tiles
        self.shape_of_tile = self._shapes()
        self.uops, self.loops = micro_ops(plans, self.steps, self.shape_of_tile, wrap)
        self.spans = Intervals.of(self.tiling)
        self.boxes = Footprints.of(plans, self.spans)
        self.templates = self._templates()
        self.stream = InstructionStream(len(self.steps.tile), self.formats.instruction_words)

    def _shapes(self) -> IntArray:
        """Return the shape of each tile (tiles,), as plans.shapes counts."""
        kinds, shapes, program = self.plans.kinds, self.plans.shapes, self.tiles.program
        whole: IntArray = program * kinds
        found = whole
        last_h = self.tiles.h == self.tiling.h_tiles.take(program) - 1
        last_w = self.tiles.w == self.tiling.w_tiles.take(program) - 1
        for edge in (whole + kind for kind in range(1, kinds)):
            high = shapes.height.take(edge) == shapes.height.take(whole)
            wide = shapes.width.take(edge) == shapes.width.take(whole)
            mine = (high | last_h) & (wide | last_w) & self.plans.exists.take(edge)
            found = np.where(mine, edge, found)
        return found

    def programs(self) -> Iterator[Program]:
        self._load_inputs()
        self._load_weights()
        self._compute()
        self._store()
        return self._assemble()

    def _load_inputs(self) -> None:
        """Load each tile's box, zeros where it reaches past the input."""
        steps, tiles, workload, problem = self.steps, self.tiles, self.workload, self.problem
        spans, program = self.spans, tiles.program
        row, column = spans.at(program, tiles.h), spans.at(program + len(self.plans), tiles.w)
        kind = spans.kind.take(row) * spans.kinds.take(program + len(self.plans)) + spans.kind.take(column)
        kind += starts(spans.pairs).take(program)
        plane = workload.height * workload.width
        image = tiles.b * self.tiling.batch.take(tiles.program) * problem.all_ci
        if problem.groups > 1:
            image = image + tiles.co * self.tiling.co.take(tiles.program) // problem.co * problem.ci
        corner = image * plane + spans.first.take(row) * workload.width + spans.first.take(column)
        loading = np.flatnonzero(steps.inp_load)
        tile, program = steps.tile.take(loading), steps.program.take(loading)
        in_memory = corner.take(tile) + steps.ci.take(loading) * (self.tiling.ci * plane).take(program)
        on_chip = steps.inp_place.take(loading) * self.tiling.inp_elements.take(program)
        kind = kind.take(tile)
        in_memory *= self.boxes.moves.y_size.take(kind) > 0  # of a box that is all padding nothing is read
        counts, words = self._moves(kind, on_chip, in_memory)
        first, last = _ends(counts)
        self._set(words, first, "pop_next", steps.wait_free.take(loading))
        self._set(words, last, "push_next", ~steps.wgt_load.take(loading))
        self.stream.add("inp", loading, words, counts)

    def _load_weights(self) -> None:
        steps, taps = self.steps, self.problem.taps
        loading = np.flatnonzero(steps.wgt_load)
        program = steps.program.take(loading)
        channel = self.tiles.co.take(steps.tile.take(loading)) * self.tiling.co.take(program) * self.problem.ci
        channel += steps.ci.take(loading) * self.tiling.ci.take(program)
        on_chip = steps.wgt_place.take(loading) * self.tiling.wgt_elements.take(program)
        counts, words = self._moves(program + self.boxes.inp, on_chip, channel * taps)
        first, last = _ends(counts)
        self._set(words, first, "pop_next", (steps.wait_free & ~steps.inp_load).take(loading))
        self._set(words, last, "push_next")
        self.stream.add("wgt", loading, words, counts)

    def _compute(self) -> None:
        """Emit reset, GEMM, and after the last reduction step bias, shift and clip of the whole tile."""
        steps, workload, uops, formats = self.steps, self.workload, self.uops, self.formats

        whole = self._whole_tiles()
        reset = _joined(whole, [formats.gemm.words_of({"opcode": int(Opcode.GEMM), "reset": 1})])
        self._set(reset, slice(None), "pop_next", steps.reuses)
        self.stream.add("", steps.first, reset)

        factors = {name: values.take(uops.gemm_shape) for name, values in self.loops.factors.items()}
        sets: dict[str, int | IntArray] = {
            **{"opcode": int(Opcode.GEMM), "uop_bgn": uops.gemm_begin, "uop_end": uops.gemm_end},
            **factors,
        }
        gemm = formats.gemm.pack(sets, len(uops.gemm_begin), self.wrap).take(uops.gemm_set, axis=0)
        self._set(gemm, slice(None), "pop_prev", steps.inp_load | steps.wgt_load)
        self._set(gemm, slice(None), "push_prev", steps.signal_free)
        self.stream.add("", np.arange(len(gemm)), gemm)

        if workload.bias:
            self.stream.add("", steps.last, self._bias())
        epilogue = _epilogue(formats.alu, workload.shift, workload.clip)
        self.stream.add("", steps.last, _joined(whole, epilogue), np.full(len(whole), len(epilogue)))

    def _whole_tiles(self) -> Words:
        """Return the loops over all outputs of each tile (tiles, words).

        Their fields lie at the same bits in GEMM and ALU.
        """
        shapes, place = self.plans.shapes, self.steps.acc_place
        rows, pixels = shapes.batch * shapes.co, shapes.height * shapes.width
        loops: dict[str, int | IntArray] = {
            **{"iter_out": rows, "iter_in": pixels},
            **{"dst_factor_out": np.where(rows > 1, pixels, 0), "dst_factor_in": np.where(pixels > 1, 1, 0)},
        }
        words = self.formats.gemm.pack(loops, len(rows), self.wrap).take(self.shape_of_tile, axis=0)
        for name, value in (("uop_bgn", place), ("uop_end", place + 1)):
            self._put(words, self.formats.gemm.by_name[name], value)
        return words

    def _bias(self) -> Words:
        """Return the addition of the bias to each tile (tiles, words)."""
        shapes, begin = self.plans.shapes, self.uops.bias_begin
        batch, rows = (sizes.take(self.shape_of_tile) for sizes in (shapes.batch, shapes.co))
        pixels = (shapes.height * shapes.width).take(self.shape_of_tile)
        loops: dict[str, int | IntArray] = {
            **{"opcode": int(Opcode.ALU), "alu_opcode": int(AluOpcode.ADD)},
            **{"uop_bgn": begin, "uop_end": begin + batch, "iter_out": rows, "iter_in": pixels},
            **{"dst_factor_out": np.where(rows > 1, pixels, 0), "dst_factor_in": np.where(pixels > 1, 1, 0)},
            "src_factor_out": np.where(rows > 1, 1, 0),
        }
        return self.formats.alu.pack(loops, len(begin), self.wrap)

    def _store(self) -> None:
        steps, tiles, tiling, problem = self.steps, self.tiles, self.tiling, self.problem
        plane = problem.out_height * problem.out_width
        batch, co, height, width = (
            size.take(tiles.program) for size in (tiling.batch, tiling.co, tiling.height, tiling.width)
        )
        channel = tiles.b * batch * problem.all_co + tiles.co * co
        in_memory = channel * plane + tiles.h * height * problem.out_width + tiles.w * width
        on_chip = problem.bias_elements + steps.acc_place * tiling.acc_elements.take(tiles.program)
        counts, words = self._moves(self.shape_of_tile + self.boxes.inp + self.boxes.wgt, on_chip, in_memory)
        # The last store pushes a token to FINISH.
        pushes = steps.reused.copy()
        pushes[np.cumsum(np.bincount(tiles.program)) - 1] = True
        first, last = _ends(counts)
        self._set(words, first, "pop_prev")
        self._set(words, last, "push_prev", pushes)
        self.stream.add("out", steps.last, words, counts)

    def _assemble(self) -> Iterator[Program]:
        uops, problem, workload = self.uops, self.problem, self.workload
        prologue = [("uop", self._rows(MemoryType.UOP, uops.counts))]
        if workload.bias:
            prologue.append(("bias", self._rows(MemoryType.ACC, np.full_like(uops.counts, problem.bias_elements))))
        finish = self.formats.gemm.pack({"opcode": int(Opcode.FINISH), "pop_next": 1}, 1)
        instructions, bounds, positions = self.stream.assemble(self.steps.program, len(self.plans), prologue, finish)
        parameters = self.accelerator.parameters
        plane, out_plane = workload.height * workload.width, problem.out_height * problem.out_width
        sizes = {
            "inp": (MemoryType.INP, problem.batch * problem.all_ci * plane, parameters.inp_element_bytes),
            "wgt": (MemoryType.WGT, problem.wgt_elements, parameters.wgt_element_bytes),
            "bias": (MemoryType.ACC, problem.bias_elements, parameters.acc_element_bytes),
            "out": (MemoryType.OUT, problem.batch * problem.all_co * out_plane, parameters.out_element_bytes),
        }
        splits = {name: np.searchsorted(owned, bounds).tolist() for name, owned in positions.items()}
        uop_bounds = [0, *np.cumsum(uops.counts).tolist()]
        for number, (first, end) in enumerate(itertools.pairwise(bounds.tolist())):
            words = uops.words[uop_bounds[number] : uop_bounds[number + 1]].copy()
            each = {"uop": (MemoryType.UOP, len(words), self.accelerator.uop_element_bytes), **sizes}
            buffers = []
            for name, (memory, elements, element_bytes) in each.items():
                if name in positions:
                    mine = slice(splits[name][number], splits[name][number + 1])
                    where = positions[name][mine] - first
                    buffers.append(Buffer(name, memory, elements * element_bytes, element_bytes, where))
            yield Program.assemble(self.accelerator, instructions[first:end].copy(), words, tuple(buffers))

    def _rows(self, memory: MemoryType, elements: IntArray) -> Words:
        """One LOAD of a whole buffer to the start of its memory for each program (programs, words)."""
        columns: dict[str, int | IntArray] = {
            **{"opcode": int(Opcode.LOAD), "memory_type": int(memory), "y_size": 1, "x_size": elements}
        }
        return self.formats.memory.pack(columns, len(elements), self.wrap)

    def _templates(self) -> Words:
        """Return a LOAD or STORE of each kind of box from the start of its memories (boxes, words)."""
        form = self.formats.memory
        # Revision A has no bits for OUT, and a STORE needs none (hilt.vta.isa.encode).
        out = int(MemoryType.OUT) & form.by_name["memory_type"].high
        opcode = np.repeat([int(Opcode.LOAD), int(Opcode.LOAD), int(Opcode.STORE)], self.boxes.sizes)
        memory = np.repeat([int(MemoryType.INP), int(MemoryType.WGT), out], self.boxes.sizes)
        columns = {"opcode": opcode, "memory_type": memory, **self.boxes.moves.fields}
        return form.pack(columns, len(opcode), self.wrap)

    def _moves(self, kind: IntArray, on_chip: IntArray, in_memory: IntArray) -> tuple[IntArray, Words]:
        """Return the LOADs or STOREs of boxes.

        The boxes begin at `on_chip` and `in_memory` (m,) and are of `kind` (m,) of self.boxes. The result is the
        number that
        each takes (m,), and all of them (n, words).
        """
        moves = self.boxes.moves
        counts = moves.counts.take(kind)
        box, number = ragged(counts)
        which = kind.take(box)
        # The box's n-th instruction is its kind's n-th move.
        move = starts(moves.counts).take(which) + number
        words = self.templates.take(which, axis=0)
        for name, begin, offset in (
            ("sram_base", on_chip, moves.sram_offset),
            ("dram_base", in_memory, moves.dram_offset),
        ):
            self._put(words, self.formats.memory.by_name[name], begin.take(box) + offset.take(move))
        return counts, words

    def _put(self, words: Words, field: Field, values: IntArray) -> None:
        """Write values into a field of instruction words.

        The checks have found that `values` (n,) fit. The field of `words` (n, words) is still 0.
        """
        bits = (values & field.mask if self.wrap else values).view(np.uint64)
        words[:, field.word] |= bits << np.uint64(field.bit)

    def _set(self, words: Words, positions: IntArray | slice, flag: str, where: BoolArray | None = None) -> None:
        """Set a token flag in the instructions at `positions` of `words` (n, words), or those for which it holds."""
        field = self.formats.memory.by_name[flag]
        bit = np.uint64(1 << field.bit)
        words[positions, field.word] |= bit if where is None else where * bit


def _ends(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the last of each `counts` (m,) instructions."""
    end = np.cumsum(counts)
    return end - counts, end - 1


def _joined(words: Words, operations: list[list[int]]) -> Words:
    """Return each of `words` (n, words) with each of the operations' words: (n x operations, words)."""
    joined = np.empty((len(words), len(operations), words.shape[1]), dtype=np.uint64)
    for number, operation in enumerate(operations):
        for word, bits in enumerate(operation):
            np.bitwise_or(words[:, word], np.uint64(bits), out=joined[:, number, word])
    return joined.reshape(-1, words.shape[1])


@lru_cache(maxsize=64)
def _epilogue(form: Format, shift: int, clip: tuple[int, int]) -> list[list[int]]:
    """Return the words of shift and clip, the last of which tells the store; over no loops yet."""
    operations = [(AluOpcode.SHR, shift)] if shift else []
    operations += [(AluOpcode.MAX, clip[0]), (AluOpcode.MIN, clip[1])]
    common = {"opcode": int(Opcode.ALU), "use_imm": 1}
    values = [{**common, "alu_opcode": int(operation), "imm": immediate} for operation, immediate in operations]
    values[-1]["push_next"] = 1
    return [form.words_of(value) for value in values]
