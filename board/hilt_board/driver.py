"""VTA's register protocol over pynq's public API (Bitstream, MMIO): the same on a board and on a virtual board."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Optional, Tuple

import pynq

from . import registers
from .bitfile import read_bitfile
from .leftovers import forget_bitstream
from .protocol import Manifest

# A model that has nothing left to do counts no more cycles. Both must pass: time alone could be a busy machine.
_STALL_SECONDS = 0.5
_STALL_POLLS = 1000
_RESET_SECONDS = 1.0
_CLOCK_TOLERANCE = 0.01
_CLOCK_UNCHANGED = 1e-6
_LARGEST_DIVISOR = 63
"""Largest value of each of the two divisors of a clock, 6 bits each (UG585 and UG1085)."""
_OLD_DONE_SECONDS = 0.005
"""A public bitstream's `done` of the run before stays until compute begins with its first instruction; a program whose
run is over before it was seen to fall is believed after so long. Filling both buffers takes a tenth of it."""


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


@dataclass(frozen=True)
class DeviceRun:
    """One run of a program. `cycles` where the hardware counts them; `seconds` from start to `done`, on the wall."""

    outcome: str
    reason: str
    cycles: Optional[int]
    seconds: float


def _host_clock() -> float:
    return time.perf_counter()


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
        self._now: Callable[[], float] = _host_clock
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

    def run(self, instructions: Any, count: int, limit_seconds: float) -> DeviceRun:
        """Run `count` instructions from a contiguous buffer (already flushed) until FINISH, a fault or the limit.

        `limit_seconds` is device time: cycles if the hardware counts them, else the wall clock times the time
        scale. After `timeout`, `bus_error` or `crash` the accelerator must be reset before the next run. Raises
        AddressError.
        """
        address = physical_address(instructions)
        if self.counts_cycles:
            # A program that ended too early left instructions and tokens behind: no run may depend on the one before.
            self.soft_reset()
            return self._wait_counting(self._start(address, count), limit_seconds)
        old_done = bool(self._registers.read(registers.DONE_READ) & 1)
        return self._wait(self._start(address, count), limit_seconds, old_done)

    def soft_reset(self) -> None:
        """Reset stages, queues, tokens and fault, as after power-on.

        Reloads the bitstream if it has no such register. Raises StuckError, NotLoadedError.
        """
        if not self.counts_cycles:
            self.reload()
            return
        self._registers.write(registers.SOFT_RESET, 1)
        # It reads 1 until the outstanding requests on the memory ports have been answered.
        deadline = time.perf_counter() + _RESET_SECONDS
        while self._registers.read(registers.SOFT_RESET) & 1:
            if time.perf_counter() > deadline:
                raise StuckError("soft reset did not end within {:g} s".format(_RESET_SECONDS))
            self._beat()

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
        self._registers = pynq.MMIO(manifest.register_base, registers.REGISTER_BYTES)
        device = getattr(getattr(pynq, "Device", None), "active_device", None)
        self._now = getattr(device, "wall_clock", None) or _host_clock
        self._check_identity(manifest)
        self._bitstream, self._manifest = bitstream, manifest
        self._described = manifest

    def _check_identity(self, manifest: Manifest) -> None:
        if manifest.identity is None:
            return
        wanted = {
            registers.IDENTITY: registers.IDENTITY_VALUE,
            registers.MAP_VERSION: manifest.identity.version,
            registers.GEOMETRY: manifest.identity.geometry,
            registers.BUFFER_SIZES: manifest.identity.buffer_sizes,
            registers.BUILD: manifest.identity.build,
        }
        for offset, value in wanted.items():
            actual = self._registers.read(offset)
            if actual != value:
                raise IdentityMismatchError(
                    "register 0x{:02x} reads 0x{:08x}, the manifest of {} says 0x{:08x}: "
                    "this bitstream is not the one described".format(offset, actual, manifest.parameters, value)
                )

    def _start(self, address: int, count: int) -> float:
        """Return the time at which fetch was started. The writes before it take tens of microseconds on a Cortex-A9."""
        write = self._registers.write
        write(registers.INSN_COUNT, count)
        write(registers.INSN_ADDR, address)
        # Address registers of 0: every dram_base is absolute, in elements.
        write(registers.INP_ADDR, 0)
        write(registers.WGT_ADDR, 0)
        write(registers.UOP_ADDR, 0)
        write(registers.BIAS_ADDR, 0)
        write(registers.OUT_ADDR, 0)
        started = self._now()
        write(registers.FETCH_CONTROL, registers.START)
        write(registers.LOAD_CONTROL, registers.START_AND_AUTO_RESTART)
        write(registers.COMPUTE_CONTROL, registers.START_AND_AUTO_RESTART)
        write(registers.STORE_CONTROL, registers.START_AND_AUTO_RESTART)
        return started

    def _wait(self, started: float, limit_seconds: float, old_done: bool) -> DeviceRun:
        """A bitstream with the public registers only: the wall clock decides. `old_done`: `done` was set before."""
        allowed = limit_seconds * self._time_scale
        done_since: Optional[float] = None
        late = False
        while True:
            done = self._registers.read(registers.DONE_READ) & 1
            elapsed = self._now() - started
            if not done:
                old_done, done_since = False, None
                if late:
                    return DeviceRun("timeout", "no FINISH within {:g} s".format(limit_seconds), None, elapsed)
            else:
                done_since = elapsed if done_since is None else done_since
                if not old_done or elapsed > min(allowed, _OLD_DONE_SECONDS):
                    return DeviceRun("ok", "", None, done_since)
            # The next reading counts: the kernel may have taken the processor away since this one.
            late = elapsed > allowed
            self._beat()

    def _wait_counting(self, started: float, limit_seconds: float) -> DeviceRun:
        """Hilt's bitstreams: cycles decide, so the verdict does not depend on how busy the host or a simulator is."""
        limit = max(1, int(limit_seconds * self.manifest.clock_hz))
        late = "no FINISH within {} cycles".format(limit)
        moved, moved_at, polls = -1, started, 0
        while True:
            done = self._registers.read(registers.DONE_READ) & 1
            fault = 0 if done else self._registers.read(registers.FAULT_CODE)
            cycles, now = self._cycles(), self._now()
            if fault:
                return DeviceRun(*self._fault(fault), cycles, now - started)
            if cycles > limit:
                return DeviceRun("timeout", late, cycles, now - started)
            if done:
                return DeviceRun("ok", "", cycles, now - started)
            polls += 1
            if cycles != moved:
                moved, moved_at, polls = cycles, now, 0
            elif polls >= _STALL_POLLS and now - moved_at > _STALL_SECONDS:
                return DeviceRun("timeout", "no FINISH: the accelerator stands still", cycles, now - started)
            self._beat()

    def _cycles(self) -> int:
        """Return a counter of 64 bits in two reads; read it again if the low half wrapped in between."""
        read = self._registers.read
        while True:
            high, low = read(registers.CYCLES_HIGH), read(registers.CYCLES_LOW)
            if read(registers.CYCLES_HIGH) == high:
                return int(high) << 32 | int(low)

    def _fault(self, code: int) -> Tuple[str, str]:
        read = self._registers.read
        address = read(registers.FAULT_ADDRESS_HIGH) << 32 | read(registers.FAULT_ADDRESS_LOW)
        outcome = "bus_error" if code in (registers.SLVERR, registers.DECERR) else "crash"
        return outcome, registers.FAULTS.get(code, "unknown fault {} at {{}}".format(code)).format(address)


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
