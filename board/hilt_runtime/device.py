"""VTA behind pynq, for a network that runs on a board alone. hilt's agent brings a device of its own (`Device`)."""

from __future__ import annotations

import hashlib
import sys
import time
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

import numpy as np

from hilt_runtime.errors import DeviceError, MemoryNeededError, TargetError

_FETCH, _LOAD, _COMPUTE, _STORE = 0x0000, 0x1000, 0x2000, 0x3000
_START, _START_AND_AUTO_RESTART = 0x01, 0x81
_DONE = _COMPUTE + 0x18
_IDENTITY, _IDENTITY_VALUE = 0x40, 0x48494C54
_FAULT_CODE, _CYCLES_LOW, _CYCLES_HIGH, _SOFT_RESET = 0x54, 0x60, 0x64, 0x68
_REGISTER_BYTES = 0x4000
_RESET_SECONDS = 1.0
_OLD_DONE_SECONDS = 0.005
"""A public bitstream's `done` of the run before stays until compute begins; a run is believed after so long."""


class DeviceInference(NamedTuple):
    """One run of a program: ok, timeout, bus_error or crash; cycles where the hardware counts them."""

    outcome: str
    reason: str
    cycles: Optional[int]
    seconds: float


class VtaDevice:
    """The accelerator that a network runs on."""

    parameters = ""
    """VTA's name for the parameters; empty if it is not known."""
    isa = ""
    bitstream = ""
    """SHA-256 of the file; empty if it is not known."""
    clock_hz = 0

    def check(self, target: Dict[str, Any], name: str) -> None:
        """Compare the accelerator with a bundle's target. Raises TargetError with both values."""
        text = "bundle {} is for {} {}, this board has {}: compile the network for this board"
        for part, key, there in (
            ("parameters", "parameters", self.parameters),
            ("ISA revision", "isa", self.isa),
        ):
            if there and target[key] != there:
                raise TargetError(text.format(name, part, target[key], there))
        wanted = target.get("bitstream", "")
        if wanted and self.bitstream and wanted != self.bitstream:
            raise TargetError(text.format(name, "bitstream", wanted[:12], self.bitstream[:12]))

    def allocate(self, size: int) -> Any:
        """Return `size` bytes of contiguous memory.

        The result is a uint8 array with pynq's `physical_address`, `flush` and `invalidate`. Raises MemoryNeededError.
        """
        raise NotImplementedError

    def run(self, instructions: Any, count: int, limit_seconds: float) -> DeviceInference:
        """Run `count` instructions from contiguous memory until FINISH, a fault, or the limit in the device's time."""
        raise NotImplementedError


