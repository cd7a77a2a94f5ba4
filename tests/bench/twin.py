"""The cycle error of the twin against the RTL, and its speed-up, over the same programs in the same run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from hilt.schedule import Conv2d, Rejected, load_workload, lower, space_for
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import execute
from hilt.simulator.program_run import place
from hilt.simulator.twin import PlacedProgram, Twin, TwinStatus
from hilt.virtual.board_model import board_model
from hilt.vta.isa import encode
from hilt.vta.program import Program
from tests.bench.figure import Figure, Sizes, Topic
from tests.bench.prepared import KNOBS
from tests.rtl.random_programs import POOL_UOPS, RandomProgram, random_program
from tests.rtl.test_resnet18_on_rtl import GOOD

BOARD = board_model("pynq")
PYNQ = BOARD.accelerator
SEED = 2026
RANDOM_INSTRUCTIONS = 80
MEMORIES = 16
LONGEST_CYCLES = 150_000
"""The limit of a conv program in cycles, so that five hundred of them take a minute of the RTL."""
BASE = 0x1000_0000


@dataclass
class WireVerification:
    """Cycles by RTL and by twin of each program, and the processor seconds that each took for all."""

    twin: Twin
    rtl_cycles: list[int] = field(default_factory=list)
    twin_cycles: list[int] = field(default_factory=list)
    rtl_seconds: float = 0.0
    twin_seconds: float = 0.0

    def on_rtl(self, program: PlacedProgram, device: SimulatedDevice) -> None:
        """`program` lies in the memory of `device`, which was just made: both models begin at power-on."""
        start = time.thread_time()
        execution = execute(device, program.insn_address, len(program.instructions), 1 << 40)
        self.rtl_seconds += time.thread_time() - start
        assert execution.status is DeviceStatus.DONE, execution
        self.rtl_cycles.append(execution.cycles)

    def on_twin(self, programs: list[PlacedProgram], memory: MemoryModel) -> None:
        """All of them in one call."""
        start = time.thread_time()
        predictions = self.twin.predict(programs, memory)
        self.twin_seconds += time.thread_time() - start
        assert np.all(predictions["status"] == TwinStatus.DONE)
        self.twin_cycles += predictions["cycles"].tolist()

    def figures(self, workload: str) -> Iterator[Figure]:
        rtl, twin = np.array(self.rtl_cycles), np.array(self.twin_cycles)
        error = np.abs(twin - rtl) / rtl
        count = f"{len(rtl):,} programs"
        subject = f"{workload} of {np.median(rtl):,.0f} cycles (median)"
        exact = np.count_nonzero(rtl == twin)
        yield Figure("twin: programs with the RTL's very cycles", subject, str(SEED), count, f"{exact:,}", "all")
        yield Figure("twin: largest error in cycles", subject, str(SEED), count, f"{error.max():.4%}", "0")
        yield Figure("twin: mean error in cycles", subject, str(SEED), count, f"{error.mean():.4%}", "0")
        yield self.speed(subject, count)

    def speed(self, workload: str, count: str) -> Figure:
        ratio = self.rtl_seconds / self.twin_seconds
        rate = sum(self.twin_cycles) / self.twin_seconds / 1e6
        value = f"{ratio:,.0f} times ({rate:,.0f} million cycles/s)"
        return Figure("twin: speed over the RTL's", workload, str(SEED), count, value, "500 times")


def figures(sizes: Sizes) -> Iterator[Figure]:
    twin = Twin(PYNQ)
    yield from _random_programs(twin, sizes.random_programs).figures("random programs")
    yield from _convolutions(twin, sizes.convolutions).figures("conv programs")
    good = [lower(load_workload(name), dict(zip(KNOBS, knobs, strict=True)), PYNQ) for name, knobs in GOOD.items()]
    yield _run_convolutions(twin, good).speed("resnet18.C2..C11, a good schedule each", f"{len(good)} programs")


def _random_programs(twin: Twin, count: int) -> WireVerification:
    """Every opcode, pad and factor, on memories of every latency, bandwidth and jitter."""
    comparison = WireVerification(twin)
    library = build(PYNQ, "rtl")
    generator = np.random.default_rng(SEED)
    for numbers in np.array_split(np.arange(count), min(MEMORIES, count)):
        memory = _random_memory(generator)
        programs = [random_program(PYNQ, SEED + int(number), RANDOM_INSTRUCTIONS) for number in numbers]
        placed = [_placed(program) for program in programs]
        for program, where in zip(programs, placed, strict=True):
            pages = -(-len(program.image) // 4096) * 4096
            with SimulatedDevice(library, replace(memory, base=program.base, bytes=pages)) as device:
                device.memory[: len(program.image)] = program.image
                comparison.on_rtl(where, device)
        comparison.on_twin(placed, memory)
    return comparison


def _random_memory(generator: np.random.Generator) -> MemoryModel:
    bus = PYNQ.bus_bits // 8
    read_latency, write_latency, seed = (int(each) for each in generator.integers(1, [200, 200, 1 << 30]))
    return MemoryModel(
        read_latency=read_latency,
        write_latency=write_latency,
        bandwidth=[(0, 1), (bus, 1), (bus // 2, 1), (2 * bus, 3)][int(generator.integers(4))],
        jitter=int(generator.choice([0, 0, 7, 100])),
        seed=seed,
    )


def _placed(program: RandomProgram) -> PlacedProgram:
    first = program.uop_addr - program.base
    uops = program.image[first : first + POOL_UOPS * PYNQ.uop_element_bytes].view(np.uint32).reshape(POOL_UOPS, -1)
    return PlacedProgram(encode(program.records, PYNQ), uops, program.insn_addr, program.uop_addr)


def _convolutions(twin: Twin, count: int) -> WireVerification:
    generator = np.random.default_rng(SEED)
    programs: list[Program] = []
    while len(programs) < count:
        program = _random_convolution(generator)
        if program is not None and _is_short(twin, program):
            programs.append(program)
    return _run_convolutions(twin, programs)


def _run_convolutions(twin: Twin, programs: list[Program]) -> WireVerification:
    """Cycles do not depend on the tensors, so that the memory holds none."""
    comparison = WireVerification(twin)
    library, memory = build(PYNQ, "rtl"), BOARD.memory_model
    placed: list[PlacedProgram] = []
    for program in programs:
        addresses, end = place(program, BASE)
        placed.append(PlacedProgram.of(program, addresses))
        with SimulatedDevice(library, replace(memory, base=BASE, bytes=end - BASE)) as device:
            device.write_memory(addresses["insn"], placed[-1].instructions)
            device.write_memory(addresses["uop"], program.uops)
            comparison.on_rtl(placed[-1], device)
    comparison.on_twin(placed, memory)
    return comparison


def _is_short(twin: Twin, program: Program) -> bool:
    return bool(twin.predict([program], BOARD.memory_model)[0]["cycles"] <= LONGEST_CYCLES)


def _random_convolution(generator: np.random.Generator) -> Program | None:
    """Return a random convolution's program, or None if the compiler rejects the configuration."""
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
        return lower(workload, space.knobs_at(int(generator.integers(len(space)))), PYNQ)
    except Rejected:
        return None


TOPIC = Topic("twin", "the timing model against the RTL, pynq", figures)
