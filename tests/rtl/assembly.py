"""Small programs for tests: instructions by field names, run on a model with given pieces of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, MemoryType, Opcode, encode, encode_uops

Fields = dict[str, int]

BASE = 0x10_0000
INSN, UOP_POOL, DATA, RESULT = BASE, BASE + 0x1_0000, BASE + 0x2_0000, BASE + 0x8_0000
MEMORY_BYTES = 0x10_0000


@dataclass(frozen=True)
class Finished:
    """A run's `execution` and the memory that it left, uint8 from BASE on."""

    execution: Execution
    memory: NDArray[np.uint8]

    def read(self, address: int, count: int) -> NDArray[np.uint8]:
        return self.memory[address - BASE : address - BASE + count]


def load(
    memory_type: MemoryType, sram: int, dram: int, y: int, x: int, stride: int | None = None, **more: int
) -> Fields:
    return _transfer(Opcode.LOAD, memory_type, sram, dram, y, x, stride) | more


def store(sram: int, dram: int, y: int, x: int, stride: int | None = None, **more: int) -> Fields:
    return _transfer(Opcode.STORE, MemoryType.OUT, sram, dram, y, x, stride) | more


def store_by_table(sram: int, dram: int, y: int, x: int, stride: int | None = None, **more: int) -> Fields:
    return _transfer(Opcode.STORE, MemoryType.OUT_BY_TABLE, sram, dram, y, x, stride) | more


def fill_table(sram: int, x: int, y: int = 1, **more: int) -> Fields:
    """Write `out` to the table. Its place in memory is nowhere."""
    return _transfer(Opcode.STORE, MemoryType.TABLE, sram, 0xFFFF_FFFF, y, x, None) | more


def gemm(bgn: int, end: int, out: int = 1, inner: int = 1, **more: int) -> Fields:
    return {"opcode": Opcode.GEMM, "uop_bgn": bgn, "uop_end": end, "iter_out": out, "iter_in": inner} | more


def window(uop: int, out: int, inner: int, skip: tuple[int, int] = (0, 0), **more: int) -> Fields:
    """Return a window GEMM that does not write the first rows and columns."""
    skips = {"window": 1, "wgt_factor_out": skip[0], "wgt_factor_in": skip[1]}
    return gemm(uop, uop + 1, out, inner, **skips) | more


def alu(operation: int, bgn: int, end: int, out: int = 1, inner: int = 1, **more: int) -> Fields:
    loops = {"uop_bgn": bgn, "uop_end": end, "iter_out": out, "iter_in": inner}
    return {"opcode": Opcode.ALU, "alu_opcode": operation} | loops | more


def finish(**more: int) -> Fields:
    return {"opcode": Opcode.FINISH} | more


def words(accelerator: Accelerator, instructions: Sequence[Fields]) -> NDArray[np.uint64]:
    records = np.zeros(len(instructions), dtype=INSTRUCTION)
    for number, fields in enumerate(instructions):
        for name, value in fields.items():
            records[name][number] = value
    return encode(records, accelerator)


def micro_ops(accelerator: Accelerator, *uops: tuple[int, int, int]) -> bytes:
    """Micro-ops (dst, src, wgt) as they lie in memory."""
    return encode_uops(np.array(list(uops), dtype=UOP), accelerator).tobytes()


def run(
    library: Path,
    accelerator: Accelerator,
    instructions: Sequence[Fields] | NDArray[np.uint64],
    contents: Mapping[int, bytes] | None = None,
    *,
    max_cycles: int = 1_000_000,
) -> Finished:
    """Runs instructions with `contents` at byte addresses; all other memory is zero."""
    encoded = instructions if isinstance(instructions, np.ndarray) else words(accelerator, instructions)
    with SimulatedDevice(library, MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(INSN, encoded)
        for address, shard in (contents or {}).items():
            device.write_memory(address, shard)
        execution = execute(device, INSN, len(encoded), max_cycles)
        return Finished(execution, device.memory.copy())


def _transfer(
    opcode: Opcode, memory_type: MemoryType, sram: int, dram: int, y: int, x: int, stride: int | None
) -> Fields:
    return {
        **{"opcode": opcode, "memory_type": memory_type, "sram_base": sram, "dram_base": dram},
        **{"y_size": y, "x_size": x, "x_stride": x if stride is None else stride},
    }
