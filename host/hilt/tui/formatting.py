"""Figures as people read them, the same in every panel."""

from __future__ import annotations

import time
from collections.abc import Mapping

NONE = "–"


def microseconds(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f} µs"


def duration(seconds: float | None) -> str:
    """Return a duration such as `2 h 05 min`, `3 min 20 s`, `4 s`."""
    if seconds is None:
        return NONE
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 60} min {whole % 60:02} s" if whole >= 60 else f"{whole} s"


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
