"""The runtime's native engine, built on the host for a board's processor: once for its sources and compilers.

ziglang (the extra `cross`), Debian's cross compilers and, for a board that is a process here, gcc build it. The result
needs glibc 2.31 at most (PYNQ 2.7).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hilt import paths
from hilt_runtime.native.library import FLAGS, MACHINES, SENT, SOURCES, source_digest

_LOG = logging.getLogger("hilt.link")
_BUILD_SECONDS = 300
_ZIG = {
    "armv7l": ("-target", "arm-linux-gnueabihf.2.31", "-mcpu=cortex_a9"),
    "aarch64": ("-target", "aarch64-linux-gnu.2.31", "-mcpu=cortex_a53"),
    "x86_64": ("-target", "x86_64-linux-gnu.2.31", "-mcpu=x86_64_v2"),
}
_GCC = {
    "armv7l": ("arm-linux-gnueabihf-gcc", "-mcpu=cortex-a9", "-mfpu=neon", "-mfloat-abi=hard"),
    "aarch64": ("aarch64-linux-gnu-gcc", "-mcpu=cortex-a53"),
}


def library_name(machine: str) -> str:
    """Return the library's name for a processor as `uname -m` says it; empty if hilt builds none for it."""
    return SENT.format(MACHINES[machine]) if machine in MACHINES else ""


@functools.cache
def engine_library(machine: str, here: bool = False) -> bytes | None:
    """Return the engine's library for a processor (`uname -m`), or None where no compiler for it is there.

    `here`: the board is a process of this machine, whose own instructions the library may use.
    """
    if machine not in MACHINES:
        return None
    for command in _commands(MACHINES[machine], here):
        try:
            return _built(command)
        except (OSError, subprocess.SubprocessError) as error:
            _LOG.warning("the native engine is not built by %s: %s", Path(command[0]).name, error)
    return None


def _commands(machine: str, here: bool) -> Iterator[list[str]]:
    own = MACHINES.get(platform.machine()) == machine
    if here and own and (gcc := shutil.which("gcc")):
        yield [gcc, "-mcpu=native" if machine == "aarch64" else "-march=native"]
    if importlib.util.find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", "cc", *_ZIG[machine]]
    name, *flags = _GCC.get(machine, ("",))
    if name and (cross := shutil.which(name)):
        yield [cross, *flags]
    if own and not here and (gcc := shutil.which("gcc")):
        yield [gcc, *flags]


def _built(command: list[str]) -> bytes:
    """Return the library as a compiler makes it, from the cache if it was made before.

    Raises OSError, SubprocessError.
    """
    facts = [source_digest(), *command, _version(command[0]), _processor(command)]
    library = paths.cache() / "native" / hashlib.sha256("\0".join(facts).encode()).hexdigest() / "libhilt.so"
    if not library.is_file():
        library.parent.mkdir(parents=True, exist_ok=True)
        sources = paths.board_package_directory().with_name("hilt_runtime") / "native"
        units = [str(sources / name) for name in SOURCES if name.endswith(".c")]
        with tempfile.TemporaryDirectory(dir=library.parent) as work:
            made = Path(work) / library.name
            environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": work}
            subprocess.run(
                [*command, *FLAGS, *units, "-o", str(made), "-lm"],
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_BUILD_SECONDS,
                env=environment,
            )
            made.replace(library)
    return library.read_bytes()


def _version(program: str) -> str:
    if program == sys.executable:
        from importlib.metadata import version

        return version("ziglang")
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout


def _processor(command: list[str]) -> str:
    from hilt.simulator import toolchain

    return toolchain.processor() if "native" in command[-1] else ""
