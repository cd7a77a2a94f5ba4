"""Random programs of resets and GEMMs over about the same accumulators: resets that fold (vta_fold), or nearly do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.twin import PlacedProgram
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import UOP, AluOpcode, MemoryType, encode_uops
from hilt_runtime.registers import Register
from tests.rtl.assembly import Fields, alu, finish, gemm, load, store, words

POOL, SOURCE, TARGET, MEMORY = 0x1_0000, 0x2_0000, 0x20_0000, 0x60_0000
POOL_UOPS = 256


class ResetProgram:
    """A program of 12 tiles. One of `faulty` may have indices past a buffer."""

    def __init__(self, accelerator: Accelerator, seed: int, *, faulty: bool) -> None:
        generator = np.random.default_rng(seed)
        parameters = accelerator.parameters
        depths = {"dst": parameters.acc_depth, "src": parameters.inp_depth, "wgt": parameters.wgt_depth}
        uops = np.zeros(POOL_UOPS, dtype=UOP)
        for name, depth in depths.items():
            uops[name] = generator.integers(0, generator.choice((2, 40, depth // 2), POOL_UOPS))
        uops[0] = (0, 0, 0)
        self._pool = encode_uops(uops, accelerator)
        load_uops = load(MemoryType.UOP, 0, POOL // accelerator.uop_element_bytes, 1, POOL_UOPS)
        loads = [
            load(MemoryType.INP, 0, SOURCE // parameters.inp_element_bytes, 1, min(depths["src"], 2048)),
            load(MemoryType.WGT, 0, SOURCE // parameters.wgt_element_bytes, 1, min(depths["wgt"], 1024), push_next=1),
            load(MemoryType.ACC, 0, SOURCE // parameters.acc_element_bytes, 1, depths["dst"], pop_prev=1),
        ]
        tiles = [fields for _ in range(12) for fields in _tile(generator, uops, depths, faulty)]
        self._program = words(accelerator, [load_uops, *loads, *tiles, finish()])
        shown = show_all(TARGET, parameters.acc_depth, parameters.out_element_bytes)
        self._show = words(accelerator, [load_uops, *shown])
        self._contents = generator.integers(-128, 128, 0x10_0000, dtype=np.int8)

    @property
    def placed(self) -> PlacedProgram:
        """Return the program for the twin."""
        pool = np.ascontiguousarray(self._pool).view(np.uint32).reshape(POOL_UOPS, -1)
        return PlacedProgram(self._program, pool, 0, POOL)

    def run(self, library: Path) -> tuple[Execution, NDArray[np.uint8]]:
        """Run it, reset softly, and store `out` and all bytes of the accumulator; return that memory too."""
        with SimulatedDevice(library, MemoryModel(0, MEMORY)) as device:
            for address, part in ((0, self._program), (POOL, self._pool), (SOURCE, self._contents)):
                device.write_memory(address, np.ascontiguousarray(part))
            execution = execute(device, 0, len(self._program), 10_000_000)
            device.write_register(Register.SOFT_RESET, 1)
            device.write_memory(0, self._show)
            assert execute(device, 0, len(self._show), 1_000_000).status is DeviceStatus.DONE
            return execution, device.memory.copy()


def difference(left: tuple[Execution, NDArray[np.uint8]], right: tuple[Execution, NDArray[np.uint8]]) -> str | None:
    """Return the first thing in which two runs differ apart from time, or None."""
    ends = [(execution.status, execution.fault, execution.counters.macs) for execution, _ in (left, right)]
    if ends[0] != ends[1]:
        return f"{ends[0]} and {ends[1]}"
    wrong = np.flatnonzero(left[1] != right[1])
    return f"{wrong.size} bytes of memory, the first at {int(wrong[0]):#x}" if wrong.size else None


def show_all(target: int, depth: int, element: int) -> list[Fields]:
    """Return a program that stores `out`, then all bytes of the accumulator, from `target` on."""
    everywhere = {"dst_factor_out": 4, "dst_factor_in": 1, "use_imm": 1}
    stores = [store(0, target // element + depth * n, 1, depth, push_prev=1) for n in range(5)]
    shifts = [alu(AluOpcode.SHR, 0, 1, depth // 4, 4, **everywhere, imm=8 * (n > 0)) for n in range(4)]
    tokens = {"pop_next": 1, "push_next": 1}
    shown = [each for n in range(4) for each in (shifts[n] | tokens, stores[n + 1] | {"pop_prev": 1})]
    begin = alu(AluOpcode.ADD, 0, 1, 0, 0, use_imm=1, push_next=1)
    return [begin, stores[0] | {"pop_prev": 1}, *shown, finish(pop_next=1)]


def _tile(
    generator: np.random.Generator, uops: NDArray[np.void], depths: dict[str, int], faulty: bool
) -> Iterator[Fields]:
    """A reset and one or two GEMMs over about the same accumulators; sometimes the other way round, or with an ALU."""
    bgn = int(generator.integers(POOL_UOPS - 8))
    room = depths["dst"] - int(uops["dst"][bgn])
    inner = int(generator.integers(1, min(room, 60) + 1))
    row = inner + int(generator.choice((0, 0, 0, 1)))  # rows that are apart do not fold
    outer = int(generator.integers(1, max(2, min(room // row + int(faulty), 12))))
    yield gemm(bgn, bgn + 1, outer, inner, dst_factor_out=row, dst_factor_in=1, reset=1)
    for _ in range(int(generator.integers(1, 3))):
        first, count = bgn + int(generator.choice((0, 0, 0, 1))), int(generator.choice((1, 1, 2, 5)))
        loops = (outer, inner) if generator.random() < 0.5 else (inner, outer)
        steps = (inner, 1) if loops[0] == outer else (1, inner)
        if generator.random() < 0.3:
            steps = (int(generator.integers(0, 3)), int(generator.integers(0, 3)))
        most = {name: int(uops[name][first : first + count].max()) for name in depths}
        factors = dict(zip(("dst_factor_out", "dst_factor_in"), steps, strict=True))
        for name in ("src", "wgt"):
            for loop in ("out", "in"):
                factors[f"{name}_factor_{loop}"] = int(
                    generator.choice((0, 0, 1, 3, depths[name] - 1 if faulty else 2))
                )
        fields = gemm(first, first + count, *loops, **factors, reset=int(generator.random() < 0.1))
        fits = all(
            most[name] + (loops[0] - 1) * factors[f"{name}_factor_out"] + (loops[1] - 1) * factors[f"{name}_factor_in"]
            < depth
            for name, depth in depths.items()
        )
        if fits or (faulty and generator.random() < 0.2):
            yield fields
    if generator.random() < 0.3:
        yield alu(AluOpcode.ADD, bgn, bgn + 1, 1, inner, dst_factor_in=1, use_imm=1, imm=3)
