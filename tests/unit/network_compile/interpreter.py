"""VTA's instructions by numpy, one after another: a program's results, without a compiler for the golden model.

It is written after HARDWARE.md, apart from the golden model and the RTL, and has neither time nor tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.program_run import place
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType, Opcode, decode, decode_uops
from hilt.vta.program import Program

_BASE = 0x1000_0000


def interpreted(program: Program, inputs: Mapping[str, NDArray[Any]], accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the bytes of buffer `out` as int8 after the program has ended. Every access must be within its buffer."""
    addresses, end = place(program, _BASE)
    memory = np.full(end - _BASE, 0x5A, dtype=np.uint8)
    for name, array in {**inputs, "uop": program.uops}.items():
        start = addresses[name] - _BASE
        memory[start : start + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).ravel()
    words = program.relocated({name: address for name, address in addresses.items() if name != "insn"})
    machine = _Machine(accelerator, memory)
    for record in decode(words, accelerator):
        machine.execute({name: int(record[name]) for name in record.dtype.names})
    assert machine.finished
    start = addresses["out"] - _BASE
    return memory[start : start + program.buffer("out").bytes].view(np.int8).copy()


class _Machine:
    def __init__(self, accelerator: Accelerator, memory: NDArray[np.uint8]) -> None:
        parameters = accelerator.parameters
        batch, block = parameters.batch, parameters.block
        self._accelerator, self._memory = accelerator, memory
        # Nothing clears the buffers before a program.
        self._inp = np.full((parameters.inp_depth, batch, block), 85, np.int8)
        self._wgt = np.full((parameters.wgt_depth, block, block), -86, np.int8)
        self._acc = np.full((parameters.acc_depth, batch, block), 123_456_789, np.int32)
        self._uop = np.zeros((accelerator.uop_depth, accelerator.uop_element_bytes // 4), np.uint32)
        self.finished = False

    def execute(self, fields: dict[str, int]) -> None:
        assert not self.finished
        act = {Opcode.LOAD: self._load, Opcode.STORE: self._store, Opcode.GEMM: self._gemm, Opcode.ALU: self._alu}
        if fields["opcode"] == Opcode.FINISH:
            self.finished = True
        else:
            act[Opcode(fields["opcode"])](fields)

    def _bytes(self, fields: dict[str, int], row: int, element: int) -> NDArray[np.uint8]:
        start = (fields["dram_base"] + row * fields["x_stride"]) * element - _BASE
        assert 0 <= start <= start + fields["x_size"] * element <= len(self._memory)
        return self._memory[start : start + fields["x_size"] * element]

    def _load(self, fields: dict[str, int]) -> None:
        kind = MemoryType(fields["memory_type"])
        buffer, moved = {
            MemoryType.INP: (self._inp, np.int8),
            MemoryType.WGT: (self._wgt, np.int8),
            MemoryType.ACC: (self._acc, np.int32),
            MemoryType.ACC_8BIT: (self._acc, np.int8),
            MemoryType.UOP: (self._uop, np.uint32),
        }[kind]
        element = int(np.prod(buffer.shape[1:])) * np.dtype(moved).itemsize
        width = fields["x_pad_0"] + fields["x_size"] + fields["x_pad_1"]
        height = fields["y_pad_0"] + fields["y_size"] + fields["y_pad_1"]
        first = fields["sram_base"]
        assert first + height * width <= len(buffer), kind.name
        buffer[first : first + height * width] = 0
        for row in range(fields["y_size"]):
            to = first + (fields["y_pad_0"] + row) * width + fields["x_pad_0"]
            values = self._bytes(fields, row, element).view(moved)
            buffer[to : to + fields["x_size"]] = values.reshape(fields["x_size"], *buffer.shape[1:])

    def _store(self, fields: dict[str, int]) -> None:
        assert fields["memory_type"] == MemoryType.OUT
        element = int(np.prod(self._acc.shape[1:]))
        for row in range(fields["y_size"]):
            first = fields["sram_base"] + row * fields["x_size"]
            assert first + fields["x_size"] <= len(self._acc)
            values = self._acc[first : first + fields["x_size"]].astype(np.int8)
            self._bytes(fields, row, element)[:] = values.view(np.uint8).ravel()

    def _places(self, fields: dict[str, int]) -> tuple[NDArray[np.int64], ...]:
        """Return the operands of each step, in order."""
        uops = decode_uops(self._uop[fields["uop_bgn"] : fields["uop_end"]], self._accelerator)
        assert len(uops) == max(fields["uop_end"] - fields["uop_bgn"], 0)
        out, inner, number = np.indices((fields["iter_out"], fields["iter_in"], len(uops))).reshape(3, -1)

        def of(name: str) -> NDArray[np.int64]:
            return np.asarray(
                uops[name].astype(np.int64)[number]
                + out * fields[f"{name}_factor_out"] + inner * fields[f"{name}_factor_in"]
            )  # fmt: skip

        return of("dst"), of("src"), of("wgt")

    def _gemm(self, fields: dict[str, int]) -> None:
        assert not fields["window"]
        dst, src, wgt = self._places(fields)
        assert dst.max(initial=0) < len(self._acc)
        if fields["reset"]:
            self._acc[dst] = 0
            return
        assert src.max(initial=0) < len(self._inp) and wgt.max(initial=0) < len(self._wgt)
        products = np.einsum("nbi,noi->nbo", self._inp[src].astype(np.int64), self._wgt[wgt].astype(np.int64))
        np.add.at(self._acc, dst, products.astype(np.int32))

    def _alu(self, fields: dict[str, int]) -> None:
        dst, src, _ = self._places(fields)
        assert dst.max(initial=0) < len(self._acc)
        assert fields["use_imm"] or src.max(initial=0) < len(self._acc)
        if len(np.unique(dst)) == len(dst) and (fields["use_imm"] or not np.isin(src, dst).any()):
            self._combine(fields, dst, src)
            return
        for to, source in zip(dst, src, strict=True):
            self._combine(fields, np.array([to]), np.array([source]))

    def _combine(self, fields: dict[str, int], dst: NDArray[np.int64], src: NDArray[np.int64]) -> None:
        left = self._acc[dst].astype(np.int64)
        right = np.int64(fields["imm"]) if fields["use_imm"] else self._acc[src].astype(np.int64)
        operation = AluOpcode(fields["alu_opcode"])
        if operation is AluOpcode.SHR:
            amount = ((right & 31) ^ 16) - 16
            result = np.where(amount >= 0, left >> np.maximum(amount, 0), left << np.maximum(-amount, 0))
        else:
            result = {
                AluOpcode.MIN: np.minimum, AluOpcode.MAX: np.maximum, AluOpcode.ADD: np.add, AluOpcode.MUL: np.multiply,
            }[operation](left, right)  # fmt: skip
        self._acc[dst] = result.astype(np.int64).astype(np.int32)
