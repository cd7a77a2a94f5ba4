"""Physically contiguous buffers (pynq.allocate), kept between trials: tensors by content, scratch by purpose."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, List, Set

import numpy as np
import pynq

from .driver import DriverError

TENSOR_BYTES = 64 << 20
"""Tensors kept; beyond it the least recently used leave. Half of what a PYNQ-Z2 has (CMA of 128 MiB)."""
_PAGE = 4096


class OutOfContiguousMemoryError(DriverError):
    """The board has not enough contiguous memory (CMA) for one trial."""


class TensorError(DriverError):
    """A tensor's blob is missing or has another size than the trial says."""


class ContiguousMemory:
    """All buffers of the worker. Buffers stay valid until `clear`; a tensor, until the trial after the next `begin`."""

    def __init__(self, blobs: Path) -> None:
        self._blobs = blobs
        self._tensors: "OrderedDict[str, Any]" = OrderedDict()
        self._scratch: Dict[str, Any] = {}
        self._in_use: Set[str] = set()

    def clear(self) -> None:
        """Gives everything back: the memory behind it may be gone with the old bitstream."""
        self._tensors.clear()
        self._scratch.clear()
        self._in_use.clear()

    def begin(self) -> None:
        """A new trial: tensors that the last one used may leave."""
        self._in_use.clear()

    def tensor(self, sha256: str, count: int) -> Any:
        """A buffer (uint8) with the blob's `count` bytes, flushed. Raises TensorError, OutOfContiguousMemoryError."""
        self._in_use.add(sha256)
        if sha256 not in self._tensors:
            contents = self.contents(sha256, count)
            self._make_room(count)
            buffer = self._allocate(count)
            buffer[:] = contents
            buffer.flush()
            self._tensors[sha256] = buffer
        self._tensors.move_to_end(sha256)
        buffer = self._tensors[sha256]
        if buffer.nbytes != count:
            raise TensorError("tensor {} has {} bytes, the trial says {}".format(sha256[:12], buffer.nbytes, count))
        return buffer

    def contents(self, sha256: str, count: int) -> Any:
        """The blob's bytes (uint8). Raises TensorError."""
        try:
            contents = np.fromfile(str(self._blobs / sha256), dtype=np.uint8)
        except OSError as error:
            raise TensorError("tensor {} cannot be read: {}".format(sha256[:12], error.strerror)) from None
        if contents.nbytes != count:
            raise TensorError("tensor {} has {} bytes, the trial says {}".format(sha256[:12], contents.nbytes, count))
        return contents

    def restore(self) -> List[str]:
        """Tensors in use that a program has overwritten, now as they were."""
        restored = []
        for sha256 in sorted(self._in_use & set(self._tensors)):
            buffer = self._tensors[sha256]
            buffer.invalidate()
            contents = self.contents(sha256, buffer.nbytes)
            if not np.array_equal(buffer, contents):
                buffer[:] = contents
                buffer.flush()
                restored.append(sha256)
        return restored

    def scratch(self, purpose: str, count: int) -> Any:
        """The first `count` bytes (uint8) of the buffer kept for a purpose, which grows as needed; contents are old."""
        buffer = self._scratch.get(purpose)
        if buffer is None or buffer.nbytes < count:
            self._scratch.pop(purpose, None)
            del buffer
            buffer = self._scratch[purpose] = self._allocate(count)
        return buffer[:count]

    def _make_room(self, count: int) -> None:
        while sum(each.nbytes for each in self._tensors.values()) + count > TENSOR_BYTES and self._drop_oldest():
            pass

    def _drop_oldest(self) -> bool:
        for sha256 in self._tensors:
            if sha256 not in self._in_use:
                del self._tensors[sha256]
                return True
        return False

    def _allocate(self, count: int) -> Any:
        """A buffer of `count` bytes; pynq says with MemoryError or RuntimeError that there is no more."""
        while True:
            try:
                # Whole pages, so that no two buffers share a cache line.
                return pynq.allocate(shape=(-(-count // _PAGE) * _PAGE,), dtype=np.uint8)[:count]
            except (MemoryError, RuntimeError, OSError) as error:
                if not self._drop_oldest():
                    raise OutOfContiguousMemoryError(
                        "no {} bytes of contiguous memory: lower the trial's size or raise the board's CMA ({})".format(
                            count, error
                        )
                    ) from None
