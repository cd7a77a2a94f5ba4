"""A toy operator in one file, as docs/how-to/new-operator.md describes: 2 x 2 average pooling of int32 on VTA's ALU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from hilt.schedule import Rejected, Space, Tensors, WorkloadError
from hilt.schedule.checks import Checks
from hilt.schedule.reasons import Reason, detail
from hilt.schedule.segments import IntArray
from hilt.schedule.space import Knob, Orders, SpaceKind, factors
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops
from hilt.vta.layout import blocks, pack_data
from hilt.vta.program import Buffer, Program


@dataclass(frozen=True)
class AveragePool:
    """`average_pool:ci=64,h=8,w=8`: a quarter of each four neighbours' sum, rounded down, as int8."""

    name: str
    channels: int
    height: int
    width: int
    operator: str = "average_pool"

    @property
    def macs(self) -> int:
        return self.channels * self.height * self.width

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return 1, self.channels, self.height // 2, self.width // 2

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


class AveragePoolOperator:
    def parse(self, text: str, arguments: str) -> AveragePool:
        try:
            values = {key: int(value) for key, _, value in (part.partition("=") for part in arguments.split(","))}
            return AveragePool(text, values.pop("ci"), values.pop("h"), values.pop("w"))
        except (ValueError, KeyError) as error:
            raise WorkloadError(f"workload {text}: needs ci, h and w") from error

    def from_dict(self, values: Mapping[str, object]) -> AveragePool:
        return AveragePool(**values)  # type: ignore[arg-type]

    def format(self, workload: AveragePool) -> str:
        return f"average_pool:ci={workload.channels},h={workload.height},w={workload.width}"

    def space(self, workload: AveragePool, accelerator: Accelerator, orders: Orders, kind: SpaceKind) -> Space:
        return Space([Knob("tile_h", factors(workload.height // 2), split=True)])

    def verdicts(
        self, workload: AveragePool, accelerator: Accelerator, columns: Mapping[str, ArrayLike], checks: Checks
    ) -> IntArray:
        fits = _elements(workload, np.asarray(columns["tile_h"])) <= accelerator.parameters.acc_depth
        return np.where(fits, Reason.OK, Reason.ACC_OVERFLOW).astype(np.int64)

    def lower_many(
        self, workload: AveragePool, accelerator: Accelerator, columns: Mapping[str, ArrayLike], checks: Checks
    ) -> Iterator[Program | Rejected]:
        tiles = np.asarray(columns["tile_h"]).tolist()
        for tile, verdict in zip(tiles, self.verdicts(workload, accelerator, columns, checks), strict=True):
            if verdict:
                need, limit = int(_elements(workload, np.array(tile))), accelerator.parameters.acc_depth
                yield Rejected(Reason(verdict).text, detail(Reason(verdict), need, limit))
            else:
                yield _program(workload, accelerator, tile)

    def tensors(self, workload: AveragePool, accelerator: Accelerator, seed: int) -> Tensors:
        shape = (1, workload.channels, workload.height, workload.width)
        data = np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int32)
        sums = data[:, :, ::2, ::2] + data[:, :, 1::2, ::2] + data[:, :, ::2, 1::2] + data[:, :, 1::2, 1::2]
        expected = (sums >> 2).clip(-128, 127).astype(np.int8)
        parameters = accelerator.parameters
        return Tensors({"acc": pack_data(data, parameters)}, pack_data(expected, parameters))

    def bound_cycles(self, workload: AveragePool, accelerator: Accelerator, bytes_per_cycle: float | None) -> int:
        elements = blocks(workload.channels, accelerator.parameters.block) * workload.height * workload.width
        return int(elements * accelerator.parameters.acc_element_bytes // (bytes_per_cycle or accelerator.bus_bits / 8))


AVERAGE_POOL = AveragePoolOperator()


def _elements(workload: AveragePool, tile: IntArray) -> IntArray:
    """Return the accumulators of a tile: 2 x 2 inputs and one sum for each output."""
    sums: IntArray = 5 * tile * (workload.width // 2)
    return sums


def _program(workload: AveragePool, accelerator: Accelerator, tile: int) -> Program:
    """Load each tile, add the four neighbours behind it, shift, clip and store; one tile after another."""
    out_height, out_width, width = workload.height // 2, workload.width // 2, workload.width
    sums, parameters = 2 * tile * width, accelerator.parameters
    channels = blocks(workload.channels, parameters.block)
    code: list[dict[str, int]] = [{"opcode": Opcode.LOAD, "memory_type": MemoryType.UOP, "y_size": 1, "x_size": 5}]
    loads, stores = [], []
    whole = {"iter_out": tile, "iter_in": out_width, "dst_factor_out": out_width, "dst_factor_in": 1}
    place = whole | {"uop_bgn": 4, "uop_end": 5}
    add = whole | {"uop_bgn": 0, "uop_end": 4, "src_factor_out": 2 * width, "src_factor_in": 2}
    alu = {"opcode": Opcode.ALU, "use_imm": 1} | place
    for number in range(channels * out_height // tile):
        loads.append(len(code))
        load = {"opcode": Opcode.LOAD, "memory_type": MemoryType.ACC, "y_size": 1, "x_size": sums}
        code += [
            load | {"dram_base": number * sums, "pop_next": int(number > 0)},
            {"opcode": Opcode.GEMM, "reset": 1} | place,
            {"opcode": Opcode.ALU, "alu_opcode": AluOpcode.ADD} | add,
            alu | {"alu_opcode": AluOpcode.SHR, "imm": 2},
            alu | {"alu_opcode": AluOpcode.MAX, "imm": -128},
            alu | {"alu_opcode": AluOpcode.MIN, "imm": 127, "push_next": 1},
        ]
        stores.append(len(code))
        store = {"opcode": Opcode.STORE, "memory_type": MemoryType.OUT, "sram_base": sums, "y_size": 1}
        store |= {"x_size": tile * out_width, "dram_base": number * tile * out_width}
        code.append(store | {"pop_prev": 1, "push_prev": 1})
    code.append({"opcode": Opcode.FINISH, "pop_next": 1})
    records = np.zeros(len(code), dtype=INSTRUCTION)
    for number, fields in enumerate(code):
        for name, value in fields.items():
            records[name][number] = value
    uops = np.array([(sums, src, 0) for src in (0, 1, width, width + 1)] + [(sums, 0, 0)], dtype=UOP)
    sizes = (
        ("uop", MemoryType.UOP, len(uops), accelerator.uop_element_bytes, [0]),
        ("acc", MemoryType.ACC, channels * workload.height * width, parameters.acc_element_bytes, loads),
        ("out", MemoryType.OUT, channels * out_height * out_width, parameters.out_element_bytes, stores),
    )
    buffers = tuple(
        Buffer(name, memory, count * size, size, np.array(owned, dtype=np.int64))
        for name, memory, count, size, owned in sizes
    )
    return Program.assemble(accelerator, encode(records, accelerator), encode_uops(uops, accelerator), buffers)
