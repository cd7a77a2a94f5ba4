"""The memory behind the four AXI ports: guarded on both sides, and with places that answer with an error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GUARD_BYTES = 4096
GUARD = 0xA7


class BusError(Exception):
    """An error that makes a slave model answer SLVERR."""


class GuardedMemory:
    """A memory with `image` from byte address `base` on, between guards that no program may touch.

    Accesses outside it, and to the addresses in `errors` of a port, raise BusError.
    """

    def __init__(self, base: int, image: NDArray[np.uint8]) -> None:
        self.replace(base, image)

    def replace(self, base: int, image: NDArray[np.uint8]) -> None:
        """Replace this memory by another, whole and without errors."""
        self.base, self.size = base, len(image)
        guard = bytes([GUARD]) * GUARD_BYTES
        self.bytes = bytearray(guard + image.tobytes() + guard)
        self.errors: dict[str, range] = {}

    @property
    def image(self) -> NDArray[np.uint8]:
        return np.frombuffer(bytes(self.bytes), dtype=np.uint8)[GUARD_BYTES : GUARD_BYTES + self.size]

    def guards_are_whole(self) -> bool:
        guard = bytes([GUARD]) * GUARD_BYTES
        return self.bytes[:GUARD_BYTES] == guard and self.bytes[-GUARD_BYTES:] == guard

    def port(self, name: str) -> MemoryPort:
        return MemoryPort(self, name)

    def slice(self, port: str, address: int, length: int) -> slice:
        start = address - self.base + GUARD_BYTES
        if not 0 <= start <= start + length <= len(self.bytes) or address in self.errors.get(port, ()):
            raise BusError(f"{port} at {address:#x}")
        return slice(start, start + length)


class MemoryPort:
    """The interface that cocotbext-axi's slave models call."""

    def __init__(self, memory: GuardedMemory, name: str) -> None:
        self._memory, self._name = memory, name

    async def read(self, address: int, length: int) -> bytes:
        return bytes(self._memory.bytes[self._memory.slice(self._name, address, length)])

    async def write(self, address: int, data: bytes) -> None:
        self._memory.bytes[self._memory.slice(self._name, address, len(data))] = data
