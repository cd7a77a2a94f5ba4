"""Runs of a build of the RTL, with assertions, against the golden model; in a process that a mutant may end."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hilt.simulator import toolchain
from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.rtl_build import rtl_flags
from hilt.vta.accelerator import Accelerator
from hilt_runtime.registers import Register
from tests.rtl.compare_models import Outcome, difference, memory_timing
from tests.rtl.mutation.mutant import VARIABLE
from tests.rtl.random_programs import RandomProgram, random_program

MOST_CYCLES = 1_000_000
_SECONDS = 300.0
"""For all runs of the RTL as it is."""
_TIMES = 6
"""A mutant whose runs take so many times as long as those hangs, which counts as noticed."""


@dataclass(frozen=True)
class Bench:
    """An accelerator, small so that a build takes seconds, and what runs on it.

    `compare` takes the RTL, the golden model and a list that receives the ends of the RTL's runs, and returns the
    first difference between the two, or None.
    """

    accelerator: Accelerator
    compare: Callable[[Path, Path, list[Execution]], str | None]


class BuildFailedError(Exception):
    """The RTL does not compile; the message is the end of the log."""


def build(accelerator: Accelerator, hls: Path, folder: Path) -> Path:
    """Return the shared library of the RTL in `hls` with assertions, made in `folder`. Raises BuildFailedError."""
    verilator = toolchain.verilator()
    macros = [f"-D{name}={value}" for name, value in accelerator.defines().items()]
    library = folder / "libvta.so"
    verilate = [
        *(str(verilator.program), "--cc", "--exe", "--Mdir", str(folder / "v"), *rtl_flags(accelerator)),
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
    seconds: float = 0.0

    def compared(self, right: Observation) -> str | None:
        """Return the sign, or the first run whose cycles or counters differ from those of the right RTL."""
        if self.sign or self.times == right.times:
            return self.sign
        place = next(n for n, (mine, other) in enumerate(zip(self.times, right.times, strict=True)) if mine != other)
        return f"time: run {place} {self.times[place]} for {right.times[place]}"[:100]


def observe(bench: Bench, library: Path, golden: Path, number: int, right: Observation | None = None) -> Observation:
    """Run everything on mutant `number`, which is beside `right`; 0 is the RTL as it is."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        log, times = Path(folder) / "log", Path(folder) / "times"
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_run, args=(bench, library, golden, number, log, times))
        process.start()
        process.join(_TIMES * right.seconds if right else _SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            return Observation("hangs", [])
        text = log.read_text(errors="replace")
        if process.exitcode == 0:
            return Observation(None, times.read_text().splitlines(), time.monotonic() - begun)
    if failed := re.search(r"Assertion failed in \S*?([\w.]+): (.*)", text):
        return Observation(f"assertion {failed[1].removeprefix('vta_top.')}", [])
    lines = text.strip().splitlines()
    return Observation(lines[-1][:100] if lines else f"the process ended with {process.exitcode}", [])


def _run(bench: Bench, library: Path, golden: Path, number: int, log: Path, times: Path) -> None:
    os.environ[VARIABLE] = str(number)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    ends: list[Execution] = []
    problem = bench.compare(library, golden, ends)
    if problem:
        os.write(2, f"\n{problem}\n".encode())
    else:
        times.write_text("".join(f"{end.cycles} {_digest(end)}\n" for end in ends))
    os._exit(1 if problem else 0)


def _digest(end: Execution) -> str:
    return hashlib.sha256(repr(end.counters).encode()).hexdigest()[:8]


def compare_random(
    accelerator: Accelerator, programs: int, instructions: int, rtl: Path, golden: Path, ends: list[Execution]
) -> str | None:
    """Compare the random programs of seeds from 1 on."""
    for seed in range(1, programs + 1):
        program = random_program(accelerator, seed, instructions, fill=True)
        problem = difference(program, outcome(rtl, program, ends, **memory_timing(seed)), outcome(golden, program))
        if problem is not None:
            return f"program {seed}: {problem}"
    return None


def outcome(
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
            reset(device)
        device.memory[: len(program.image)] = program.image
        execution = execute(device, program.insn_addr, len(program.records), MOST_CYCLES)
        if ends is not None:
            ends.append(execution)
        return Outcome(device.memory[: len(program.image)].copy(), execution)


def reset(device: SimulatedDevice) -> None:
    """Reset the accelerator softly, and wait until it has ended."""
    device.write_register(Register.SOFT_RESET, 1)
    for _ in range(10_000):
        if device.read_register(Register.SOFT_RESET) == 0:
            return
