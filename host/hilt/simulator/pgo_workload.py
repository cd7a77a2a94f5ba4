"""The PGO workload of the RTL, run once by a build that counts each branch.

`python -m hilt.simulator.pgo_workload LIBRARY` runs the tiles of a convolution as schedules have them: double-buffered
loads with and without padding, GEMM over the kernel, bias and requantisation in ALU, stores. The counts are written at
the end of the process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.device import MEMORY_ALIGNMENT, DeviceStatus, MemoryModel, SimulatedDevice, SimulatorError
from hilt.simulator.driver import execute
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters
from hilt.vta.isa import INSTRUCTION, UOP, AluOpcode, MemoryType, Opcode, encode, encode_uops

TILES = 12
CHUNKS = 4
"""Input channels of a tile, loaded and multiplied one after another."""
_BASE = 0x1000_0000
_INSTRUCTION_BYTES = 0x4000
_MAX_CYCLES = 1_000_000

Fields = dict[str, int]


class Tile(NamedTuple):
    """Elements of an output tile, and its kernel, which is square."""

    height: int
    width: int
    kernel: int

    @property
    def points(self) -> int:
        return self.height * self.width

    @property
    def input_width(self) -> int:
        return self.width + self.kernel - 1

    @property
    def input_points(self) -> int:
        return (self.height + self.kernel - 1) * self.input_width


_SHAPES = (Tile(7, 14, 3), Tile(3, 6, 3), Tile(2, 4, 1), Tile(1, 1, 1))


class PgoWorkload(NamedTuple):
    """`image` is the memory, uint8, from `base` on, in which `instructions` lie at the start."""

    base: int
    image: NDArray[np.uint8]
    instructions: int


def pgo_workload(accelerator: Accelerator) -> PgoWorkload:
    """The program for this accelerator, with the largest tiles of _SHAPES that its buffers hold two of."""
    tile = _largest_tile(accelerator)
    uops = encode_uops(_micro_ops(tile), accelerator).tobytes()
    parameters = accelerator.parameters
    uop_addr = _BASE + _INSTRUCTION_BYTES
    data_addr = uop_addr + _whole_pages(len(uops))
    data_bytes = _whole_pages(
        max(
            tile.input_points * parameters.inp_element_bytes,
            tile.kernel**2 * parameters.wgt_element_bytes,
            tile.points * max(parameters.acc_element_bytes, parameters.out_element_bytes),
        )
    )
    sizes = {
        MemoryType.UOP: (uop_addr, accelerator.uop_element_bytes),
        MemoryType.INP: (data_addr, parameters.inp_element_bytes),
        MemoryType.WGT: (data_addr, parameters.wgt_element_bytes),
        MemoryType.ACC: (data_addr, parameters.acc_element_bytes),
        MemoryType.OUT: (data_addr + data_bytes, parameters.out_element_bytes),
    }
    fields = _convolution(tile, {kind: address // size for kind, (address, size) in sizes.items()})
    records = np.zeros(len(fields), dtype=INSTRUCTION)
    for number, values in enumerate(fields):
        for name, value in values.items():
            records[name][number] = value
    words = encode(records, accelerator).tobytes()
    image = np.random.default_rng(0).integers(0, 256, data_addr + 2 * data_bytes - _BASE, dtype=np.uint8)
    image[: len(words)] = np.frombuffer(words, np.uint8)
    image[_INSTRUCTION_BYTES : _INSTRUCTION_BYTES + len(uops)] = np.frombuffer(uops, np.uint8)
    return PgoWorkload(_BASE, image, len(fields))


def run(library: Path) -> int:
    """Cycles of the PGO workload in the RTL at `library`. Raises SimulatorError where it does not end."""
    with SimulatedDevice(library, MemoryModel(_BASE, MEMORY_ALIGNMENT)) as device:
        described = device.description
    accelerator = Accelerator(
        VTAParameters.from_name(described["parameters"]),
        IsaRevision(described["isa"]),
        described["bus_bits"],
        described["hazards"],
    )
    base, image, instructions = pgo_workload(accelerator)
    with SimulatedDevice(library, MemoryModel(base, len(image))) as device:
        device.write_memory(base, image)
        execution = execute(device, base, instructions, _MAX_CYCLES)
    if execution.status is not DeviceStatus.DONE:
        raise SimulatorError(f"the PGO workload of {library} ended {execution.status.name} ({execution.fault})")
    return execution.cycles


def _largest_tile(accelerator: Accelerator) -> Tile:
    parameters = accelerator.parameters
    for tile in _SHAPES[:-1]:
        if (
            2 * tile.input_points <= parameters.inp_depth
            and 2 * tile.kernel**2 <= parameters.wgt_depth
            and 2 * tile.points <= parameters.acc_depth
            and tile.points <= accelerator.uop_depth
        ):
            return tile
    return _SHAPES[-1]


def _micro_ops(tile: Tile) -> NDArray[np.void]:
    """`points` of GEMM for each context of accumulators and of inputs, then `points` of ALU for each of the former."""
    row, column = np.divmod(np.arange(tile.points), tile.width)
    sets = []
    for to in range(2):
        for source in range(2):
            uops = np.zeros(tile.points, dtype=UOP)
            uops["dst"] = to * tile.points + row * tile.width + column
            uops["src"] = source * tile.input_points + row * tile.input_width + column
            uops["wgt"] = source * tile.kernel**2
            sets.append(uops)
    for to in range(2):
        uops = np.zeros(tile.points, dtype=UOP)
        uops["dst"] = uops["src"] = to * tile.points + np.arange(tile.points)
        sets.append(uops)
    return np.concatenate(sets)


def _convolution(tile: Tile, dram: dict[MemoryType, int]) -> list[Fields]:
    """Instructions of TILES tiles; `dram` has where each kind of data begins, in its elements."""
    fields: list[Fields] = []
    for number in range(TILES):
        to = number % 2
        fields += _first_sums(tile, dram, to, waits=number >= 2)
        for chunk in range(number * CHUNKS, (number + 1) * CHUNKS):
            fields += _chunk(tile, dram, to, chunk)
        fields += _requantise(tile, dram, to)
        frees = number + 2 < TILES or number + 1 == TILES
        fields.append(
            _transfer(Opcode.STORE, MemoryType.OUT, to * tile.points, dram, tile.height, tile.width)
            | {"pop_prev": 1, "push_prev": int(frees)}
        )
    return [*fields, {"opcode": Opcode.FINISH, "pop_next": 1}]


def _first_sums(tile: Tile, dram: dict[MemoryType, int], to: int, waits: bool) -> list[Fields]:
    """Accumulators at zero, or at a bias from memory; of a context that STORE has read, where there is one."""
    token = {"pop_next": int(waits)}
    if to:
        return [_transfer(Opcode.LOAD, MemoryType.ACC, to * tile.points, dram, tile.height, tile.width) | token]
    return [_load_uops(tile, dram, 4 + to), _compute(Opcode.GEMM, tile, reset=1) | token]


def _chunk(tile: Tile, dram: dict[MemoryType, int], to: int, chunk: int) -> list[Fields]:
    source, last = chunk % 2, TILES * CHUNKS
    kernel, token = tile.kernel, {"pop_next": int(chunk >= 2)}
    pad = kernel // 2 if chunk % 4 < 2 else 0
    height = tile.height + kernel - 1
    inputs = _transfer(
        Opcode.LOAD, MemoryType.INP, source * tile.input_points, dram, height - pad, tile.input_width - 2 * pad
    ) | {"y_pad_0": pad, "x_pad_0": pad, "x_pad_1": pad}
    weights = _transfer(Opcode.LOAD, MemoryType.WGT, source * kernel**2, dram, kernel, kernel)
    sums = _compute(
        Opcode.GEMM,
        tile,
        iter_out=kernel,
        iter_in=kernel,
        src_factor_out=tile.input_width,
        src_factor_in=1,
        wgt_factor_out=kernel,
        wgt_factor_in=1,
    )
    return [
        inputs | token,
        weights | {"push_next": 1},
        _load_uops(tile, dram, 2 * to + source),
        sums | {"pop_prev": 1, "push_prev": int(chunk + 2 < last)},
    ]


def _requantise(tile: Tile, dram: dict[MemoryType, int], to: int) -> list[Fields]:
    operations = ((AluOpcode.ADD, 0, 0), (AluOpcode.SHR, 1, 8), (AluOpcode.MAX, 1, 0), (AluOpcode.MIN, 1, 127))
    alu = [
        _compute(Opcode.ALU, tile, alu_opcode=operation, use_imm=immediate, imm=value)
        for operation, immediate, value in operations
    ]
    alu[-1]["push_next"] = 1
    return [_load_uops(tile, dram, 4 + to), *alu]


def _load_uops(tile: Tile, dram: dict[MemoryType, int], which: int) -> Fields:
    return _transfer(Opcode.LOAD, MemoryType.UOP, 0, dram, 1, tile.points, which * tile.points)


def _compute(opcode: Opcode, tile: Tile, **more: int) -> Fields:
    return {"opcode": opcode, "uop_bgn": 0, "uop_end": tile.points, "iter_out": 1, "iter_in": 1} | more


def _transfer(
    opcode: Opcode, kind: MemoryType, sram: int, dram: dict[MemoryType, int], height: int, width: int, offset: int = 0
) -> Fields:
    return {
        "opcode": opcode,
        "memory_type": kind,
        "sram_base": sram,
        "dram_base": dram[kind] + offset,
        "y_size": height,
        "x_size": width,
        "x_stride": width,
    }


def _whole_pages(count: int) -> int:
    return -(-count // MEMORY_ALIGNMENT) * MEMORY_ALIGNMENT


if __name__ == "__main__":
    sys.stdout.write(f"rehearsed {run(Path(sys.argv[1])):,} cycles\n")
