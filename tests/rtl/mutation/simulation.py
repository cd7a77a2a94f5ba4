"""Runs of a small build of the RTL, with assertions, against the golden model; in a process that a mutant may end."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hilt.simulator import toolchain
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
    finish,
    gemm,
    load,
    micro_ops,
    store,
    words,
)
from tests.rtl.compare_models import Outcome, difference, memory_timing
from tests.rtl.mutation.mutant import VARIABLE
from tests.rtl.random_programs import RandomProgram, random_program
from tests.rtl.random_resets import ResetProgram

SMALL = Accelerator(VTAParameters(3, 3, 5, 1, 2, 13, 11, 11, 13), IsaRevision.B, instruction_queue_depth=16, bands=True)
"""2x4, so that a build takes seconds: 256 inputs, 128 weights, 256 accumulators, 2,048 micro-ops."""
PROGRAMS, INSTRUCTIONS = 12, 400
RESET_PROGRAMS = 24
_MOST_CYCLES = 1_000_000
_SECONDS = 240.0
"""For all runs of a mutant; one that takes longer hangs, which counts as noticed."""
_POOL = [(0, 0, 0), (200, 0, 0), (0, 255, 127)]
_UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, len(_POOL))
_END = BASE + MEMORY_BYTES
FAULTS = {
    "load of inputs": [load(MemoryType.INP, 250, DATA // 8, 2, 5)],
    "load of micro-ops": [load(MemoryType.UOP, 2040, UOP_POOL // 4, 1, 20)],
    "load of accumulators": [load(MemoryType.ACC, 256, DATA // 32, 1, 1)],
    "store": [store(254, RESULT // 8, 2, 2)],
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


class BuildFailedError(Exception):
    """The RTL does not compile; the message is the end of the log."""


def build(hls: Path, folder: Path) -> Path:
    """Return the shared library of the RTL in `hls` with assertions, made in `folder`. Raises BuildFailedError."""
    verilator = toolchain.verilator()
    macros = [f"-D{name}={value}" for name, value in SMALL.defines().items()]
    library = folder / "libvta.so"
    verilate = [
        *(str(verilator.program), "--cc", "--exe", "--Mdir", str(folder / "v"), *macros),
        *("-LDFLAGS", "-shared", "-o", str(library)),
        *("-CFLAGS", " ".join(["-std=c++17", "-fPIC", f"-I{hls / 'sim'}", *macros])),
        *("-F", str(hls / "sim" / "rtl_debug.f")),
    ]
    make = ["make", "-C", str(folder / "v"), "-f", "Vvta_top.mk", "CXX=g++", "LINK=g++", f"PYTHON3={sys.executable}"]
    make += ["OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0", "CFG_CXXFLAGS_PCH_I=-include", "CFG_GCH_IF_CLANG="]
    for command in (verilate, make):
        done = subprocess.run(command, env=verilator.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildFailedError((done.stdout + done.stderr)[-3000:])
    return library


@dataclass(frozen=True)
class Observation:
    """What the runs of a mutant showed: its first sign, if any, and all runs' cycles and counters where there is none.

    A sign is a failed assertion's name, a difference from the golden model, or that it hangs.
    """

    sign: str | None
    times: list[str]

    def compared(self, right: Observation) -> str | None:
        """Return the sign, or the first run whose cycles or counters differ from those of the right RTL."""
        if self.sign or self.times == right.times:
            return self.sign
        place = next(n for n, (mine, other) in enumerate(zip(self.times, right.times, strict=True)) if mine != other)
        return f"time: run {place} {self.times[place]} for {right.times[place]}"[:100]


def observe(library: Path, golden: Path, number: int) -> Observation:
    """Run everything on mutant `number`; 0 is the RTL as it is."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        log, times = Path(folder) / "log", Path(folder) / "times"
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_run, args=(library, golden, number, log, times))
        process.start()
        process.join(_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            return Observation("hangs", [])
        text = log.read_text(errors="replace")
        if process.exitcode == 0:
            return Observation(None, times.read_text().splitlines())
    if failed := re.search(r"Assertion failed in \S*?([\w.]+): (.*)", text):
        return Observation(f"assertion {failed[1].removeprefix('vta_top.')}", [])
    lines = text.strip().splitlines()
    return Observation(lines[-1][:100] if lines else f"the process ended with {process.exitcode}", [])


def _run(library: Path, golden: Path, number: int, log: Path, times: Path) -> None:
    os.environ[VARIABLE] = str(number)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    ends: list[Execution] = []
    problem = compare(library, golden, ends)
    if problem:
        os.write(2, f"\n{problem}\n".encode())
    else:
        times.write_text("".join(f"{end.cycles} {_digest(end)}\n" for end in ends))
    os._exit(1 if problem else 0)


def _digest(end: Execution) -> str:
    return hashlib.sha256(repr(end.counters).encode()).hexdigest()[:8]


def compare(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    """Return the first difference between two models, or None; `ends` receives the ends of the RTL's runs."""
    return (
        _compare_random(rtl, golden, ends)
        or _compare_full_queue(rtl, golden, ends)
        or _compare_interrupted(rtl, golden, ends)
        or _compare_faults(rtl, golden, ends)
    )


def _compare_random(rtl: Path, golden: Path, ends: list[Execution]) -> str | None:
    for seed in range(1, PROGRAMS + 1):
        program = random_program(SMALL, seed, INSTRUCTIONS, fill=True)
        problem = difference(program, _outcome(rtl, program, ends, **memory_timing(seed)), _outcome(golden, program))
        if problem is not None:
            return f"program {seed}: {problem}"
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
        interrupted = _outcome(rtl, program, ends, first_cycles=cycles, **timing)
        problem = difference(program, interrupted, _outcome(golden, program))
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
        execution = execute(device, INSN, len(program), _MOST_CYCLES)
        return execution, [bool(device.read_register(Register.FETCH_CONTROL) & _DONE) for _ in range(2)]


def _outcome(
    library: Path, program: RandomProgram, ends: list[Execution] | None = None, first_cycles: int = 0, **timing: object
) -> Outcome:
    """Run a program; with `first_cycles` run it for these first, reset the accelerator softly, and begin anew.

    `ends` receives its end.
    """
    pages = -(-len(program.image) // 4096) * 4096
    with SimulatedDevice(library, MemoryModel(program.base, pages, **timing)) as device:  # type: ignore[arg-type]
        if first_cycles:
            device.memory[: len(program.image)] = program.image
            execute(device, program.insn_addr, len(program.records), first_cycles)
            _reset(device)
        device.memory[: len(program.image)] = program.image
        execution = execute(device, program.insn_addr, len(program.records), _MOST_CYCLES)
        if ends is not None:
            ends.append(execution)
        return Outcome(device.memory[: len(program.image)].copy(), execution)


def _reset(device: SimulatedDevice) -> None:
    """Reset the accelerator softly, and wait until it has ended."""
    device.write_register(Register.SOFT_RESET, 1)
    for _ in range(10_000):
        if device.read_register(Register.SOFT_RESET) == 0:
            return


def _fault(library: Path, name: str, latency: int) -> list[Execution]:
    """Run a program that faults, reset the accelerator softly, and run one that does not."""
    ends = []
    with SimulatedDevice(library, MemoryModel(BASE, MEMORY_BYTES, read_latency=latency, write_latency=9)) as device:
        never = finish(pop_prev=1, pop_next=1)  # no stage pushes a token: a fault ends the run, not FINISH
        device.write_memory(UOP_POOL, micro_ops(SMALL, *_POOL))
        for program in ([*FAULTS[name], never], [_UOPS, finish()]):
            device.write_memory(INSN, words(SMALL, program))
            ends.append(execute(device, INSN, len(program), _MOST_CYCLES))
            _reset(device)
    return ends
