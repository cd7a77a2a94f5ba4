"""Samples of a process: memory, descriptors, threads; and of files on a disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) .*\n(?:[A-Z].*\n)*?Rss:\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """The state of a process. Memory: resident, in KiB."""

    memory_kib: int
    descriptors: int
    threads: int


def sample(pid: int) -> Sample | None:
    """Return the state of the process, or None if it has ended."""
    root = Path("/proc") / str(pid)
    try:
        resident = _RESIDENT.search((root / "status").read_text())
        if resident is None:
            return None  # a zombie
        return Sample(int(resident[1]), len(list((root / "fd").iterdir())), len(list((root / "task").iterdir())))
    except (FileNotFoundError, ProcessLookupError):
        return None


def resident_of_size(pid: int, size: int) -> int:
    """Return the resident KiB of a process' mappings of exactly `size` bytes; 0 if it has ended."""
    try:
        text = (Path("/proc") / str(pid) / "smaps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    mappings = ((int(end, 16) - int(begin, 16), int(resident)) for begin, end, resident in _MAPPING.findall(text))
    return sum(resident for length, resident in mappings if length == size)


def children(pid: int) -> list[int]:
    """Return the ids of the processes that the threads of a process started."""
    lists = Path("/proc").glob(f"{pid}/task/*/children")
    return sorted(int(child) for each in lists for child in each.read_text().split())


def disk_kib(folder: Path) -> int:
    """Return the size of all files below a folder in KiB, holes not counted."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks // 2
        except FileNotFoundError:
            continue  # a temporary file, gone since
    return total
