"""Figures as people read them, the same in every panel."""

from __future__ import annotations

import time
from collections.abc import Mapping

from hilt.engine.durations import seconds_text

NONE = "–"


def microseconds(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f} µs"


def duration(seconds: float | None) -> str:
    """Return a duration for people; NONE if it is not known."""
    return NONE if seconds is None else seconds_text(seconds)


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else NONE


def clock(at: float) -> str:
    """Return the local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def knobs(values: Mapping[str, int]) -> str:
    """Return a configuration in one line; `tile_` is left out of the names."""
    return " ".join(f"{name.removeprefix('tile_')}={value}" for name, value in values.items())


def bar(share: float, cells: int) -> str:
    """Return a share from 0 to 1 as so many cells; any share above 0 is visible."""
    full = min(max(round(share * cells), 1 if share > 0 else 0), cells)
    return "█" * full + "░" * (cells - full)
