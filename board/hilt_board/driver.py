"""The agent's accelerator over pynq's public API (Bitstream, MMIO): the same on a board and on a virtual board."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Optional

import pynq

from hilt_runtime.register_protocol import DeviceRun, RegisterProtocol, ResetStuckError, host_clock
from hilt_runtime.registers import IDENTITY_VALUE, REGISTER_BYTES, Register

from .bitfile import read_bitfile
from .leftovers import forget_bitstream
from .protocol import Manifest

_CLOCK_TOLERANCE = 0.01
_CLOCK_UNCHANGED = 1e-6
_LARGEST_DIVISOR = 63
"""Largest value of each of the two divisors of a clock, 6 bits each (UG585 and UG1085)."""


class DriverError(Exception):
    """The board cannot carry out a request; the error shows nothing about a configuration."""


class IdentityMismatchError(DriverError):
    """The registers say another accelerator than the manifest."""


class ClockError(DriverError):
    """The board's clock is not the manifest's, so cycles would be the wrong microseconds."""


class NotLoadedError(DriverError):
    """No bitstream is loaded, or the one that was cannot be loaded again now: the board's fault, or its wiring's."""


class StuckError(DriverError):
    """A soft reset does not end: the memory ports wait for answers that do not come."""


class AddressError(DriverError):
    """A buffer where VTA's 32-bit address registers do not reach."""


class Driver:
    """The accelerator behind pynq's active device."""

    def __init__(self, time_scale: float, beat: Callable[[], None]) -> None:
        """`time_scale`: wall seconds a device second may take. `beat` is called while waiting, to show that we live."""
        self._time_scale = time_scale
        self._beat = beat
        self._bitstream: Any = None
        self._directory = Path()
        """The directory in which the agent keeps its .bit files."""
        self._manifest: Optional[Manifest] = None
        self._described: Optional[Manifest] = None
        """The manifest of the bitstream that was loaded last, even if it is no longer in use."""
        self._registers: Any = None
        self._now: Callable[[], float] = host_clock
        """The board's wall clock; a virtual board with a public bitstream has its own."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of the loaded bitstream. Raises NotLoadedError if none is loaded."""
        if self._manifest is None:
            raise NotLoadedError("no bitstream is loaded")
        return self._manifest

    @property
    def counts_cycles(self) -> bool:
        """Return whether the bitstream has hilt's own registers."""
        return self.manifest.identity is not None

    def program(self, path: Path, manifest: Manifest) -> None:
        """Load a .bit file and compare the registers with the manifest.

        Raises BitfileError (truncated, wrong part), ClockError, IdentityMismatchError, and pynq's own errors.
        """
        read_bitfile(path).require_part(manifest.part)
        self._directory = path.parent
        self._load(pynq.Bitstream(str(path)), manifest)

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        """Run `count` instructions from a contiguous buffer (already flushed) until FINISH, a fault or the limit.

        See RegisterProtocol.run. Raises AddressError, StuckError.
        """
        address = physical_address(instructions)
        try:
            return self._protocol.run(address, count, limit_seconds, expected_seconds)
        except ResetStuckError as error:
            raise StuckError(str(error)) from None

    def soft_reset(self) -> None:
        """Reset stages, queues, tokens and fault, as after power-on.

        Reloads the bitstream if it has no such register. Raises StuckError, NotLoadedError.
        """
        if not self.counts_cycles:
            self.reload()
            return
        try:
            self._protocol.soft_reset()
        except ResetStuckError as error:
            raise StuckError(str(error)) from None

    @property
    def _protocol(self) -> RegisterProtocol:
        clock_hz = self.manifest.clock_hz
        return RegisterProtocol(self._registers, self.counts_cycles, clock_hz, self._time_scale, self._beat, self._now)

    def reload(self) -> None:
        """Load the bitstream again, and check it again. Raises NotLoadedError."""
        if self._described is None:
            raise NotLoadedError("no bitstream is loaded")
        try:
            # The same object has its file in /lib/firmware already: a card is not written to each time.
            self._load(self._bitstream, self._described)
        except (DriverError, RuntimeError, OSError) as error:  # it was well before: its own description is no proof
            raise NotLoadedError("bitstream could not be loaded again: {}".format(error)) from error

    def _load(self, bitstream: Any, manifest: Manifest) -> None:
        self._manifest = None
        # First, as pynq's Overlay does it: it is not steady while it is set, and a design, or its PLL, must find it so.
        _set_clock(manifest)
        try:
            _download(bitstream)
        finally:
            forget_bitstream(self._directory)
        _set_port_widths()
        self._registers = pynq.MMIO(manifest.register_base, REGISTER_BYTES)
        device = getattr(getattr(pynq, "Device", None), "active_device", None)
        self._now = getattr(device, "wall_clock", None) or host_clock
        self._check_identity(manifest)
        self._bitstream, self._manifest = bitstream, manifest
        self._described = manifest

    def _check_identity(self, manifest: Manifest) -> None:
        if manifest.identity is None:
            return
        wanted = {
            Register.IDENTITY: IDENTITY_VALUE,
            Register.MAP_VERSION: manifest.identity.version,
            Register.GEOMETRY: manifest.identity.geometry,
            Register.BUFFER_SIZES: manifest.identity.buffer_sizes,
            Register.BUILD: manifest.identity.build,
        }
        for offset, value in wanted.items():
            actual = self._registers.read(offset)
            if actual != value:
                raise IdentityMismatchError(
                    "register 0x{:02x} reads 0x{:08x}, the manifest of {} says 0x{:08x}: "
                    "this bitstream is not the one described".format(offset, actual, manifest.parameters, value)
                )


