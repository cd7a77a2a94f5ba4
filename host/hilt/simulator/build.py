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

import hashlib
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from hilt import paths
from hilt.simulator import compilation, toolchain
from hilt.simulator.compilation import LOG, PROCESSOR
from hilt.simulator.rtl_build import Profile, rtl_commands
from hilt.vta.accelerator import Accelerator

Form = Literal["golden", "rtl", "timing", "machine", "public"]

LIBRARY = "libvta.so"

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
_STANDARD_HEADERS: Mapping[Form, tuple[str, ...]] = {
    "golden": ("algorithm", "array", "cstdint", "cstdio", "cstring", "deque", "memory", "new", "string"),
    "timing": ("algorithm", "array", "cstdint", "cstring", "new", "vector"),
}
"""The standard headers of a form, compiled once for all parameter sets: half of a model's compile time."""
_OPTIMISATION: Mapping[Form, str] = {"timing": "-O2"}
"""The optimisation of forms without -O3: -O2 compiles a twin in three quarters of the time, and it predicts as fast."""
_COMMANDS = ("build.py", "compilation.py", "rtl_build.py", "pgo_workload.py")
"""The files of this folder that decide how a model is compiled."""


def build(accelerator: Accelerator, form: Form, profile: Profile = "fast") -> Path:
    """The shared library of this form, built if it is not in the cache. Safe with other builders at the same time.

    `profile` is the RTL's; the other forms are compiled in one way.

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
        with compilation.only_builder(folder):
            if not library.is_file():
                _build_into(folder, accelerator, form, profile)


def quick_build(accelerator: Accelerator, form: Form) -> Path:
    """Return the library for short runs: the fast one where it is in the cache, else of the RTL the quick one.

    Raises as `build` does.
    """
    fast = paths.cache() / "models" / model_key(accelerator, form) / LIBRARY
    return build(accelerator, form, "quick" if form == "rtl" and not fast.is_file() else "fast")


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
    for commands in _COMMANDS:
        digest.update(Path(__file__).with_name(commands).read_bytes())
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
            commands = rtl_commands(accelerator, profile, made / LIBRARY, Path(work) / "verilated", folder.parent)
        else:
            commands = [_plain_command(accelerator, form, made, folder.parent)]
        environment = toolchain.verilator().environment if form == "rtl" else None
        for command in commands:
            compilation.run(command, made / LOG, folder.with_suffix(".log"), model, environment)
        if model_key(accelerator, form, profile) != folder.name:
            return
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)


def _standard_header(models: Path, form: Form, flags: Sequence[str]) -> Path:
    """Return a header that includes the standard ones of `form`, with its compiled form beside it.

    The compiler reads the header itself where it does not take the compiled form.
    """
    text = "".join(f"#include <{name}>\n" for name in _STANDARD_HEADERS[form])
    if form == "golden":
        text += "#ifdef __AVX2__\n#include <immintrin.h>\n#endif\n"
    command = ["g++", *flags, "-fPIC", "-x", "c++-header"]

    def compile_header(folder: Path) -> None:
        header = folder / "standard.h"
        header.write_text(text, encoding="utf-8")
        failed_log = models / f"{folder.name}.log"
        compilation.run([*command, str(header)], folder / LOG, failed_log, "precompiled header")

    return compilation.shared_folder(models, "headers", (*command, text), compile_header) / "standard.h"


def _plain_command(accelerator: Accelerator, form: Form, made: Path, models: Path) -> list[str]:
    toolchain.require("g++")
    hls = paths.hls_directory()
    sources = [str(source) for source in _sources(form) if source.suffix == ".cpp"]
    flags = ["-std=c++17", _OPTIMISATION.get(form, "-O3"), PROCESSOR]
    if form in _STANDARD_HEADERS:
        flags += ["-include", str(_standard_header(models, form, flags))]
    return [
        *("g++", *flags),
        *("-fPIC", "-shared", "-fno-semantic-interposition", "-fno-plt", "-Wall", "-Wextra"),
        *_macros(accelerator),
        *(f"-I{hls / folder}" for folder in _FOLDERS[form]),
        *sources,
        *("-o", str(made / LIBRARY)),
    ]
