"""An instruction stream as TVM's runtime writes it: pops ride on a stage's next instruction, pushes on its last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilt.silicon.packed_task import TaskError
from hilt.silicon.tvm_blocks import Block
from hilt.silicon.tvm_nest import TvmKernel
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from hilt.vta.program import Buffer, Program

LOAD, COMPUTE, STORE = "load", "compute", "store"
_PREVIOUS = {COMPUTE: LOAD, STORE: COMPUTE}
_EMPTY = {
    LOAD: (Opcode.LOAD, MemoryType.INP),
    COMPUTE: (Opcode.LOAD, MemoryType.UOP),
    STORE: (Opcode.STORE, MemoryType.OUT),
}
"""The instruction that moves nothing, by stage."""
_BUFFERS = {"inp": MemoryType.INP, "wgt": MemoryType.WGT, "out": MemoryType.OUT}


class TvmStream:
    """Instructions in the order of their making, with the micro-op kernels that they use."""

    def __init__(self, accelerator: Accelerator) -> None:
        """Begin an empty stream in the accelerator's encoding."""
        self.accelerator = accelerator
        self._fields: list[dict[str, int]] = []
        self._pending: dict[str, set[str]] = {LOAD: set(), COMPUTE: set(), STORE: set()}
        self._last: dict[str, int | None] = {LOAD: None, COMPUTE: None, STORE: None}
        self._uops: list[tuple[int, int, int]] = []
        self._kernels: dict[tuple[str, int], tuple[TvmKernel, int]] = {}
        self._on_chip: dict[tuple[str, int], tuple[int, int]] = {}
        self._free = 0

    def pop(self, stage: str, source: str) -> None:
        """Let the stage's next instruction wait for a token from a neighbour."""
        name = "pop_prev" if _PREVIOUS.get(stage) == source else "pop_next"
        if name in self._pending[stage]:
            self._add_empty(stage)
        self._pending[stage].add(name)

    def push(self, stage: str, target: str) -> None:
        """Let the stage's last instruction send a token to a neighbour."""
        name = "push_prev" if _PREVIOUS.get(stage) == target else "push_next"
        last = self._last[stage]
        if last is None or self._pending[stage] or self._fields[last].get(name):
            last = self._add_empty(stage)
        self._fields[last][name] = 1

    def load(self, name: str, block: Block, on_chip: int, in_memory: int) -> None:
        """Add a LOAD of `inp` or `wgt`."""
        top, bottom, left, right = block.pads
        pads = {"y_pad_0": top, "y_pad_1": bottom, "x_pad_0": left, "x_pad_1": right}
        self._add(LOAD, {"opcode": Opcode.LOAD, **_transfer(_BUFFERS[name], block, on_chip, in_memory), **pads})

    def store(self, block: Block, on_chip: int, in_memory: int) -> None:
        """Add a STORE of `out`."""
        self._add(STORE, {"opcode": Opcode.STORE, **_transfer(MemoryType.OUT, block, on_chip, in_memory)})

    def gemm(self, name: tuple[str, int], kernel: TvmKernel, *, reset: bool = False) -> None:
        """Add a GEMM of a kernel, which is loaded where it is not on chip."""
        weights = {"wgt_factor_out": kernel.outer.wgt, "wgt_factor_in": kernel.inner.wgt}
        self._execute(name, kernel, {"opcode": Opcode.GEMM, "reset": int(reset), **weights})

    def alu(self, name: tuple[str, int], kernel: TvmKernel, operation: AluOpcode, immediate: int) -> None:
        """Add an ALU instruction with an immediate."""
        fields = {"opcode": Opcode.ALU, "alu_opcode": operation, "use_imm": 1, "imm": immediate}
        self._execute(name, kernel, fields)

    def finish(self) -> None:
        """Wait for the pending tokens and end."""
        for stage in (LOAD, STORE):
            if self._pending[stage]:
                self._add_empty(stage)
        self._add(COMPUTE, {"opcode": Opcode.FINISH})

    def program(self, sizes: dict[str, int]) -> Program:
        """Return the program; `sizes` are the bytes of buffers `inp`, `wgt` and `out`."""
        names = INSTRUCTION.names or ()
        records: NDArray[np.void] = np.zeros(len(self._fields), dtype=INSTRUCTION)
        for name in names:
            records[name] = [fields.get(name, 0) for fields in self._fields]
        uops = np.array(self._uops, dtype=np.int64).reshape(-1, 3)
        micro_ops = np.zeros(len(uops), dtype=UOP)
        for column, name in enumerate(UOP.names or ()):
            micro_ops[name] = uops[:, column]
        words = encode_uops(micro_ops, self.accelerator)
        parameters = self.accelerator.parameters
        elements = {
            "uop": self.accelerator.uop_element_bytes,
            "inp": parameters.inp_element_bytes,
            "wgt": parameters.wgt_element_bytes,
            "out": parameters.out_element_bytes,
        }
        moving = records["x_size"] > 0
        buffers = []
        for name, memory_type in (("uop", MemoryType.UOP), *_BUFFERS.items()):
            opcode = Opcode.STORE if name == "out" else Opcode.LOAD
            moves = moving & (records["opcode"] == opcode) & (records["memory_type"] == memory_type)
            size = words.nbytes if name == "uop" else sizes[name]
            buffers.append(Buffer(name, memory_type, size, elements[name], np.flatnonzero(moves)))
        return Program.assemble(self.accelerator, encode(records, self.accelerator), words, tuple(buffers))

    def _execute(self, name: tuple[str, int], kernel: TvmKernel, fields: dict[str, int]) -> None:
        begin, end = self._kernel(name, kernel)
        loops = {
            "uop_bgn": begin,
            "uop_end": end,
            "iter_out": kernel.outer.extent,
            "iter_in": kernel.inner.extent,
            "dst_factor_out": kernel.outer.dst,
            "dst_factor_in": kernel.inner.dst,
            "src_factor_out": kernel.outer.src,
            "src_factor_in": kernel.inner.src,
        }
        self._add(COMPUTE, {**fields, **loops})

    def _kernel(self, name: tuple[str, int], kernel: TvmKernel) -> tuple[int, int]:
        """Return the first and last micro-op of the kernel on chip; load them on a miss. The oldest are overwritten."""
        if name in self._on_chip:
            return self._on_chip[name]
        count = len(kernel.uops)
        if count > self.accelerator.uop_depth:
            raise TaskError(f"a kernel of {count} micro-ops; the buffer holds {self.accelerator.uop_depth}")
        if name not in self._kernels:
            self._kernels[name] = (kernel, len(self._uops))
            self._uops.extend(kernel.uops)
        if self._free + count > self.accelerator.uop_depth:
            self._free = 0
        begin, end = self._free, self._free + count
        self._free = end
        self._on_chip = {key: at for key, at in self._on_chip.items() if at[1] <= begin or at[0] >= end}
        self._on_chip[name] = (begin, end)
        block = Block(1, count, count)
        self._add(COMPUTE, {"opcode": Opcode.LOAD, **_transfer(MemoryType.UOP, block, begin, self._kernels[name][1])})
        return begin, end

    def _add_empty(self, stage: str) -> int:
        opcode, memory_type = _EMPTY[stage]
        return self._add(stage, {"opcode": opcode, "memory_type": memory_type})

    def _add(self, stage: str, fields: dict[str, int]) -> int:
        self._fields.append({**fields, **dict.fromkeys(self._pending[stage], 1)})
        self._pending[stage].clear()
        self._last[stage] = len(self._fields) - 1
        return len(self._fields) - 1


def _transfer(memory_type: MemoryType, block: Block, on_chip: int, in_memory: int) -> dict[str, int]:
    return {
        "memory_type": memory_type,
        "sram_base": on_chip,
        "dram_base": in_memory,
        "y_size": block.y_size,
        "x_size": block.x_size,
        "x_stride": block.x_stride,
    }
