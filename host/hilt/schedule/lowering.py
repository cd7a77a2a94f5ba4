"""A workload and a configuration to a Program.

For each step (hilt.schedule.steps) the stream has: its LOADs, the reset of a new tile, the GEMM, after the last
reduction step bias, shift and clip, and the STOREs. Every instruction depends only on earlier ones, so instruction
queues of any depth are enough. What varies from step to step is added to template words; no Python runs per
instruction.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Analysis, Checks, analyse
from hilt.schedule.microops import acc_bases, micro_ops, tile_loops
from hilt.schedule.steps import steps_of
from hilt.schedule.stream import Stream, Words
from hilt.schedule.tiling import IntArray
from hilt.schedule.transfers import Moves, Pads, fold, zeros
from hilt.schedule.tvm_rules import as_tvm
from hilt.schedule.workload import Conv2d
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from hilt.vta.program import Buffer, Program


def lower(
    workload: Conv2d, configuration: Mapping[str, int], accelerator: Accelerator, checks: Checks = "compiler"
) -> Program:
    """The program of this configuration, with buffers `uop`, `inp`, `wgt`, `out` and, if the workload has one, `bias`.

    Raises Rejected, with the reason, where `checks` refuses it, and ConfigurationError for what is no configuration.
    """
    columns = {name: [value] for name, value in configuration.items()}
    analysis = analyse(workload, accelerator, as_tvm(columns) if checks == "tvm" else columns)
    rejection = analysis.rejection(checks)
    if rejection is not None:
        raise rejection
    return _Lowering(analysis).program()


_OUTSIDE = 1 << 16
"""Instead of four pads below 16: the whole box is padding."""


class _Lowering:
    """One lowering: the pieces of the stream are written in the order of a step, then put in place together."""

    def __init__(self, analysis: Analysis) -> None:
        tiling = analysis.tiling
        self.problem = tiling.problem
        self.workload = self.problem.workload
        self.accelerator = self.problem.accelerator
        self.formats = self.accelerator.formats
        self.steps = steps_of(analysis)
        self.loops = tile_loops(analysis)
        self.uops = micro_ops(analysis, self.steps, self.loops)
        self.threads = int(tiling.threads[0])
        self.co_tiles = int(tiling.co_tiles[0])
        self.tile_b, self.tile_h, self.tile_w = (int(size[0]) for size in (tiling.batch, tiling.height, tiling.width))
        self.tile_ci, self.tile_co = int(tiling.ci[0]), int(tiling.co[0])
        self.box_height, self.box_width = int(tiling.box_height[0]), int(tiling.box_width[0])
        self.inp_elements, self.wgt_elements = int(tiling.inp_elements[0]), int(tiling.wgt_elements[0])
        self.acc_bases = acc_bases(analysis)
        self.stream = Stream(len(self.steps.tile), self.formats.instruction_words)

    def program(self) -> Program:
        self._load_inputs()
        self._load_weights()
        self._compute()
        self._store()
        return self._assemble()

    def _load_inputs(self) -> None:
        """Each tile's box, zeros where it reaches past the input. Tiles of the same pads have the same transfers."""
        steps, workload, problem = self.steps, self.workload, self.problem
        row, above, below = self._clip(0, self.tile_h, self.box_height, steps.tile_h)
        column, left, right = self._clip(1, self.tile_w, self.box_width, steps.tile_w)
        plane = workload.height * workload.width
        in_memory = (
            (steps.tile_b * (self.tile_b * problem.ci))[steps.tile] + steps.ci * self.tile_ci
        ) * plane + (row * workload.width + column)[steps.tile]
        outside = (above + below == self.box_height) | (left + right == self.box_width)
        pads_of_tile = np.where(outside, _OUTSIDE, above | below << 4 | left << 8 | right << 12)
        pads_of_step = pads_of_tile[steps.tile]
        for pads in np.unique(pads_of_tile).tolist():
            chosen = np.flatnonzero(steps.inp_load & (pads_of_step == pads))
            words = self._moves(
                (Opcode.LOAD, MemoryType.INP),
                zeros(self.inp_elements) if pads == _OUTSIDE else self._box(pads),
                steps.inp_place[chosen] * self.inp_elements,
                np.zeros_like(chosen) if pads == _OUTSIDE else in_memory[chosen],
            )
            self._set(words, 0, "pop_next", steps.wait_free[chosen])
            self._set(words, -1, "push_next", ~steps.wgt_load[chosen])
            self.stream.add("inp", chosen, words)

    def _box(self, pads: int) -> Moves:
        """The transfers of an input box whose four pads are the digits of `pads`, base 16."""
        above, below, left, right = (pads >> digit & 15 for digit in (0, 4, 8, 12))
        plane = self.workload.height * self.workload.width
        dimensions = [
            (self.tile_b, self.problem.ci * plane),
            (self.tile_ci, plane),
            (self.box_height - above - below, self.problem.row_step * self.workload.width),
            (self.box_width - left - right, 1),
        ]
        return self._fold(dimensions, (above, below), (left, right))

    def _clip(self, axis: int, tile: int, box: int, number: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Of tiles by their number along an axis: the first row (column) of the input in the box, and the pads."""
        workload = self.workload
        step = self.problem.row_step if axis == 0 else 1
        size = (workload.height, workload.width)[axis]
        start = number * (tile * workload.stride[axis]) - workload.padding[axis]
        before = np.clip(-(start // step), 0, box)
        after = np.clip(box + (start - size) // step, 0, box - before)
        return start + before * step, before, after

    def _load_weights(self) -> None:
        steps, taps = self.steps, self.problem.taps
        chosen = np.flatnonzero(steps.wgt_load)
        channel = steps.tile_co[steps.tile[chosen]] * self.tile_co * self.problem.ci + steps.ci[chosen] * self.tile_ci
        words = self._moves(
            (Opcode.LOAD, MemoryType.WGT),
            self._fold([(self.tile_co, self.problem.ci * taps), (self.tile_ci * taps, 1)]),
            steps.wgt_place[chosen] * self.wgt_elements,
            channel * taps,
        )
        self._set(words, 0, "pop_next", steps.wait_free[chosen] & ~steps.inp_load[chosen])
        self._set(words, -1, "push_next", np.ones(len(chosen), dtype=np.bool_))
        self.stream.add("wgt", chosen, words)

    def _compute(self) -> None:
        """Reset, GEMM, and after the last reduction step bias, shift and clip of the whole tile."""
        steps, workload, uops = self.steps, self.workload, self.uops
        rows, columns = self.tile_b * self.tile_co, self.tile_h * self.tile_w
        lanes = np.arange(self.threads)
        whole: dict[str, int | IntArray] = {
            "uop_bgn": lanes,
            "uop_end": lanes + 1,
            "iter_out": rows,
            "iter_in": columns,
            "dst_factor_out": columns if rows > 1 else 0,
            "dst_factor_in": 1 if columns > 1 else 0,
        }

        first = np.flatnonzero(steps.first)
        reset = self._loops(Opcode.GEMM, {**whole, "reset": 1}, self.threads)[steps.lane[first]]
        self._set(reset, 0, "pop_next", steps.reuses[steps.tile[first]])
        self.stream.add("", first, reset)

        sets = {"uop_bgn": uops.gemm_begin, "uop_end": uops.gemm_begin + uops.gemm_uops}
        gemm = self._loops(Opcode.GEMM, {**self.loops.factors, **sets}, len(uops.gemm_begin))[uops.gemm_set]
        self._set(gemm, 0, "pop_prev", steps.inp_load | steps.wgt_load)
        self._set(gemm, 0, "push_prev", steps.signal_free)
        self.stream.add("", np.arange(len(steps.tile)), gemm)

        last = np.flatnonzero(steps.last)
        if workload.bias:
            self.stream.add("", last, self._bias(columns)[steps.lane[last], steps.tile_co[steps.tile[last]]])
        operations = [(AluOpcode.SHR, workload.shift)] if workload.shift else []
        operations += [(AluOpcode.MAX, workload.clip[0]), (AluOpcode.MIN, workload.clip[1])]
        by_lane = [
            self._loops(Opcode.ALU, {**whole, "alu_opcode": int(code), "use_imm": 1, "imm": immediate}, self.threads)
            for code, immediate in operations
        ]
        words = np.concatenate(by_lane, axis=1)[steps.lane[last]]
        self._set(words, -1, "push_next", np.ones(len(last), dtype=np.bool_))
        self.stream.add("", last, words)

    def _bias(self, columns: int) -> Words:
        """The additions of the bias to `columns` pixels, by lane and channel tile: (lanes, co tiles, 1, words)."""
        begin = self.uops.bias_begin + np.arange(self.threads * self.co_tiles) * self.tile_b
        words = self._loops(
            Opcode.ALU,
            {
                "alu_opcode": int(AluOpcode.ADD),
                "uop_bgn": begin,
                "uop_end": begin + self.tile_b,
                "iter_out": self.tile_co,
                "iter_in": columns,
                "dst_factor_out": columns if self.tile_co > 1 else 0,
                "dst_factor_in": 1 if columns > 1 else 0,
                "src_factor_out": 1 if self.tile_co > 1 else 0,
            },
            len(begin),
        )
        return words.reshape(self.threads, self.co_tiles, 1, -1)

    def _store(self) -> None:
        steps, problem = self.steps, self.problem
        last = np.flatnonzero(steps.last)
        tile = steps.tile[last]
        plane = problem.out_height * problem.out_width
        channel = steps.tile_b * self.tile_b * problem.co + steps.tile_co * self.tile_co
        corner = steps.tile_h * self.tile_h * problem.out_width + steps.tile_w * self.tile_w
        dimensions = [
            (self.tile_b, problem.co * plane),
            (self.tile_co, plane),
            (self.tile_h, problem.out_width),
            (self.tile_w, 1),
        ]
        words = self._moves(
            (Opcode.STORE, MemoryType.OUT),
            self._fold(dimensions),
            self.acc_bases[steps.lane[last]],
            (channel * plane + corner)[tile],
        )
        self._set(words, 0, "pop_prev", np.ones(len(last), dtype=np.bool_))
        # The last store of all tells FINISH.
        self._set(words, -1, "push_prev", steps.reused[tile] | (tile == len(steps.tile_b) - 1))
        self.stream.add("out", last, words)

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
            "inp": (MemoryType.INP, problem.batch * problem.ci * plane, parameters.inp_element_bytes),
            "wgt": (MemoryType.WGT, problem.wgt_elements, parameters.wgt_element_bytes),
            "bias": (MemoryType.ACC, problem.bias_elements, parameters.acc_element_bytes),
            "out": (MemoryType.OUT, problem.batch * problem.co * out_plane, parameters.out_element_bytes),
        }
        buffers = tuple(
            Buffer(name, memory, elements * element_bytes, element_bytes, positions[name])
            for name, (memory, elements, element_bytes) in sizes.items()
            if name in positions
        )
        return Program.assemble(self.accelerator, instructions, uops, buffers)

    def _fold(self, dimensions: list[tuple[int, int]], y_pads: Pads = (0, 0), x_pads: Pads = (0, 0)) -> Moves:
        return fold(dimensions, self.formats.memory.by_name["x_stride"].high, y_pads, x_pads)

    def _moves(self, kind: tuple[Opcode, MemoryType], moves: Moves, on_chip: IntArray, in_memory: IntArray) -> Words:
        """LOADs or STOREs (m, moves, words) of boxes that begin at `on_chip` and `in_memory` (m,)."""
        opcode, memory = kind
        constants = {"opcode": int(opcode), "memory_type": self._memory_type(opcode, memory), **moves.fields}
        template = self.formats.memory.pack(constants, 1)
        words = np.empty((len(on_chip), len(moves.sram_offset), self.formats.instruction_words), dtype=np.uint64)
        words[:] = template
        for name, begin in (
            ("sram_base", on_chip[:, None] + moves.sram_offset),
            ("dram_base", in_memory[:, None] + moves.dram_offset),
        ):
            field = self.formats.memory.by_name[name]
            words[:, :, field.word] |= begin.view(np.uint64) << np.uint64(field.bit)
        return words

    def _row(self, memory: MemoryType, elements: int) -> Words:
        """One LOAD of a whole buffer to the start of its memory."""
        columns = {"opcode": int(Opcode.LOAD), "memory_type": int(memory), "y_size": 1, "x_size": elements}
        row: Words = self.formats.memory.pack(columns, 1)[0]
        return row

    def _memory_type(self, opcode: Opcode, memory: MemoryType) -> int:
        """Revision A has no bits for OUT, and a STORE needs none (hilt.vta.isa.encode)."""
        held = self.formats.memory.by_name["memory_type"].high
        return int(memory) & held if opcode is Opcode.STORE else int(memory)

    def _loops(self, opcode: Opcode, columns: Mapping[str, int | IntArray], count: int) -> Words:
        """GEMM or ALU instructions (count, 1, words)."""
        form = self.formats.alu if opcode is Opcode.ALU else self.formats.gemm
        return form.pack({"opcode": int(opcode), **columns}, count)[:, None, :]

    def _set(self, words: Words, position: int, flag: str, where: NDArray[np.bool_]) -> None:
        """Sets a token flag in the instruction at `position` of each of `words` (m, k, words) for which it holds."""
        field = self.formats.memory.by_name[flag]
        words[:, position, field.word] |= where.astype(np.uint64) << np.uint64(field.bit)
