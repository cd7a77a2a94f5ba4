"""Durations for people."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """Return a duration such as `2 h 05 min`, `3 min 20 s`, `4 s`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
