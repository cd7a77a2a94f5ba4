"""How far the twin is from the RTL in cycles, and how much faster it is, over the same programs in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hilt.schedule import Conv2d, Rejected, load_workload, lower, space_for
from hilt.simulator.build import build
from hilt.simulator.device import MemoryModel, SimulatedDevice, Status
from hilt.simulator.driver import Execution, execute
from hilt.simulator.program_run import place
from hilt.simulator.twin import PlacedProgram, Twin, TwinStatus
from hilt.virtual.personality import personality
from hilt.vta.isa import encode
from hilt.vta.program import Program
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.prepared import GOOD_C5, memory_of
from tests.rtl.random_programs import POOL_UOPS, RandomProgram, random_program

BOARD = personality("pynq")
PYNQ = BOARD.accelerator
SEED = 2026
RANDOM_INSTRUCTIONS = 80
LONGEST_CYCLES = 150_000
"""Of a conv program: so that five hundred of them are a minute of the RTL."""
BASE = 0x1000_0000


@dataclass
class Comparison:
    """Cycles by RTL and by twin of each program, and the processor seconds that each took for all."""

    rtl_cycles: list[int] = field(default_factory=list)
    twin_cycles: list[int] = field(default_factory=list)
    rtl_seconds: float = 0.0
    twin_seconds: float = 0.0

    def add(self, twin: Twin, program: PlacedProgram, device: SimulatedDevice) -> None:
        """`program` lies in the memory of `device`, which was just made: both begin at power-on."""
        start = time.thread_time()
        execution: Execution = execute(device, program.insn_address, len(program.instructions), 1 << 40)
        middle = time.thread_time()
        prediction = twin.predict([program], device.model)[0]
        end = time.thread_time()
        assert execution.status is Status.DONE, execution
        assert prediction["status"] == TwinStatus.DONE, prediction
        self.rtl_cycles.append(execution.cycles)
        self.twin_cycles.append(int(prediction["cycles"]))
        self.rtl_seconds += middle - start
        self.twin_seconds += end - middle

    def figures(self, workload: str) -> Iterator[Figure]:
        rtl, twin = np.array(self.rtl_cycles), np.array(self.twin_cycles)
        error = np.abs(twin - rtl) / rtl
        count = f"{len(rtl):,} programs"
        what = f"{workload} of {np.median(rtl):,.0f} cycles (median)"
        exact = np.count_nonzero(rtl == twin)
        yield Figure("twin: programs with the RTL's very cycles", what, str(SEED), count, f"{exact:,}", "all")
        yield Figure("twin: largest error in cycles", what, str(SEED), count, f"{error.max():.4%}", "0")
        yield Figure("twin: mean error in cycles", what, str(SEED), count, f"{error.mean():.4%}", "0")
        yield self.speed(what, count)

    def speed(self, workload: str, count: str) -> Figure:
        ratio = self.rtl_seconds / self.twin_seconds
        rate = sum(self.twin_cycles) / self.twin_seconds / 1e6
        value = f"{ratio:,.0f} times ({rate:,.0f} million cycles/s)"
        return Figure("twin: speed over the RTL's", workload, str(SEED), count, value, "500 times")


def figures(sizes: Sizes) -> Iterator[Figure]:
    twin = Twin(PYNQ)
    yield from _random_programs(twin, sizes.random_programs).figures("random programs, random memory timing")
    yield from _convolutions(twin, sizes.convolutions).figures("conv programs")
    good = Comparison()
    program = lower(load_workload("resnet18.C5"), GOOD_C5, PYNQ)
    for _ in range(3):
        _compare_convolution(good, twin, program)
    yield good.speed("resnet18.C5, its best schedule", "3")


def _random_programs(twin: Twin, count: int) -> Comparison:
    """Every opcode, pad and factor; each program with a memory of its own."""
    comparison = Comparison()
    library = build(PYNQ, "rtl")
    generator = np.random.default_rng(SEED)
    for number in range(count):
        program = random_program(PYNQ, SEED + number, RANDOM_INSTRUCTIONS)
        pages = -(-len(program.image) // 4096) * 4096
        with SimulatedDevice(library, _random_memory(generator, program.base, pages)) as device:
            device.memory[: len(program.image)] = program.image
            comparison.add(twin, _placed(program), device)
    return comparison


def _random_memory(generator: np.random.Generator, base: int, size: int) -> MemoryModel:
    bus = PYNQ.bus_bits // 8
    bandwidth = [(0, 1), (bus, 1), (bus // 2, 1), (2 * bus, 3)][int(generator.integers(4))]
    jitter = int(generator.choice([0, 0, 7, 100]))
    read_latency, write_latency, seed = (int(high) for high in generator.integers(1, [200, 200, 1 << 30]))
    return MemoryModel(base, size, read_latency, write_latency, bandwidth, jitter, seed)


def _placed(program: RandomProgram) -> PlacedProgram:
    first = program.uop_addr - program.base
    uops = program.image[first : first + POOL_UOPS * PYNQ.uop_element_bytes].view(np.uint32).reshape(POOL_UOPS, -1)
    return PlacedProgram(encode(program.records, PYNQ), uops, program.insn_addr, program.uop_addr)


def _convolutions(twin: Twin, count: int) -> Comparison:
    comparison = Comparison()
    generator = np.random.default_rng(SEED)
    while len(comparison.rtl_cycles) < count:
        program = _random_convolution(generator)
        if program is not None and _is_short(twin, program):
            _compare_convolution(comparison, twin, program)
    return comparison


def _compare_convolution(comparison: Comparison, twin: Twin, program: Program) -> None:
    """Cycles do not depend on the tensors, so that the memory holds none."""
    addresses, end = place(program, BASE)
    placed = PlacedProgram.of(program, addresses)
    memory = memory_of(BOARD)
    model = MemoryModel(BASE, end - BASE, memory.read_latency, memory.write_latency, memory.bandwidth)
    with SimulatedDevice(build(PYNQ, "rtl"), model) as device:
        device.write_memory(addresses["insn"], placed.instructions)
        device.write_memory(addresses["uop"], program.uops)
        comparison.add(twin, placed, device)


def _is_short(twin: Twin, program: Program) -> bool:
    return bool(twin.predict([program], memory_of(BOARD))[0]["cycles"] <= LONGEST_CYCLES)


def _random_convolution(generator: np.random.Generator) -> Program | None:
    """None where the compiler rejects the configuration."""
    kernel = int(generator.choice([1, 3, 3, 5]))
    workload = Conv2d(
        name="random",
        batch=1,
        in_channels=16 * int(generator.integers(1, 9)),
        height=int(generator.integers(kernel, 29)),
        width=int(generator.integers(kernel, 29)),
        out_channels=16 * int(generator.integers(1, 9)),
        kernel=(kernel, kernel),
        stride=(int(generator.integers(1, 3)),) * 2,
        padding=(int(generator.integers(0, kernel // 2 + 1)),) * 2,
        bias=bool(generator.integers(2)),
    )
    space = space_for(workload, PYNQ)
    try:
        return lower(workload, space.configuration(int(generator.integers(len(space)))), PYNQ)
    except Rejected:
        return None


TOPIC = Topic("twin", "the timing model against the RTL, pynq", figures)
