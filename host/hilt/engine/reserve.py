"""A little room that a run keeps on its disk, given back when the disk is full so that its end can be recorded."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_RESERVED_BYTES = 256 << 10
"""SQLite writes a page of 4 KiB for each table and index that a change of state touches."""


class DiskReserve:
    """A file of zeros in a run's directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "reserve"

    def take(self) -> None:
        """Allocate the room; a disk that has none is met by the run itself."""
        with suppress(OSError), self._path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, _RESERVED_BYTES)

    def give_back(self) -> None:
        """Free the room."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
