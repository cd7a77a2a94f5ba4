"""Builds tests/native/replay.c with the engine for a processor, and runs it there: under QEMU where it is another."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hilt_runtime.native.library import FLAGS, SOURCES

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
NATIVE = ROOT / "board" / "hilt_runtime" / "native"
EMULATORS = {"armhf": "qemu-arm", "arm64": "qemu-aarch64"}
_TARGETS = {
    "armhf": ["-target", "arm-linux-musleabihf", "-mcpu=cortex_a9"],
    "arm64": ["-target", "aarch64-linux-musl", "-mcpu=cortex_a53"],
}
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class MissingError(Exception):
    """A tool that is not installed."""


def build(folder: Path, architecture: str = "", flags: tuple[str, ...] = ()) -> Path:
    """Return the program, with the flags of the engine's library. Raises MissingError, CalledProcessError."""
    program = folder / f"replay-{architecture or 'here'}"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-static", *_TARGETS[architecture]] if architecture else ["gcc"]
    own = [flag for flag in FLAGS if flag not in ("-shared", "-s")]
    units = [str(NATIVE / name) for name in SOURCES if name.endswith(".c")]
    command = [*compiler, *own, *flags, f"-I{NATIVE}", str(HERE / "replay.c"), *units, "-o", str(program), "-lm"]
    subprocess.run(command, check=True, env={**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder)})
    return program


def run(program: Path, architecture: str, *words: str, plugin: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program. Raises MissingError."""
    command = [str(program), *words]
    if architecture:
        emulator = shutil.which(EMULATORS[architecture])
        if emulator is None:
            raise MissingError(f"no {EMULATORS[architecture]}: apt-get install qemu-user")
        command = [emulator, *(["-plugin", str(plugin)] if plugin else []), *command]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)


def counter(folder: Path) -> Path:
    """Return QEMU's plugin that counts instructions."""
    plugin = folder / "count.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O2", str(HERE / "count_instructions.c"), "-o", str(plugin)], check=True
    )
    return plugin


def instructions(done: subprocess.CompletedProcess[str]) -> int:
    """Return the instructions that the plugin counted."""
    found = re.search(r"instructions: (\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])
