"""Bounds the memory of a network's processor steps: a step that wants more fails, and the worker lives on."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path
from typing import Dict, Iterator

_SHARE = 0.75
"""Of the memory that is free."""


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Let this process allocate most of the free memory and no more: beyond it, MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _kilobytes("/proc/self/status", "VmData") + int(_SHARE * _kilobytes("/proc/meminfo", "MemAvailable"))
    resource.setrlimit(resource.RLIMIT_DATA, (limit << 10 if hard < 0 else min(limit << 10, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _kilobytes(path: str, name: str) -> int:
    lines = Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    values: Dict[str, str] = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(values[name].split()[0])
