"""The progress of a command, for its own line and for other processes: HILT_HOME/commands/ID.jsonl, a line a change.

A command holds the lock of its file while it works, so its end is seen however it ends. The next reader removes the
file of a command that was killed.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol
from uuid import uuid4

from hilt.engine.durations import seconds_text
from hilt.plain_text import plain

_FOLDER, _ENDING = "commands", ".jsonl"
_LEAST_SECONDS = 1.0
"""Shorter times are not shown."""
_WRITE_SECONDS = 0.25
"""Seconds between two lines of one phase and count, at least."""
_MOST_BYTES = 64 * 1024
"""A file that has grown so long is begun anew."""
_MOST_LINE = 2048
_MOST_TEXT = 300


class Phases(Protocol):
    """Takes the begin of each phase, and the work done in it."""

    def begin(self, phase: str) -> None:
        """Begin a phase without a count."""

    def counter(self, phase: str, units: str) -> Callable[[int, int], None]:
        """Return a function of the work done and of all; its first call begins the phase."""


@dataclass(frozen=True)
class CommandProgress:
    """A command at one moment.

    Attributes:
        command: The command for people, as in `quantize ic.onnx`.
        campaign: The uuid of the campaign whose last stage this is; empty for any other command.
        phase: The phase, as in `placing`.
        began: The begin of the phase, in seconds since the epoch.
        done: The work done in it.
        count: All work of it; 0 where it is not counted.
        units: The unit of both, in the plural.
    """

    command: str = ""
    campaign: str = ""
    phase: str = ""
    began: float = 0.0
    done: int = 0
    count: int = 0
    units: str = ""

    def text(self, now: float) -> str:
        """Return the phase as of `now`, in seconds since the epoch: `placing: 5 of 26 nodes, 30 s left`."""
        spent = now - self.began
        if not self.count:
            return self.phase + (f", {seconds_text(spent)}" if self.phase and spent >= _LEAST_SECONDS else "")
        left = spent / self.done * (self.count - self.done) if self.done else 0.0
        words = f"{self.phase}: {self.done:,} of {self.count:,} {self.units}"
        if left >= _LEAST_SECONDS:
            return f"{words}, {seconds_text(left)} left"
        return words if self.done and spent < _LEAST_SECONDS else f"{words}, {seconds_text(spent)}"


class CommandFile:
    """The file of one command. A context manager. A disk that is full loses lines here, and nothing else."""

    def __init__(self, home: Path) -> None:
        self._path = home / _FOLDER / f"{uuid4().hex}{_ENDING}"
        self._file: IO[bytes] | None = None
        self._work, self._written = ("", 0), 0.0

    def __enter__(self) -> CommandFile:
        hidden = self._path.with_suffix(".new")
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.fdopen(os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "r+b")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(self._path)  # it is seen with its lock only
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._file.close()

    def put(self, progress: CommandProgress) -> None:
        """Write a line for a new phase or count, and for the same ones where the last line is old enough."""
        now, work = time.monotonic(), (progress.phase, progress.count)
        if self._file is None or (work == self._work and now - self._written < _WRITE_SECONDS):
            return
        self._work, self._written = work, now
        values = {
            name: value[:_MOST_TEXT] if isinstance(value, str) else value for name, value in asdict(progress).items()
        }
        with suppress(OSError):
            if self._file.tell() > _MOST_BYTES:
                self._file.seek(0)
                self._file.truncate()
            self._file.write(json.dumps(values, separators=(",", ":")).encode() + b"\n")
            self._file.flush()


def live_commands(home: Path) -> list[CommandProgress]:
    """Return the latest line of each command that works now, by its words; remove files of dead ones."""
    found: list[CommandProgress] = []
    for path in (home / _FOLDER).glob(f"*{_ENDING}"):
        with suppress(OSError), path.open("rb") as file:
            if not _is_held(file):
                path.unlink(missing_ok=True)
            elif (progress := _latest(file)) is not None:
                found.append(progress)
    return sorted(found, key=lambda each: each.command)


def last_stage(home: Path, campaign: str) -> CommandProgress | None:
    """Return the progress of a campaign's last stage, which makes the network's bundle; None if none goes on."""
    return next((progress for progress in live_commands(home) if progress.campaign == campaign), None)


def _is_held(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _latest(file: IO[bytes]) -> CommandProgress | None:
    """Return the last whole line; None if there is none, or one of another version."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 2 * _MOST_LINE))
    lines = file.read(2 * _MOST_LINE).split(b"\n")[:-1]
    try:
        values = json.loads(lines[-1])
        found = CommandProgress(
            command=plain(str(values["command"])),
            campaign=str(values["campaign"]),
            phase=plain(str(values["phase"])),
            began=float(values["began"]),
            done=int(values["done"]),
            count=int(values["count"]),
            units=plain(str(values["units"])),
        )
    except (IndexError, KeyError, TypeError, ValueError, RecursionError, OverflowError):
        return None
    return found if isfinite(found.began) and found.done >= 0 and found.count >= 0 else None
