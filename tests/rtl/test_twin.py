"""The twin against the RTL: the very cycles and counters, on random programs, schedules, queues, tokens and faults."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from hilt.schedule import Rejected, load_workload, lower, space_for
from hilt.simulator.build import quick_build
from hilt.simulator.device import MemoryModel, SimulatedDevice, SimulatorError
from hilt.simulator.driver import execute
from hilt.simulator.twin import PREDICTION, PlacedProgram, Twin, TwinStatus
from hilt.vta.accelerator import Accelerator, load_parameters
from hilt.vta.isa import AluOpcode, MemoryType, Opcode, decode
from hilt.vta.program import Program
from tests.rtl.assembly import (
    BASE,
    DATA,
    INSN,
    MEMORY_BYTES,
    RESULT,
    UOP_POOL,
    Fields,
    alu,
    fill_table,
    finish,
    gemm,
    load,
    micro_ops,
    store,
    store_by_table,
    window,
    words,
)
from tests.rtl.beside_twin import run_beside_twin
from tests.rtl.nightly import compare, twin_differences
from tests.rtl.random_programs import random_program
from tests.rtl.twin_comparison import random_differences, schedule_differences
from tests.rtl.variants import IN_EACH_RUN, VARIANTS

PYNQ = Accelerator.for_parameters(load_parameters("pynq"))
WITHOUT_INTERLOCK = Accelerator.for_parameters(load_parameters("pynq"), hazards="none")
MEMORIES = {
    "as it is": MemoryModel(),
    "at once": MemoryModel(read_latency=1, write_latency=1),
    "slow to answer": MemoryModel(read_latency=200, write_latency=120),
    "further than 1024 beats": MemoryModel(read_latency=1300),
    "jitter": MemoryModel(read_latency=20, jitter=9, seed=5),
    "a third of the bus": MemoryModel(bandwidth=(8, 3)),
    "half as much again as the bus": MemoryModel(bandwidth=(12, 1)),
    "all ports at once": MemoryModel(bandwidth=(128, 1)),
    "narrow, far and unsteady": MemoryModel(read_latency=90, bandwidth=(3, 1), jitter=60, seed=9),
}
RANDOM_PROGRAMS = {"pynq A": 36}
INSTRUCTIONS = 60


@pytest.mark.parametrize("variant", IN_EACH_RUN)
def test_random_programs_take_the_very_cycles(variant: str) -> None:
    accelerator = VARIANTS[variant]
    library, twin = quick_build(accelerator, "rtl"), Twin(accelerator)
    for seed in range(RANDOM_PROGRAMS.get(variant, len(MEMORIES))):
        name, memory = list(MEMORIES.items())[seed % len(MEMORIES)]
        program = random_program(accelerator, seed, INSTRUCTIONS)
        assert random_differences(library, twin, program, memory) == [], f"seed {seed}, memory {name}"


def test_a_block_of_32_takes_the_very_cycles_and_computes_the_same() -> None:
    """`make nightly` runs the other wide blocks."""
    name = "1x32 A, 128-bit bus"
    for seed in range(3):
        assert twin_differences(name, seed) == [], f"seed {seed}"
    assert compare(name, range(1, 3)) is None


def test_random_programs_without_interlock() -> None:
    plain = replace(PYNQ, window=False)  # a window needs the interlock
    library, twin = quick_build(WITHOUT_INTERLOCK, "rtl"), Twin(WITHOUT_INTERLOCK)
    for seed in range(6):
        assert random_differences(library, twin, random_program(plain, seed, INSTRUCTIONS), MemoryModel()) == [], seed


def _schedules(count: int, longest: int) -> list[Program]:
    """Return schedules of all resnet18 layers in turn, drawn from their spaces, no longer than `longest` cycles."""
    generator, twin = np.random.default_rng(7), Twin(PYNQ)
    programs: list[Program] = []
    while len(programs) < count:
        workload = load_workload(f"resnet18.C{2 + int(generator.integers(10))}")
        space = space_for(workload, PYNQ)
        try:
            program = lower(workload, space.knobs_at(int(generator.integers(len(space)))), PYNQ)
        except Rejected:
            continue
        if int(twin.predict([program], MemoryModel())[0]["cycles"]) <= longest:
            programs.append(program)
    return programs


def test_schedules_take_the_very_cycles() -> None:
    library, twin = quick_build(PYNQ, "rtl"), Twin(PYNQ)
    memories = [MemoryModel(), MemoryModel(bandwidth=(3, 1)), MemoryModel(read_latency=11, jitter=40, seed=2)]
    for number, program in enumerate(_schedules(12, 120_000)):
        assert schedule_differences(library, twin, program, memories[number % 3]) == [], number


LOAD_UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 64)
UOPS = [(n % 5, n, n % 7) for n in range(64)]
TOKENS = [load(MemoryType.INP, 0, DATA // 16, 0, 0, push_next=1)] * 1030 + [LOAD_UOPS]
SMALL: dict[str, list[Fields]] = {
    "FINISH alone": [finish()],
    "FINISH before the others end": [
        load(MemoryType.INP, 0, DATA // 16, 9, 20),
        store(0, RESULT // 16, 3, 40),
        finish(),
    ],
    "FINISH amid": [LOAD_UOPS, finish(), gemm(0, 64), load(MemoryType.INP, 0, DATA // 16, 9, 20)],
    "a token that never comes": [LOAD_UOPS, gemm(0, 4, pop_prev=1), finish()],
    "no FINISH": [LOAD_UOPS, gemm(0, 4)],
    "a full queue": [LOAD_UOPS, gemm(0, 64, 40, 9)] + [gemm(0, 3)] * 600 + [store(0, RESULT // 16, 1, 3), finish()],
    "a full token queue": [*TOKENS, *[gemm(0, 2, pop_prev=1)] * 1030, finish()],
    "a load longer than what may be asked for": [
        load(MemoryType.WGT, 0, DATA // 256, 1, 1024, push_next=1),
        finish(pop_prev=1),
    ],
    "rows of one element": [load(MemoryType.INP, 0, DATA // 16, 900, 1, 30, push_next=1), finish(pop_prev=1)],
    "stores of one element": [store(0, RESULT // 16, 900, 1, 9, push_prev=1), finish(pop_next=1)],
    "stores by way of the table": [
        fill_table(5, 16, push_prev=1),
        fill_table(0, 16),
        store_by_table(0, RESULT // 16, 900, 1, 9),
        store(3, RESULT // 16, 2, 3),
        store_by_table(7, RESULT // 16, 3, 40),
        store_by_table(7, RESULT // 16, 3, 0),
        fill_table(2032, 16, push_prev=1),
        finish(pop_next=1),
    ],
    "a store to the table past the buffer": [store(0, RESULT // 16, 1, 1), fill_table(2040, 16), finish(pop_next=1)],
    "a store to the table from past the buffer": [fill_table(2048, 16), finish(pop_next=1)],
    "a store by way of the table past the buffer": [store_by_table(2030, RESULT // 16, 4, 5), finish(pop_next=1)],
    "a store by way of the table from past the buffer": [store_by_table(2048, RESULT // 16, 4, 5), finish(pop_next=1)],
    "a store past the buffer": [store(2030, RESULT // 16, 4, 5), finish(pop_next=1)],
    "windows": [
        LOAD_UOPS,
        *(
            window(
                n % 5, 1 + n % 4, 2 + n % 9, (n % 2, n % 3), reset=n // 20, dst_factor_out=n % 12, dst_factor_in=n % 2
            )
            for n in range(40)
        ),
        window(1, 9, 128, (1, 1), dst_factor_out=127, dst_factor_in=1, push_next=1),
        window(1, 0, 128),
        gemm(0, 1, 1, 20, dst_factor_in=1, reset=1),
        window(1, 2, 10, dst_factor_out=10, dst_factor_in=1),
        window(1, 2, 10, dst_factor_out=10, dst_factor_in=1, reset=1),
        gemm(1, 2, 1, 20, dst_factor_in=1),
        finish(),
    ],
    "an index past a window's buffer": [LOAD_UOPS, window(1, 9, 128, (1, 1), src_factor_out=300), finish()],
    "a window of one column": [LOAD_UOPS, window(1, 9, 1), finish()],
    "half a table": [store_by_table(0, RESULT // 16, 4, 5), fill_table(0, 8), finish(pop_next=1)],
    "pads in rows": [
        load(MemoryType.INP, 0, DATA // 16, 20, 3, x_pad_0=n % 4, x_pad_1=n // 4, y_pad_0=n, push_next=1)
        for n in range(16)
    ]
    + [LOAD_UOPS, *[gemm(0, 1, pop_prev=1)] * 16, finish()],
    "inp index": [LOAD_UOPS, gemm(0, 64, 2, 80, src_factor_in=50), finish()],
    "wgt index": [LOAD_UOPS, gemm(0, 64, 2, 40, wgt_factor_in=50), finish()],
    "acc index": [LOAD_UOPS, gemm(0, 64, 3, 9, dst_factor_out=1000, dst_factor_in=30), finish()],
    "acc index of an ALU": [LOAD_UOPS, alu(AluOpcode.ADD, 0, 64, 2, 40, src_factor_in=60), finish()],
    "micro-op index": [LOAD_UOPS, gemm(8190, 8195, 2, 2), finish()],
    "micro-ops past the buffer": [load(MemoryType.UOP, 8190, UOP_POOL // 4, 1, 8), finish()],
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("memory", ["as it is", "further than 1024 beats"])
def test_small_programs(name: str, memory: str) -> None:
    run_beside_twin(PYNQ, words(PYNQ, SMALL[name]), micro_ops(PYNQ, *UOPS), memory=MEMORIES[memory])


@pytest.mark.parametrize("first", range(2000, 2049, 4))
def test_loads_that_end_past_their_buffer(first: int) -> None:
    pads = {"y_pad_0": 1, "y_pad_1": 2, "x_pad_0": 3, "x_pad_1": 2}
    instructions = [load(MemoryType.INP, first, DATA // 16, 3, 5, **pads, push_next=1), finish(pop_prev=1)]
    encoded = words(PYNQ, instructions)
    with SimulatedDevice(quick_build(PYNQ, "rtl"), MemoryModel(BASE, MEMORY_BYTES)) as device:
        device.write_memory(INSN, encoded)
        execution = execute(device, INSN, len(encoded), 100_000)
    prediction = Twin(PYNQ).predict([PlacedProgram(encoded, np.zeros((0, 1), np.uint32), INSN)], MemoryModel())[0]
    assert prediction["cycles"] == execution.cycles
    assert prediction["fault"] == (execution.fault.code if execution.fault else 0)
    assert prediction["status"] == (TwinStatus.FAULT if execution.fault else TwinStatus.DONE)


def test_many_programs_a_call_are_each_as_alone_on_any_thread() -> None:
    twin, programs = Twin(PYNQ), _schedules(6, 2_000_000)
    alone = np.concatenate([twin.predict([program], MemoryModel()) for program in programs])
    assert alone.dtype == PREDICTION and np.all(alone["cycles"] > 0)
    with ThreadPoolExecutor(4) as threads:
        for together in threads.map(lambda _: twin.predict(programs * 3, MemoryModel()), range(8)):
            assert np.array_equal(together, np.tile(alone, 3))
    assert len(twin.predict([], MemoryModel())) == 0


def test_the_timeline_agrees_with_the_counters() -> None:
    twin, program = Twin(PYNQ), _schedules(1, 2_000_000)[0]
    prediction = twin.predict([program], MemoryModel())[0]
    spans = twin.timeline(program, MemoryModel())
    records = decode(program.instructions, PYNQ)
    shifts = (records["opcode"] == Opcode.ALU) & (records["alu_opcode"] == AluOpcode.SHR)  # MAX and MIN join each
    assert len(spans) == len(program.instructions)
    assert spans["end"].max() == prediction["cycles"] - 1  # FINISH ends the program in the cycle after its own
    for number, stage in ((1, "load"), (2, "compute"), (3, "store")):
        own = spans[spans["stage"] == number]
        assert np.all(own["start"][1:] >= own["end"][:-1])
        joined = own["start"][1:] == own["end"][:-1]  # else a stage is idle between two
        assert np.count_nonzero(joined) == (2 * np.count_nonzero(shifts) if number == 2 else 0)
        assert np.sum(own["end"] - own["start"]) == prediction[stage]["busy"]
        assert len(own) == prediction[stage]["instructions"]


@pytest.mark.parametrize("offset", [256, 3840])
def test_bursts_are_cut_where_buffers_lie(offset: int) -> None:
    library, twin = quick_build(PYNQ, "rtl"), Twin(PYNQ)
    for program in _schedules(2, 100_000):
        assert schedule_differences(library, twin, program, MemoryModel(), offset) == []


def test_an_impossible_bandwidth_is_refused() -> None:
    with pytest.raises(SimulatorError, match="bandwidth"):
        Twin(PYNQ).predict(_schedules(1, 2_000_000), MemoryModel(bandwidth=(1, 0)))
