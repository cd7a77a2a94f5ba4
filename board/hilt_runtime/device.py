"""VTA behind pynq, for a network that runs on a board alone. hilt's agent brings a device of its own (`Device`)."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any, Dict, Optional

import numpy as np

from hilt_runtime.errors import DeviceError, MemoryNeededError, TargetError
from hilt_runtime.isa import BANDS_OF_BUILD, READ_PORTS_OF_BUILD, TABLE_OF_BUILD, WINDOW_OF_BUILD
from hilt_runtime.register_protocol import DeviceRun, RegisterProtocol, ResetStuckError
from hilt_runtime.registers import IDENTITY_VALUE, REGISTER_BYTES, Register


class VtaDevice:
    """The accelerator that a network runs on."""

    parameters = ""
    """VTA's name for the parameters; empty if it is not known."""
    isa = ""
    table = False
    """Whether STOREs can go by way of the table."""
    window = False
    """Whether GEMMs can read inputs of earlier iterations."""
    bands = False
    """Whether LOADs of INP can move lanes."""
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
        features = {
            "table": "a table before the store",
            "window": "window GEMMs",
            "bands": "bands of one image in its lanes",
        }
        for key, part in features.items():
            if target.get(key, False) and not getattr(self, key):
                raise TargetError(text.format(name, "an accelerator with", part, "none"))
        wanted = target.get("bitstream", "")
        if wanted and self.bitstream and wanted != self.bitstream:
            raise TargetError(text.format(name, "bitstream", wanted[:12], self.bitstream[:12]))

    def allocate(self, size: int) -> Any:
        """Return `size` bytes of contiguous memory.

        The result is a uint8 array with pynq's `physical_address`, `flush` and `invalidate`. Raises MemoryNeededError.
        """
        raise NotImplementedError

    def free(self, memory: Any) -> None:
        """Give memory of `allocate` back. A device that keeps its memory for the next network does nothing."""

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        """Run `count` instructions from contiguous memory until FINISH, a fault, or the limit in the device's time.

        A device may sleep through most of `expected_seconds`.
        """
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
        self._registers = pynq.MMIO(int(target["register_base"]), REGISTER_BYTES)
        counts = self._registers.read(Register.IDENTITY) == IDENTITY_VALUE
        self._protocol = RegisterProtocol(self._registers, counts, self.clock_hz)
        self.isa = target["isa"]
        build = self._registers.read(Register.BUILD) if counts else 0
        self.table, self.window = bool(build & TABLE_OF_BUILD), bool(build & WINDOW_OF_BUILD)
        self.bands = bool(build & BANDS_OF_BUILD)
        self.parameters = self._described(target) if counts else ""

    def allocate(self, size: int) -> Any:
        return allocate(self._pynq, size)

    def free(self, memory: Any) -> None:
        memory.freebuffer()

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        """See VtaDevice. Raises DeviceError."""
        try:
            return self._protocol.run(int(instructions.physical_address), count, limit_seconds, expected_seconds)
        except ResetStuckError as error:
            raise DeviceError("{}: load the bitstream again, or reboot the board".format(error)) from None

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
        """Return the parameters' name if the registers agree with it, else the registers' values.

        Table, window, bands and read ports are apart: a bundle that does not use the first three runs with and without,
        and programs are the same whatever the ports.
        """
        wanted = target.get("identity")
        if not wanted:
            return ""
        read = self._registers.read
        there = [read(Register.GEOMETRY), read(Register.BUFFER_SIZES), read(Register.BUILD)]
        apart = TABLE_OF_BUILD | WINDOW_OF_BUILD | BANDS_OF_BUILD | READ_PORTS_OF_BUILD
        if there[:2] == wanted[:2] and not (there[2] ^ wanted[2]) & ~apart:
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
