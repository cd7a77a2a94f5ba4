"""The bench of most mutants: random programs, resets, faults, full queues and soft resets on two lanes of four."""

from __future__ import annotations

from pathlib import Path

from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters
from hilt.vta.isa import AluOpcode, MemoryType
from hilt_runtime.registers import Register
from tests.rtl import random_resets
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
    words,
)
from tests.rtl.compare_models import difference
from tests.rtl.mutation.simulation import MOST_CYCLES, Bench, compare_random, outcome, reset
from tests.rtl.random_programs import random_program
from tests.rtl.random_resets import ResetProgram

SMALL = Accelerator(VTAParameters(3, 3, 5, 1, 2, 13, 11, 11, 13), IsaRevision.B, instruction_queue_depth=16, bands=True)
"""2x4, so that a build takes seconds: 256 inputs, 128 weights, 256 accumulators, 2,048 micro-ops."""
PROGRAMS, INSTRUCTIONS = 12, 400
RESET_PROGRAMS = 24
_POOL = [(0, 0, 0), (200, 0, 0), (0, 255, 127)]
_UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(_POOL))
_END = BASE + MEMORY_BYTES
FAULTS = {
    "load of inputs": [load(MemoryType.INP, 250, DATA // 8, 2, 5)],
    "load of micro-ops": [load(MemoryType.UOP, 2040, UOP_POOL // 4, 1, 20)],
    "load of accumulators": [load(MemoryType.ACC, 256, DATA // 32, 1, 1)],
    "store": [store(254, RESULT // 8, 2, 2)],
    "store of part of a table": [fill_table(0, 5)],
    "second store to the table": [fill_table(0, 32), fill_table(0, 32, y=2), fill_table(0, 31)],
    "gemm": [_UOPS, gemm(0, 1, 3, 16, dst_factor_out=86, dst_factor_in=4)],
    "gemm of two operands": [_UOPS, gemm(2, 3, 1, 2, src_factor_in=1, wgt_factor_in=1)],
    "reset past the accumulator": [_UOPS, gemm(1, 2, 1, 57, dst_factor_in=1, reset=1), gemm(0, 1)],
    "alu": [_UOPS, alu(AluOpcode.ADD, 0, 1, 1, 300, dst_factor_in=1, use_imm=1, imm=1)],
    "memory": [load(MemoryType.INP, 0, _END // 8 - 20, 1, 40)],
    "memory of a store": [store(0, _END // 8 - 20, 1, 40)],
    "memory of two stages": [load(MemoryType.INP, 0, _END // 8, 1, 2), store(0, _END // 8, 1, 2)],
}
"""Programs that fault, by the instruction that does."""
_FILLED = 1024 + 17
"""Tokens that a queue holds (vta_pkg), and the LOADs that wait behind them; of more, the program would never end."""
FULL_QUEUE = [
    *[_UOPS, gemm(0, 1, 200, 200)],
    *[load(MemoryType.INP, 0, DATA // 8, 1, 1, push_next=1)] * _FILLED,
    *[load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1, pop_prev=1)] * _FILLED,
    finish(),
]
"""A program whose load stage fills a queue of tokens while the compute stage is busy, and has to wait."""
SHORT_STORES = [store(0, RESULT // 8, 100, 1, 300, push_prev=1), finish(pop_next=1)]
"""A program with more bursts on their way than the store's master may have."""
_DONE = 1 << 1
"""The bit of a control register (docs/registers.md)."""
_INTERRUPTED = (150, 400, 900, 2000)
"""Cycles after which a program is reset softly, with bursts on their way."""


def _compare(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    """Return the first difference between two models, or None; `ends` receives the ends of the RTL's runs."""
    return (
        compare_random(SMALL, PROGRAMS, INSTRUCTIONS, rtl, golden, ends)
        or _compare_resets(rtl, golden, ends)
        or _compare_full_queue(rtl, golden, ends)
        or _compare_interrupted(rtl, golden, ends)
        or _compare_faults(rtl, golden, ends)
    )


def _compare_resets(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    for seed in range(RESET_PROGRAMS):
        resets = ResetProgram(SMALL, seed, faulty=seed % 2 == 1)
        shown = resets.run(rtl)
        ends.append(shown[0])
        problem = random_resets.difference(shown, resets.run(golden))
        if problem is not None:
            return f"resets {seed}: {problem}"
    return None


def _compare_full_queue(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    (full, done), (expected, _) = (_run_once(each, FULL_QUEUE) for each in (rtl, golden))
    ends.append(full)
    if (full.status, full.fault) != (expected.status, expected.fault):
        return f"a full queue of tokens: {full} and {expected}"
    if done != [True, False]:
        return f"fetch is done by two reads: {done}"
    (stores, _), (expected, _) = (_run_once(each, SHORT_STORES, write_latency=400) for each in (rtl, golden))
    ends.append(stores)
    return None if stores.status == expected.status else f"stores: {stores.status} and {expected.status}"


def _compare_interrupted(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    for cycles in _INTERRUPTED:
        program = random_program(SMALL, cycles, INSTRUCTIONS, fill=True)
        timing = {"read_latency": 200, "write_latency": 50}
        interrupted = outcome(rtl, program, ends, first_cycles=cycles, **timing)
        problem = difference(program, interrupted, outcome(golden, program))
        if problem is not None:
            return f"reset after {cycles} cycles: {problem}"
    return None


def _compare_faults(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    for name in FAULTS:
        for latency in (1, 60):
            shown, expected = (_fault(each, name, latency) for each in (rtl, golden))
            if [(end.status, end.fault) for end in shown] != [(end.status, end.fault) for end in expected]:
                return f"fault of a {name}: {shown[0].fault} and {expected[0].fault}"
            ends += shown
    return None


def _run_once(library: Path, program: list[Fields], **timing: int) -> tuple[Execution, list[bool]]:
    """Run a program; return its end, and whether fetch is done by each of two reads: the first clears it."""
    with SimulatedDevice(library, MemoryModel(BASE, MEMORY_BYTES, **timing)) as device:
        device.write_memory(INSN, words(SMALL, program))
        execution = execute(device, INSN, len(program), MOST_CYCLES)
        return execution, [bool(device.read_register(Register.FETCH_CONTROL) & _DONE) for _ in range(2)]


def _fault(library: Path, name: str, latency: int) -> list[Execution]:
    """Run a program that faults, reset the accelerator softly, and run one that does not."""
    ends = []
    with SimulatedDevice(library, MemoryModel(BASE, MEMORY_BYTES, read_latency=latency, write_latency=9)) as device:
        never = finish(pop_prev=1, pop_next=1)  # no stage pushes a token: a fault ends the run, not FINISH
        device.write_memory(UOP_POOL, micro_ops(SMALL, *_POOL))
        for program in ([*FAULTS[name], never], [_UOPS, finish()]):
            device.write_memory(INSN, words(SMALL, program))
            ends.append(execute(device, INSN, len(program), MOST_CYCLES))
            reset(device)
    return ends


BENCH = Bench(SMALL, _compare)
