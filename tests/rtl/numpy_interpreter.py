"""VTA's instructions in numpy, one after another in program order: written from HARDWARE.md sections 2 and 3 (and,
where public models differ, TVM_FACTS.md section 3), as a witness against the C++ and the RTL. It decodes with
hilt.vta.isa.

A legal program's result does not depend on how its stages overlap, so program order is as good as any.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType, Opcode, decode, decode_uops
from hilt_runtime.isa import WINDOW_COLUMNS


class NumpyInterpreter:
    """The machine and its memory: uint8 `memory` from byte address `base` on, changed in place."""

    def __init__(self, accelerator: Accelerator, base: int, memory: NDArray[np.uint8]) -> None:
        self.accelerator, self.base, self.memory = accelerator, base, memory
        parameters = accelerator.parameters
        batch, block = parameters.batch, parameters.block
        no_uops = np.zeros((accelerator.uop_depth, accelerator.uop_element_bytes // 4), np.uint32)
        self.uop = decode_uops(no_uops, accelerator)
        self.inp = np.zeros((parameters.inp_depth, batch, block), np.int8)
        self.wgt = np.zeros((parameters.wgt_depth, block, block), np.int8)
        self.acc = np.zeros((parameters.acc_depth, batch, block), np.int32)
        self.out = np.zeros((parameters.acc_depth, batch, block), np.int8)
        self.table = np.zeros(256, np.int8)

    def run(self, insn_addr: int, insn_count: int) -> None:
        """Instructions up to FINISH."""
        size = insn_count * self.accelerator.instruction_bytes
        words = self._bytes(insn_addr, size).view(np.uint64).reshape(insn_count, -1)
        for record in decode(words, self.accelerator):
            if record["opcode"] == Opcode.FINISH:
                return
            self.execute(record)

    def execute(self, record: np.void) -> None:
        """One instruction, its tokens left out."""
        fields = {name: int(record[name]) for name in record.dtype.names or ()}
        match fields["opcode"]:
            case Opcode.LOAD:
                self._load(fields)
            case Opcode.STORE:
                self._store(fields)
            case Opcode.GEMM:
                self._gemm(fields)
            case Opcode.ALU:
                self._alu(fields)

    def _bytes(self, address: int, count: int) -> NDArray[np.uint8]:
        start = address - self.base
        assert 0 <= start <= start + count <= len(self.memory), hex(address)
        return self.memory[start : start + count]

    def _load(self, f: dict[str, int]) -> None:
        match f["memory_type"]:
            case MemoryType.UOP:
                element = self.accelerator.uop_element_bytes
                if f["x_size"]:
                    raw = self._bytes(f["dram_base"] * element, f["x_size"] * element)
                    words = raw.view(np.uint32).reshape(f["x_size"], element // 4)
                    self.uop[f["sram_base"] :][: f["x_size"]] = decode_uops(words, self.accelerator)
            case MemoryType.WGT:
                self._load_block({**f, "x_pad_0": 0, "x_pad_1": 0, "y_pad_0": 0, "y_pad_1": 0}, self.wgt, np.int8)
            case MemoryType.INP:
                self._load_block(f, self.inp, np.int8)
            case MemoryType.ACC:
                self._load_block(f, self.acc, np.int32)
            case MemoryType.ACC_8BIT:
                self._load_block(f, self.acc, np.int8)

    def _load_block(self, f: dict[str, int], buffer: NDArray[np.int8] | NDArray[np.int32], dtype: type) -> None:
        shape = buffer.shape[1:]
        height = f["y_pad_0"] + f["y_size"] + f["y_pad_1"]
        width = f["x_pad_0"] + f["x_size"] + f["x_pad_1"]
        block = np.zeros((height, width, *shape), dtype)
        if f["x_size"]:
            for y in range(f["y_size"]):
                row = block[f["y_pad_0"] + y, f["x_pad_0"] : f["x_pad_0"] + f["x_size"]]
                element = row[0].nbytes
                raw = self._bytes((f["dram_base"] + y * f["x_stride"]) * element, f["x_size"] * element)
                row[...] = raw.view(dtype).reshape(row.shape)
        assert f["sram_base"] + height * width <= len(buffer) or height * width == 0
        target, flat = buffer[f["sram_base"] :][: height * width], block.reshape(height * width, *shape)
        if not f["lane_shift"] and not f["lanes_kept"]:
            target[...] = flat
            return
        for lane in range(shape[0]):
            source = lane + (0, 1, 2, -1)[f["lane_shift"]]
            if not f["lanes_kept"] >> lane & 1:
                target[:, lane] = flat[:, source] if 0 <= source < shape[0] else 0

    def _store(self, f: dict[str, int]) -> None:
        element = self.out[0].nbytes
        tabled = self.accelerator.table and f["memory_type"] >= MemoryType.OUT_BY_TABLE
        if tabled and f["memory_type"] == MemoryType.TABLE:
            assert f["y_size"] == 1 and f["x_size"] == max(1, 256 // element)
            self.table[:] = self.out[f["sram_base"] : f["sram_base"] + f["x_size"]].ravel()[:256]
            return
        for y in range(f["y_size"] if f["x_size"] else 0):
            first = f["sram_base"] + y * f["x_size"]
            row = self.out[first : first + f["x_size"]]
            if tabled:
                row = self.table[row.view(np.uint8)]
            self._bytes((f["dram_base"] + y * f["x_stride"]) * element, row.nbytes)[:] = row.view(np.uint8).ravel()

    def _gemm(self, f: dict[str, int]) -> None:
        if f["window"]:
            self._window(f)
            return
        for dst, src, wgt in self._indices(f, ("dst", "src", "wgt")):
            product_sum = self.inp[src].astype(np.int32) @ self.wgt[wgt].astype(np.int32).T
            total = self.acc[dst] + product_sum
            self.out[dst] = total.astype(np.int8)
            self.acc[dst] = 0 if f["reset"] else total

    def _window(self, f: dict[str, int]) -> None:
        """As docs/architecture.md has it: pixels first, then the taps of each."""
        assert f["uop_end"] == f["uop_bgn"] + 1
        dst, src, wgt = (int(self.uop[f["uop_bgn"]][name]) for name in ("dst", "src", "wgt"))
        batch, block = self.inp.shape[1:]
        rows, columns = f["iter_out"], f["iter_in"]
        places = np.arange(rows)[:, None] * f["src_factor_out"] + np.arange(columns) * f["src_factor_in"]
        image = self.inp[src + places].astype(np.int32)  # (rows, columns, batch, block)
        lanes = np.zeros((block // 2, 2, rows, columns, batch, block), np.int32)
        for pair in range(block // 2):
            row, column = divmod(pair, WINDOW_COLUMNS)
            if row >= self.accelerator.window_rows:
                lanes[pair] = 1 if row == self.accelerator.window_rows and column == 0 else -128
                continue
            moved = np.zeros_like(image)
            if row < rows and column < columns:
                moved[row:, column:] = image[: rows - row, : columns - column]
            for parity in range(2):
                lanes[pair, parity] = np.repeat(moved[..., parity::2], 2, axis=-1)
        sums = np.einsum("ipyxbo,oip->yxbo", lanes, self.wgt[wgt].astype(np.int32).reshape(block, block // 2, 2))
        for row in range(f["wgt_factor_out"], rows):
            for column in range(f["wgt_factor_in"], columns):
                place = dst + row * f["dst_factor_out"] + column * f["dst_factor_in"]
                self.acc[place] = sums[row, column] + (0 if f["reset"] else self.acc[place])
                self.out[place] = self.acc[place].astype(np.int8)

    def _alu(self, f: dict[str, int]) -> None:
        for dst, src in self._indices(f, ("dst", "src")):
            left = self.acc[dst].astype(np.int64)
            right = np.full_like(left, f["imm"]) if f["use_imm"] else self.acc[src].astype(np.int64)
            self.acc[dst] = self._operate(AluOpcode(f["alu_opcode"]), left, right).astype(np.int32)
            self.out[dst] = self.acc[dst].astype(np.int8)

    @staticmethod
    def _operate(operation: AluOpcode, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        match operation:
            case AluOpcode.MIN:
                return np.minimum(left, right)
            case AluOpcode.MAX:
                return np.maximum(left, right)
            case AluOpcode.ADD:
                return left + right
            case AluOpcode.MUL:
                return left * right
            case AluOpcode.SHR:
                amount = ((right & 31) ^ 16) - 16
                return np.where(amount >= 0, left >> np.maximum(amount, 0), left << np.maximum(-amount, 0))

    def _indices(self, f: dict[str, int], names: tuple[str, ...]) -> list[tuple[int, ...]]:
        """The index of every buffer for every micro-op, in order."""
        uops = [tuple(int(uop[name]) for name in names) for uop in self.uop[f["uop_bgn"] : f["uop_end"]]]
        return [
            tuple(
                index + out * f[f"{name}_factor_out"] + inner * f[f"{name}_factor_in"]
                for name, index in zip(names, uop, strict=True)
            )
            for out, inner, uop in product(range(f["iter_out"]), range(f["iter_in"]), uops)
        ]
