"""Boards that nothing brings back: kept apart, with the reason, until somebody has seen to them and releases them.

A file for each in HILT_HOME/quarantine, so that processes need not wait for each other.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.link.errors import QuarantinedError

CHECKLIST = (
    "look at its power supply (a USB port of a computer is too weak for many boards), the seat of its SD card, "
    "its network cable, and whether it boots with nothing loaded"
)
_LONGEST_FILE_NAME = 128
"""Characters of a board's name that are used; file systems take 255 bytes, and a file that is being written has some
more."""


@dataclass(frozen=True)
class Quarantine:
    """Why a board is kept apart, and since when (seconds since the epoch)."""

    reason: str
    since: float


def quarantine(name: str, reason: str) -> None:
    """Keep the board apart from now on. Raises UnwritableFileError."""
    path = _path(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump({"board": name, **asdict(Quarantine(reason, time.time()))}, file)


def quarantined() -> dict[str, Quarantine]:
    """Return all boards that are kept apart, by name."""
    return {_name(path): _read(path) for path in sorted(_directory().glob("*.json"))}


def check_free(name: str) -> None:
    """Raise QuarantinedError if the board is kept apart."""
    path = _path(name)
    if path.exists():
        found = _read(path)
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.since))
        raise QuarantinedError(
            f"board {name} is quarantined since {since}: {found.reason}; {CHECKLIST}; then `hilt boards release {name}`"
        )


def release(name: str) -> bool:
    """Let the board be used again; return False if it was not kept apart."""
    path = _path(name)
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def _directory() -> Path:
    return paths.home() / "quarantine"


def _path(name: str) -> Path:
    stem = quote(name, safe="")
    if len(stem) > _LONGEST_FILE_NAME:
        stem = f"{stem[:_LONGEST_FILE_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return _directory() / f"{stem}.json"


def _name(path: Path) -> str:
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["board"])
    except (OSError, ValueError, KeyError, TypeError):
        return unquote(path.stem)


def _read(path: Path) -> Quarantine:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return Quarantine(str(values["reason"]), float(values["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Quarantine(f"{path} cannot be read", 0.0)  # something kept it apart: it stays so
