"""A stand-in for pynq in a worker of its own process: contiguous memory that the "kernel" counts by process.

FAKE_PYNQ_VERSION decides whether a buffer that nobody holds is freed at once (3.0) or with its process (2.7).
FAKE_CMA is a directory with one file for each buffer. FAKE_CMA_BYTES is the limit of all of them together.
"""

from __future__ import annotations

import itertools
import os
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

__version__ = os.environ["FAKE_PYNQ_VERSION"]
_BUFFERS = Path(os.environ["FAKE_CMA"])
_ORDINALS = itertools.count()
_COMPUTE_DONE = 0x2018


class Buffer(np.ndarray):  # type: ignore[type-arg]
    physical_address = 0x1000_0000

    def flush(self) -> None:
        pass

    def invalidate(self) -> None:
        pass


def used_bytes() -> int:
    """Return the bytes that processes which still run hold."""
    files = [path for path in _BUFFERS.iterdir() if Path("/proc", path.name.split("-")[0]).exists()]
    return sum(int(path.read_text()) for path in files)


def allocate(shape: Any, dtype: Any, cacheable: bool = False) -> Buffer:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if used_bytes() + size > int(os.environ["FAKE_CMA_BYTES"]):
        raise RuntimeError("Allocate failed: 4294967295")
    file = _BUFFERS / f"{os.getpid()}-{next(_ORDINALS)}"
    file.write_text(str(size))
    memory = np.zeros(shape, dtype)
    if not __version__.startswith("2."):
        weakref.finalize(memory, file.unlink)
    return memory.view(Buffer)


class Bitstream:
    def __init__(self, path: str) -> None:
        self.bitfile_name = path

    def download(self) -> None:
        pass


class MMIO:
    """Registers of a design that is done with every program at once, and writes nothing."""

    def __init__(self, base: int, length: int) -> None:
        pass

    def read(self, offset: int) -> int:
        return 1

    def write(self, offset: int, value: int) -> None:
        pass


Device = SimpleNamespace(active_device=SimpleNamespace(name="fake", tag="fake", clock_hz=100_000_000))
