"""Shared by all builds of models: the lock of a builder, a command with its log, the error, files of many models."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hilt.simulator import toolchain

LOG = "build.log"
PROCESSOR = "-march=native"
_LOG_TAIL = 15


class BuildError(RuntimeError):
    """A model did not compile; the message ends with the end of its log, and `log` is all of it."""

    def __init__(self, message: str, log: Path) -> None:
        super().__init__(message, log)  # pickle makes it of these in another process
        self.log = log

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0])


@contextmanager
def only_builder(folder: Path) -> Iterator[None]:
    """Hold the lock of the builders of `folder`, which need not exist."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(
    command: Sequence[str], log: Path, failed_log: Path, model: str, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command of a build, with its output at the end of `log`.

    Raises BuildError where it fails. `log` is then copied to `failed_log`, which outlives the folder of the build.
    """
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


def shared_folder(models: Path, name: str, facts: Iterable[str], make: Callable[[Path], None]) -> Path:
    """Return the folder of files that many models share, made by `make` if it is not there.

    It is `models/<name>-<key>`; the key is of `facts`, the compiler and the processor.
    """
    facts = (*facts, toolchain.compiler(), toolchain.processor())
    folder = models / f"{name}-{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:32]}"
    if folder.is_dir():
        return folder
    with only_builder(folder):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=".building-", dir=models) as work:
                made = Path(work) / "shared"
                made.mkdir()
                make(made)
                made.rename(folder)
    return folder