class PynqDevice(VtaDevice):
    """VTA on the board that this process runs on, programmed with a .bit file."""

    def __init__(self, target: Dict[str, Any], bitstream: Optional[str] = None) -> None:
        """`target` is the bundle's. `bitstream` is a .bit file; without one the board must be programmed already.

        Raises DeviceError, TargetError.
        """
        try:
            import pynq
        except ImportError as error:
            text = "pynq cannot be imported ({}): run the network on a board with PYNQ, or give a device of your own"
            raise DeviceError(text.format(error)) from None
        self._pynq = pynq
        self.clock_hz = int(target["clock_hz"])
        if bitstream is not None:
            self._program(bitstream, target)
        self._registers = pynq.MMIO(int(target["register_base"]), _REGISTER_BYTES)
        self._counts = self._registers.read(_IDENTITY) == _IDENTITY_VALUE
        self.isa = target["isa"]
        self.parameters = self._described(target) if self._counts else ""

    def allocate(self, size: int) -> Any:
        return allocate(self._pynq, size)

    def run(self, instructions: Any, count: int, limit_seconds: float) -> DeviceInference:
        registers = self._registers
        if self._counts:
            self._soft_reset()
        old_done = registers.read(_DONE) & 1
        for offset, value in (
            (_FETCH + 0x10, count),
            (_FETCH + 0x18, int(instructions.physical_address)),
            (_LOAD + 0x10, 0),
            (_LOAD + 0x18, 0),
            (_COMPUTE + 0x20, 0),
            (_COMPUTE + 0x28, 0),
            (_STORE + 0x10, 0),
        ):
            registers.write(offset, value)
        started = time.perf_counter()
        registers.write(_FETCH, _START)
        for stage in (_LOAD, _COMPUTE, _STORE):
            registers.write(stage, _START_AND_AUTO_RESTART)
        return self._wait(started, limit_seconds, bool(old_done))

    def _wait(self, started: float, limit_seconds: float, old_done: bool) -> DeviceInference:
        registers = self._registers
        limit_cycles = int(limit_seconds * self.clock_hz)
        while True:
            done = registers.read(_DONE) & 1
            elapsed = time.perf_counter() - started
            cycles = self._cycles() if self._counts else None
            if done and (self._counts or not old_done or elapsed > _OLD_DONE_SECONDS):
                return DeviceInference("ok", "", cycles, elapsed)
            old_done = old_done and bool(done)
            if self._counts:
                fault = 0 if done else registers.read(_FAULT_CODE)
                if fault:
                    return DeviceInference(
                        "bus_error" if fault <= 2 else "crash", "fault {}".format(fault), cycles, elapsed
                    )
                late = cycles is not None and cycles > limit_cycles
            else:
                late = elapsed > limit_seconds
            if late:
                return DeviceInference("timeout", "no FINISH within {:g} s".format(limit_seconds), cycles, elapsed)

    def _cycles(self) -> int:
        read = self._registers.read
        while True:
            high, low = read(_CYCLES_HIGH), read(_CYCLES_LOW)
            if read(_CYCLES_HIGH) == high:
                return int(high) << 32 | int(low)

    def _soft_reset(self) -> None:
        self._registers.write(_SOFT_RESET, 1)
        deadline = time.perf_counter() + _RESET_SECONDS
        while self._registers.read(_SOFT_RESET) & 1:
            if time.perf_counter() > deadline:
                raise DeviceError("a soft reset of VTA does not end: load the bitstream again, or reboot the board")

    def _program(self, bitstream: str, target: Dict[str, Any]) -> None:
        try:
            self.bitstream = hashlib.sha256(Path(bitstream).read_bytes()).hexdigest()
        except OSError as error:
            raise DeviceError("bitstream {} cannot be read: {}".format(bitstream, error.strerror)) from None
        wanted = target.get("bitstream_file", "")
        if wanted and wanted != self.bitstream:
            text = "bitstream {} has SHA-256 {}, the bundle is for {}: take that one, or compile for this one"
            raise TargetError(text.format(bitstream, self.bitstream[:12], wanted[:12]))
        self.bitstream = ""  # compared; a bundle's own name of it need not be the file's hash
        self._pynq.Bitstream(str(bitstream)).download()
        if getattr(self._pynq.Device.active_device, "clock_hz", None) is None:
            self._pynq.Clocks.fclk0_mhz = self.clock_hz / 1e6

    def _described(self, target: Dict[str, Any]) -> str:
        """Return the parameters' name if the registers agree with it, else the registers' values."""
        wanted = target.get("identity")
        if not wanted:
            return ""
        read = self._registers.read
        there = [read(0x48), read(0x4C), read(0x50)]
        if there == list(wanted):
            return str(target["parameters"])
        return "registers {}".format(" ".join("{:08x}".format(value) for value in there))


def allocate(pynq: Any, size: int) -> Any:
    """Return contiguous memory of pynq's. Raises MemoryNeededError with the bytes needed and there."""
    try:
        return pynq.allocate(shape=(size,), dtype=np.uint8, cacheable=True)
    except (MemoryError, RuntimeError, OSError) as error:
        text = (
            "the network needs {} bytes of contiguous memory{}: raise the board's CMA (cma= in its boot arguments), or "
        )
        text += "end other programs that hold some ({})"
        raise MemoryNeededError(text.format(size, _free(), error)) from None


def _free() -> str:
    """Return how much contiguous memory the kernel has, if it says so."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("CmaFree:"):
                return ", {} bytes are free".format(int(line.split()[1]) * 1024)
    except (OSError, ValueError, IndexError):
        pass
    device = getattr(sys.modules.get("pynq"), "Device", None)
    free = getattr(getattr(device, "active_device", None), "contiguous_bytes_free", None)
    return "" if free is None else ", {} bytes are free".format(int(free))
