"""Physically contiguous buffers (pynq.allocate), kept between trials: tensors by content, scratch by purpose."""

from __future__ import annotations

import math
from collections import OrderedDict
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Set

import numpy as np
import pynq

from .driver import DriverError
from .leftovers import frees_buffers

TENSOR_BYTES = 64 << 20
"""Bytes of tensors kept; beyond it the least recently used leave. Half of the CMA of a PYNQ-Z2 (128 MiB)."""
_PAGE = 4096
_FREES = frees_buffers(str(getattr(pynq, "__version__", "3")))


class OutOfContiguousMemoryError(DriverError):
    """The board has not enough contiguous memory (CMA) for one trial."""


class TensorError(DriverError):
    """A tensor's blob is missing or has another size than the trial says."""


def read_back(buffer: Any) -> None:
    """Synchronise the caches before the processor reads output of the accelerator.

    Data that the processor wrote itself is flushed already. Through a coherent port (the ACP of a Zynq-7000, in
    TVM's bitstreams) the accelerator writes into the processor's second-level cache. Invalidating alone would lose
    that data, so it is written to memory first. If the port is not coherent, the caches hold nothing that memory
    lacks, and there is nothing to write.
    """
    buffer.flush()
    buffer.invalidate()


class ContiguousMemory:
    """All buffers of the worker. Buffers stay valid until `clear`; a tensor, until the trial after the next `begin`.

    An unused buffer is kept for the next request that fits: pynq 2.7 gives no buffer back to the kernel as long as
    the process lives.
    """

    def __init__(self, blobs: Path) -> None:
        self._blobs = blobs
        self._tensors: "OrderedDict[str, _Part]" = OrderedDict()
        self._scratch: Dict[str, _Part] = {}
        self._in_use: Set[str] = set()
        self._spare: List[Any] = []

    def clear(self) -> None:
        """Forget the contents of all; their buffers are used again."""
        self._spare += [part.whole for part in (*self._tensors.values(), *self._scratch.values())]
        self._tensors.clear()
        self._scratch.clear()
        self._in_use.clear()

    def give_back(self) -> None:
        """Forget all buffers and use none again: the memory behind them may be gone with the old bitstream.

        pynq 2.7 frees none of them, so the daemon starts a new worker for another bitstream there (hilt_board.board).
        """
        self.clear()
        self._spare.clear()

    def begin(self) -> None:
        """Begin a trial: tensors that the last one used may leave."""
        self._in_use.clear()

    def tensor(self, sha256: str, count: int) -> Any:
        """Return a buffer (uint8) with the blob's `count` bytes, flushed.

        Raises TensorError, OutOfContiguousMemoryError.
        """
        self._in_use.add(sha256)
        if sha256 not in self._tensors:
            contents = self.contents(sha256, count)
            self._make_room(count)
            part = self._allocate(count)
            part.buffer[:] = contents
            part.buffer.flush()
            self._tensors[sha256] = part
        self._tensors.move_to_end(sha256)
        buffer = self._tensors[sha256].buffer
        if buffer.nbytes != count:
            raise TensorError("tensor {} has {} bytes, the trial says {}".format(sha256[:12], buffer.nbytes, count))
        return buffer

    def contents(self, sha256: str, count: int) -> Any:
        """Return the blob's bytes (uint8). Raises TensorError."""
        try:
            contents = np.fromfile(str(self._blobs / sha256), dtype=np.uint8)
        except OSError as error:
            raise TensorError("tensor {} cannot be read: {}".format(sha256[:12], error.strerror)) from None
        if contents.nbytes != count:
            raise TensorError("tensor {} has {} bytes, the trial says {}".format(sha256[:12], contents.nbytes, count))
        return contents

    def restore(self) -> List[str]:
        """Return the tensors in use that a program has overwritten, now as they were."""
        restored = []
        for sha256 in sorted(self._in_use & set(self._tensors)):
            buffer = self._tensors[sha256].buffer
            read_back(buffer)
            contents = self.contents(sha256, buffer.nbytes)
            if not np.array_equal(buffer, contents):
                buffer[:] = contents
                buffer.flush()
                restored.append(sha256)
        return restored

    def scratch(self, purpose: str, count: int) -> Any:
        """Return the first `count` bytes (uint8) of the buffer kept for a purpose, which grows as needed.

        Contents are old.
        """
        part = self._scratch.get(purpose)
        if part is None or part.whole.nbytes < count:
            if part is not None:
                self._spare.append(self._scratch.pop(purpose).whole)
            part = self._scratch[purpose] = self._allocate(count)
        return part.whole[:count]

    def _make_room(self, count: int) -> None:
        while sum(part.whole.nbytes for part in self._tensors.values()) + count > TENSOR_BYTES and self._drop_oldest():
            pass

    def _drop_oldest(self) -> bool:
        for sha256 in self._tensors:
            if sha256 not in self._in_use:
                self._spare.append(self._tensors.pop(sha256).whole)
                return True
        return False

    def _allocate(self, count: int) -> "_Part":
        # Whole pages, so that no two buffers share a cache line.
        size = -(-max(count, 1) // _PAGE) * _PAGE
        whole = self._take_spare(size, 2 * size)
        while whole is None:
            try:
                # Cached, as TVM's buffers are: uncached, the processor does not see the data of a coherent port.
                whole = pynq.allocate(shape=(size,), dtype=np.uint8, cacheable=True)
            except (MemoryError, RuntimeError, OSError) as error:  # with one of these pynq says that there is no more
                whole = self._take_spare(size, math.inf)
                if whole is None and self._spare and _FREES:
                    self._spare.clear()  # each too small; the kernel has them again
                elif whole is None and not self._drop_oldest():
                    raise OutOfContiguousMemoryError(
                        "no {} bytes of contiguous memory: lower the trial's size or raise the board's CMA ({})".format(
                            count, error
                        )
                    ) from None
        return _Part(whole, count)

    def _take_spare(self, least: int, most: float) -> Any:
        """Return the smallest spare buffer of `least` to `most` bytes; None if there is none."""
        fitting = [index for index, buffer in enumerate(self._spare) if least <= buffer.nbytes <= most]
        return self._spare.pop(min(fitting, key=lambda index: self._spare[index].nbytes)) if fitting else None


class _Part(NamedTuple):
    """The used part of a buffer: its first `used` bytes."""

    whole: Any
    used: int

    @property
    def buffer(self) -> Any:
        return self.whole[: self.used]
