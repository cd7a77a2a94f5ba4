"""A simulated accelerator as a device for `hilt_runtime`: a network runs in this process, without a board."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hilt.network.target import CompileTarget
from hilt.simulator.build import Form, quick_build
from hilt.simulator.device import DeviceStatus, SimulatedDevice
from hilt.simulator.driver import execute
from hilt_runtime.device import VtaDevice
from hilt_runtime.errors import MemoryNeededError
from hilt_runtime.register_protocol import DeviceRun

_PAGE = 4096


class SimulatedVta(VtaDevice):
    """VTA in a model of hls/ (golden or rtl), with `memory_bytes` of memory. A context manager."""

    def __init__(self, target: CompileTarget, form: Form = "golden", memory_bytes: int = 1 << 28) -> None:
        self.parameters = target.accelerator.parameters.name
        self.isa = str(target.accelerator.isa)
        self.table = target.accelerator.table
        self.window = target.accelerator.window_rows > 0
        self.bands = target.accelerator.bands
        self.bitstream = ""
        self.clock_hz = target.accelerator.clock_hz
        library: Path = quick_build(target.accelerator, form)
        self._form = form
        self._model = SimulatedDevice(library, replace(target.memory, bytes=memory_bytes))
        self._base = target.memory.base
        self._free = 0

    def __enter__(self) -> SimulatedVta:
        return self

    def __exit__(self, *_: object) -> None:
        self._model.close()

    def allocate(self, size: int) -> Any:
        """See VtaDevice."""
        left = len(self._model.memory) - self._free
        if size > left:
            raise MemoryNeededError(f"the network needs {size} bytes of contiguous memory, {left} bytes are free")
        place = self._free
        self._free += -(-size // _PAGE) * _PAGE
        view = self._model.memory[place : place + size].view(_Placed)
        view.physical_address = self._base + place
        return view

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        """See VtaDevice."""
        started = time.perf_counter()
        self._model.reset()
        limit = (1 << 40) if self._form == "golden" else int(limit_seconds * self.clock_hz)
        execution = execute(self._model, instructions.physical_address, count, limit)
        seconds = time.perf_counter() - started
        if execution.status is DeviceStatus.DONE:
            return DeviceRun("ok", "", execution.cycles, seconds)
        if execution.fault is not None:
            return DeviceRun("crash", str(execution.fault), execution.cycles, seconds)
        return DeviceRun("timeout", f"no FINISH within {limit} cycles", execution.cycles, seconds)


class _Placed(np.ndarray[Any, np.dtype[np.uint8]]):
    """Memory with pynq's methods; nothing is cached here."""

    physical_address: int = 0

    def flush(self) -> None:
        """Do nothing: the model sees every write."""

    def invalidate(self) -> None:
        """Do nothing: the model's writes are visible."""
