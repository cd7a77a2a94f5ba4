"""The speeds of boards' processors that were measured before, in HILT_HOME."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.network.processor import ASSUMED, ProcessorSpeed


def kept_speed(board: str) -> ProcessorSpeed:
    """Return the speed of a board's processor as it was measured, else the assumed one."""
    try:
        values = json.loads(_path(board).read_text(encoding="utf-8"))
        speed = ProcessorSpeed(**values)
        rates = (speed.call_seconds, speed.macs_per_second, speed.bytes_per_second)
        return speed if all(float(rate) > 0 for rate in rates) else ASSUMED
    except (OSError, ValueError, TypeError):
        return ASSUMED


def keep_speed(board: str, speed: ProcessorSpeed) -> None:
    """Keep the measured speed of a board's processor. Raises UnwritableFileError, OSError."""
    path = _path(board)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump(asdict(speed), file, indent=1)
        file.write("\n")


def _path(board: str) -> Path:
    """Return the file of a board; a virtual one is named by its board model."""
    kind = board.partition("?")[0].partition("@")[0]
    return paths.home() / "processors" / (re.sub(r"[^A-Za-z0-9_.-]", "_", kind) + ".json")
