"""A pynq Device whose registers and memory are a model of the accelerator: the device of a virtual board.

pynq's own Bitstream, MMIO and allocate run unchanged on it. The "bitstream" is a real .bit file whose payload is
the shared library of the model; programming the device loads it. Importing this module registers the device with
pynq, so the worker imports it only if HILT_VERILATED names the board's board_model.
"""

from __future__ import annotations

import hashlib
import os
import time
import weakref
from pathlib import Path
from typing import Any, Callable, List, Optional, Tuple

import numpy as np
from pynq.buffer import PynqBuffer
from pynq.pl_server.device import Device

from hilt_board.bitfile import BitfileError, read_bitfile
from hilt_board.home import open_home
from hilt_runtime.registers import REGISTER_BYTES, Register

from .board_model import ModelSettings, load_board_model
from .contiguous import ContiguousAllocator
from .model import Model, ModelError
from .public_time import PublicTime

ENVIRONMENT = "HILT_VERILATED"


class NotProgrammedError(Exception):
    """Registers or memory were used before a bitstream was loaded."""


class VerilatedDevice(Device):  # type: ignore[misc]  # pynq has no types
    """The device of a virtual board. Registers appear at the board model's `register_base` once it is programmed."""

    _probe_priority_ = 50

    @classmethod
    def _probe_(cls) -> List["VerilatedDevice"]:
        return [cls(load_board_model(Path(os.environ[ENVIRONMENT])))]

    def __init__(self, board_model: ModelSettings) -> None:
        super().__init__("verilated0")
        self.name = board_model.name
        self.board_model = board_model
        self.capabilities = {"REGISTER_RW": True}
        self._loaded: Optional[str] = None
        self._model: Optional[Model] = None
        self._allocator = ContiguousAllocator(0)
        self._public: Optional[PublicTime] = None
        """The duration of the next program, on a board with a public bitstream."""
        self._not_before = 0.0
        """The earliest time at which the program that was started last may be done."""

    @property
    def clock_hz(self) -> int:
        return self.board_model.clock_hz

    @property
    def time_scale(self) -> float:
        """Wall seconds that one second of the device may take."""
        return self.board_model.time_scale

    @property
    def wall_clock(self) -> Optional[Callable[[], float]]:
        """The clock of a board whose programs take a modelled time; None if the host's own does."""
        return None if self._public is None else self._public.now

    @property
    def contiguous_bytes_free(self) -> int:
        """Bytes that one `allocate` can have."""
        return self._allocator.free

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Load a bitstream, for Bitstream.download.

        Memory keeps its contents if the same design is loaded again, as DRAM does. Raises BitfileError (not a .bit,
        truncated, wrong part) or ModelError; then the device stays as it was.
        """
        bitfile = read_bitfile(Path(bitstream.bitfile_name))
        bitfile.require_part(self.board_model.part)
        payload = bitfile.payload()
        digest = hashlib.sha256(payload).hexdigest()
        if self._model is not None and digest == self._loaded:
            self._model.reset()
            if self._public is not None:
                self._public.reset()
        else:
            self._load(payload, digest)

    def _load(self, payload: bytes, digest: str) -> None:
        if not payload.startswith(b"\x7fELF"):
            raise BitfileError("bitstream is for a real board: its payload is not a model of the accelerator")
        library = open_home().models / (digest + ".so")
        if not library.exists():
            fresh = library.with_suffix(".{}.new".format(os.getpid()))
            fresh.write_bytes(payload)
            fresh.chmod(0o700)
            fresh.replace(library)
        self._model = Model(library, self.board_model.memory_model())
        if self.board_model.machine is not None:
            self._public = PublicTime(self._model, library, self.board_model)
        self._allocator = ContiguousAllocator(self.board_model.memory["bytes"])
        self._loaded = digest

    def read_registers(self, address: int, length: int) -> bytes:
        """Return `length` bytes at a physical address, in words of four, for MMIO.read."""
        model, offset = self._decode(address, length)
        if self._public is not None:
            words = [self._public.read(offset + index) for index in range(0, length, 4)]
            return b"".join(word.to_bytes(4, "little") for word in words)
        if offset == Register.DONE_READ:
            time.sleep(max(0.0, self._not_before - time.monotonic()))
            model.step(self.board_model.quantum_cycles)
        words = [model.read_register(offset + index) for index in range(0, length, 4)]
        return b"".join(word.to_bytes(4, "little") for word in words)

    def write_registers(self, address: int, data: bytes) -> None:
        """Write registers, for MMIO.write."""
        model, offset = self._decode(address, len(data))
        if offset == Register.FETCH_CONTROL:
            self._not_before = time.monotonic() + self.board_model.run_seconds
        for index in range(0, len(data), 4):
            value = int.from_bytes(data[index : index + 4], "little")
            if self._public is not None:
                self._public.write(offset + index, value)
            else:
                model.write_register(offset + index, value)

    def allocate(self, shape: Any, dtype: Any, **_: Any) -> PynqBuffer:
        """Return a view of the model's own memory, for pynq.allocate. Raises MemoryError if too little is free."""
        if self._model is None:
            raise NotProgrammedError("memory belongs to the model: load a bitstream first")
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        allocator = self._allocator
        offset = allocator.take(count)
        region = self._model.view(offset, max(count, 1))
        weakref.finalize(region, allocator.give, offset, count)
        return PynqBuffer(
            shape, dtype, buffer=region, device=self, device_address=self.board_model.memory["base"] + offset, bo=offset
        )

    def flush(self, bo: int, offset: int, pointer: int, size: int) -> None:
        """Do nothing: the buffer is the memory."""

    def invalidate(self, bo: int, offset: int, pointer: int, size: int) -> None:
        """Do nothing: the buffer is the memory."""

    def _decode(self, address: int, length: int) -> Tuple[Model, int]:
        if self._model is None:
            raise NotProgrammedError("no register answers at 0x{:x}: load a bitstream first".format(address))
        offset = address - self.board_model.register_base
        if offset < 0 or offset + length > REGISTER_BYTES or offset % 4 or length % 4:
            raise ModelError("no register answers at 0x{:x}".format(address))
        return self._model, offset