def _download(bitstream: Any) -> None:
    """Download a bitstream; if that fails because of pynq's note of the last one, clear the note and try again.

    pynq 3.0 notes which bitstream was loaded last, by whomever, and opens its file before it loads another. If that
    file is gone, as a notebook's, nothing can be loaded until the note is taken away or the board boots.
    """
    try:
        bitstream.download()
    except (FileNotFoundError, ValueError):
        notes = sys.modules.get("pynq.pl_server.global_state")
        if notes is None or not notes.global_state_file_exists():
            raise
        notes.clear_global_state()
        bitstream.download()


def _set_clock(manifest: Manifest) -> None:
    """Give the fabric the clock that the bitstream is built for. Raises ClockError if it cannot be had."""
    wanted_hz = manifest.fclk_hz or manifest.clock_hz
    # A board without a clock generator of pynq's (a virtual one) reports its clock.
    actual_hz = getattr(pynq.Device.active_device, "clock_hz", None)
    if actual_hz is None:
        actual_hz = _divide_clock(wanted_hz)
    if abs(actual_hz - wanted_hz) <= _CLOCK_TOLERANCE * wanted_hz:
        return
    had, wanted = "{:g} MHz".format(actual_hz / 1e6), "{:g} MHz".format(wanted_hz / 1e6)
    if manifest.fclk_hz:
        text = "the fabric's clock is {}, and the design's own PLL needs {} to make {:g} MHz of it".format(
            had, wanted, manifest.clock_hz / 1e6
        )
    else:
        text = (
            "clock is {0}, the manifest says {1}: measured times would be wrong; a bitstream that may run at {0} can "
            "be added for that (hilt bitstream add --clock-mhz)".format(had, wanted)
        )
    raise ClockError(text)


def _divide_clock(wanted_hz: float) -> float:
    """Set the fabric's clock and return the one that came of it, in Hz.

    pynq writes one divisor after the other while the old design still runs. Over the slowest clock, which both
    divisors at their largest give, no step between is faster than the old clock or the new one.
    """
    actual_hz = float(pynq.Clocks.fclk0_mhz) * 1e6
    if abs(actual_hz - wanted_hz) > _CLOCK_UNCHANGED * wanted_hz:
        pynq.Clocks.set_pl_clk(0, _LARGEST_DIVISOR, _LARGEST_DIVISOR)
        pynq.Clocks.fclk0_mhz = wanted_hz / 1e6
        actual_hz = float(pynq.Clocks.fclk0_mhz) * 1e6
    return actual_hz


class _Ports:
    """The properties of an UltraScale+ design that pynq would read from a .hwh file.

    TVM's and hilt's designs have the same ones: registers are behind M_AXI_HPM0_FPD, memory is behind
    S_AXI_HPC0_FPD or S_AXI_HP0_FPD.
    """

    family_ps = "zynq_ultra_ps_e"
    ps_name = "ps"
    _NAMES = ("C_MAXIGP0_DATA_WIDTH", "C_SAXIGP0_DATA_WIDTH", "C_SAXIGP2_DATA_WIDTH")
    ip_dict: ClassVar[Dict[str, Any]] = {ps_name: {"parameters": dict.fromkeys(_NAMES, "128")}}


def _set_port_widths() -> None:
    """Set the widths of the ports of an UltraScale+.

    The image's own design may have left them narrower than hilt's design has them: registers would be read in the
    wrong lanes (AMD's answer record 66295).
    """
    device = pynq.Device.active_device
    if platform.machine() == "aarch64" and hasattr(device, "set_axi_port_width"):
        device.set_axi_port_width(_Ports)


def physical_address(buffer: Any) -> int:
    """Return the start of a pynq buffer. Raises AddressError past 4 GiB, beyond the reach of VTA's registers."""
    address = int(buffer.physical_address)
    if address + buffer.nbytes > 1 << 32:
        raise AddressError("buffer at 0x{:x} is beyond the 32 bits of VTA's address registers".format(address))
    return address
