"""The speeds of boards' processors that were measured before, in HILT_HOME."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.network.core_speed import core_of
from hilt.network.processor import ProcessorSpeed, assumed_speed


def kept_speed(board: str) -> ProcessorSpeed:
    """Return the speed of a board's processor as it was measured, else the assumed one."""
    assumed = assumed_speed(core_of(board))
    try:
        values = json.loads(_path(board).read_text(encoding="utf-8"))
        slower, source = float(values["slower"]), str(values["source"])
    except (OSError, ValueError, TypeError, LookupError):  # not measured, or by an older hilt in other terms
        return assumed
    return ProcessorSpeed(assumed.core, slower, source) if 0 < slower < math.inf else assumed


def keep_speed(board: str, speed: ProcessorSpeed) -> None:
    """Keep the measured speed of a board's processor. Raises UnwritableFileError, OSError."""
    path = _path(board)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        json.dump(speed.facts(), file, indent=1)
        file.write("\n")


def _path(board: str) -> Path:
    """Return the file of a board; a virtual one is named by its board model."""
    kind = board.partition("?")[0].partition("@")[0]
    return paths.home() / "processors" / (re.sub(r"[^A-Za-z0-9_.-]", "_", kind) + ".json")
