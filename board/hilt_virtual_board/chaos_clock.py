"""A virtual board's clock on the wall, which its chaos lets jump: no virtual board can set the machine's."""

from __future__ import annotations

import os
import time
from pathlib import Path

ENVIRONMENT = "HILT_CHAOS"
"""Names the directory of the board's chaos (hilt_virtual_board.chaos); a real board has none."""


def clock_offset(directory: Path) -> float:
    """Return the offset of the board's clock, in seconds."""
    try:
        return float((directory / "clock").read_text(encoding="ascii") or 0.0)
    except FileNotFoundError:
        return 0.0


def follow_clock() -> None:
    """Set the wall clock of this process to the board's, jumps included."""
    if ENVIRONMENT not in os.environ:
        return
    directory, real = Path(os.environ[ENVIRONMENT]), time.time
    time.time = lambda: real() + clock_offset(directory)
