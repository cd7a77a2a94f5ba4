"""An instruction stream of templates: instruction words that occur at many places on chip and in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hilt.schedule.stream import Words
from hilt.schedule.tiling import IntArray, TilingProblem
from hilt.schedule.transfers import DmaTransfers
from hilt.vta.fields import Field, Format
from hilt.vta.isa import MemoryType, Opcode, uop_words
from hilt.vta.program import Buffer, Program


@dataclass(frozen=True, eq=False)
class Moves:
    """The LOADs or STOREs of one box: their template, and offsets of each on chip and in memory."""

    template: int
    offsets: tuple[tuple[int, int], ...]


class RowStream:
    """Instructions in order, and the micro-ops that they name. With `wrap`, fields keep their low bits.

    `pop_prev`, `pop_next`, `push_prev` and `push_next` are the flags of dependence tokens, as bits of word 0.
    """

    def __init__(self, problem: TilingProblem, wrap: bool) -> None:
        self._problem, self._accelerator, self._wrap = problem, problem.accelerator, wrap
        memory = self._accelerator.formats.memory
        self._memory = memory
        self.pop_prev, self.pop_next, self.push_prev, self.push_next = (
            1 << memory.by_name[name].bit for name in ("pop_prev", "pop_next", "push_prev", "push_next")
        )
        self._templates: list[list[int]] = []
        self._made: list[tuple[int, int, int, int]] = []
        self._owners: dict[str, list[int]] = {name: [] for name in ("uop", "inp", "wgt", "bias", "out")}
        self._uops: list[tuple[IntArray, IntArray, IntArray]] = []
        self._uop_count = 0

    def template(self, form: Format, values: Mapping[str, int]) -> int:
        """Return the number of an instruction without tokens and places."""
        self._templates.append(form.words_of(values, self._wrap))
        return len(self._templates) - 1

    def moves(self, memory_type: MemoryType, moves: DmaTransfers) -> Moves:
        """Return the LOADs, or STOREs of OUT, of one box."""
        out = memory_type is MemoryType.OUT
        # Revision A has no bits for OUT, and a STORE needs none (hilt.vta.isa.encode).
        kind = int(memory_type) & self._memory.by_name["memory_type"].high if out else int(memory_type)
        sizes = {name: int(values[0]) for name, values in moves.fields.items()}
        opcode = int(Opcode.STORE if out else Opcode.LOAD)
        template = self.template(self._memory, {"opcode": opcode, "memory_type": kind, **sizes})
        return Moves(template, tuple(zip(moves.sram_offset.tolist(), moves.dram_offset.tolist(), strict=True)))

    def micro_ops(self, dst: IntArray, src: IntArray, wgt: IntArray) -> dict[str, int]:
        """Add micro-ops (m,); return the fields that name them."""
        begin = self._uop_count
        self._uops.append((dst, src, wgt))
        self._uop_count += len(dst)
        return {"uop_bgn": begin, "uop_end": self._uop_count}

    def load_whole(self, name: str, memory_type: MemoryType, elements: int) -> None:
        """Add a LOAD of a whole buffer to the start of its memory."""
        values = {"opcode": int(Opcode.LOAD), "memory_type": int(memory_type), "y_size": 1, "x_size": elements}
        self._owners[name].append(len(self._made))
        self.add(self.template(self._memory, values))

    def move(self, name: str, moves: Moves, on_chip: int, in_memory: int, first: int, last: int) -> None:
        """Add the moves of a box of buffer `name`; the first and the last have these flags."""
        for number, (here, there) in enumerate(moves.offsets):
            flags = (first if number == 0 else 0) | (last if number == len(moves.offsets) - 1 else 0)
            self._owners[name].append(len(self._made))
            self._made.append((moves.template, flags, on_chip + here, in_memory + there))

    def add(self, template: int, flags: int = 0) -> None:
        """Add an instruction that names no place."""
        self._made.append((template, flags, 0, 0))

    def program(self) -> Program:
        """Return the program; its first instruction loads all micro-ops."""
        form = self._accelerator.formats.uop
        columns = (np.concatenate(parts) for parts in zip(*self._uops, strict=True))
        packed = form.pack(dict(zip(("dst", "src", "wgt"), columns, strict=True)), self._uop_count, self._wrap)
        return Program.assemble(
            self._accelerator, self._words(), uop_words(packed, self._accelerator), tuple(self._buffers())
        )

    def _words(self) -> Words:
        first = self._memory.words_of(
            {
                **{"opcode": int(Opcode.LOAD), "memory_type": int(MemoryType.UOP)},
                **{"y_size": 1, "x_size": self._uop_count},
            },
            self._wrap,
        )
        made = np.array(self._made, dtype=np.int64)
        words = np.array(self._templates, dtype=np.uint64).take(made[:, 0], axis=0)
        words[:, 0] |= made[:, 1].view(np.uint64)
        for name, column in (("sram_base", 2), ("dram_base", 3)):
            self._put(words, self._memory.by_name[name], made[:, column])
        return np.concatenate((np.array([first], dtype=np.uint64), words))

    def _put(self, words: Words, field: Field, values: IntArray) -> None:
        bits = (values & field.mask if self._wrap else values).astype(np.uint64)
        words[:, field.word] |= bits << np.uint64(field.bit)

    def _buffers(self) -> list[Buffer]:
        problem, parameters = self._problem, self._accelerator.parameters
        plane = problem.workload.height * problem.workload.width
        out_plane = problem.out_height * problem.out_width
        uop_bytes = self._accelerator.uop_element_bytes
        sizes = {
            "uop": (MemoryType.UOP, self._uop_count, uop_bytes),
            "inp": (MemoryType.INP, problem.batch * problem.all_ci * plane, parameters.inp_element_bytes),
            "wgt": (MemoryType.WGT, problem.wgt_elements, parameters.wgt_element_bytes),
            "bias": (MemoryType.ACC, problem.bias_elements, parameters.acc_element_bytes),
            "out": (MemoryType.OUT, problem.batch * problem.all_co * out_plane, parameters.out_element_bytes),
        }
        owners = {**self._owners, "uop": [-1]}
        return [
            Buffer(name, memory, elements * size, size, np.array(owners[name], dtype=np.int64) + 1)
            for name, (memory, elements, size) in sizes.items()
            if elements
        ]
