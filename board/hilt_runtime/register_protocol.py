"""VTA's register protocol: start a program, wait for its end, reset. The agent and a network alone both use it."""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple, Optional, Tuple

from hilt_runtime.native.start import MappedRegisters, mapped_registers
from hilt_runtime.registers import FAULTS, START, START_AND_AUTO_RESTART, FaultCode, Register

# A model that has nothing left to do counts no more cycles. Both must pass: time alone could be a busy machine.
STALL_SECONDS = 0.5
STALL_POLLS = 1000
RESET_SECONDS = 1.0
OLD_DONE_SECONDS = 0.005
"""A public bitstream's `done` of the run before stays until compute begins with its first instruction; a program whose
run is over before it was seen to fall is believed after so long. Filling both buffers takes a tenth of it."""
_ASLEEP = 0.8
_AWAKE_SECONDS = 0.001
"""A wait sleeps through so much of the time that a program is expected to take, and is awake so long before its end:
Linux wakes a process within a tenth of it."""
_LONGEST_SLEEP = 0.1


class DeviceRun(NamedTuple):
    """One run of a program: ok, timeout, bus_error or crash.

    `cycles` where the hardware counts them; `seconds` from start to `done`, on the wall.
    """

    outcome: str
    reason: str
    cycles: Optional[int]
    seconds: float


class ResetStuckError(Exception):
    """A soft reset does not end: the memory ports wait for answers that do not come."""


def host_clock() -> float:
    return time.perf_counter()


def no_beat() -> None:
    pass


class RegisterProtocol(NamedTuple):
    """A VTA whose registers `registers` reads and writes, as pynq's MMIO does."""

    registers: Any
    counts_cycles: bool
    """Whether it has hilt's own registers."""
    clock_hz: int
    time_scale: float = 1.0
    """Wall seconds that a device second may take."""
    beat: Callable[[], None] = no_beat
    """Called while waiting, to show that we live."""
    now: Callable[[], float] = host_clock
    """The board's wall clock."""

    def run(self, address: int, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        """Run `count` instructions at a physical address (already flushed) until FINISH, a fault or the limit.

        Args:
            address: Below 4 GiB.
            count: Instructions.
            limit_seconds: Device time: cycles if the hardware counts them, else the wall clock times the time scale.
            expected_seconds: Device time that the program probably takes: most of it is slept through. 0 polls.

        After `timeout`, `bus_error` or `crash` the accelerator must be reset before the next run. Raises
        ResetStuckError.
        """
        mapped = mapped_registers(self.registers, self.counts_cycles) if self.now is host_clock else None
        if mapped is not None:
            return self._run_mapped(mapped, address, count, limit_seconds, expected_seconds)
        if self.counts_cycles:
            # A program that ended too early left instructions and tokens behind: no run may depend on the one before.
            self.soft_reset()
            started = self._start(address, count)
            self._sleep(expected_seconds)
            return self._wait_counting(started, limit_seconds)
        old_done = bool(self.registers.read(Register.DONE_READ) & 1)
        started = self._start(address, count)
        self._sleep(expected_seconds)
        return self._wait(started, limit_seconds, old_done)

    def _run_mapped(
        self, mapped: MappedRegisters, address: int, count: int, limit_seconds: float, expected_seconds: float
    ) -> DeviceRun:
        """Start in C, and wait a little there: longer programs, and every fault, are this class's as ever."""
        begun = mapped.start(address, count)
        if begun is None:
            self.soft_reset()  # names the fault, or ends late
            begun = self._start(address, count), False
        started, old_done = begun
        self._sleep(expected_seconds)
        done, old_done, cycles, ended = mapped.poll(old_done)
        if not done or (self.counts_cycles and cycles > limit_seconds * self.clock_hz):
            return (
                self._wait_counting(started, limit_seconds)
                if self.counts_cycles
                else self._wait(started, limit_seconds, old_done)
            )
        self.beat()
        return DeviceRun("ok", "", cycles if self.counts_cycles else None, ended - started)

    def soft_reset(self) -> None:
        """Reset stages, queues, tokens and fault of hilt's RTL, as after power-on. Raises ResetStuckError."""
        self.registers.write(Register.SOFT_RESET, 1)
        # It reads 1 until the outstanding requests on the memory ports have been answered.
        deadline = time.perf_counter() + RESET_SECONDS
        while self.registers.read(Register.SOFT_RESET) & 1:
            if time.perf_counter() > deadline:
                raise ResetStuckError("soft reset did not end within {:g} s".format(RESET_SECONDS))
            self.beat()

    def cycles(self) -> int:
        """Return a counter of 64 bits in two reads; read it again if the low half wrapped in between."""
        read = self.registers.read
        while True:
            high, low = read(Register.CYCLES_HIGH), read(Register.CYCLES_LOW)
            if read(Register.CYCLES_HIGH) == high:
                return int(high) << 32 | int(low)

    def _start(self, address: int, count: int) -> float:
        """Return the time at which fetch was started. The writes before it take tens of microseconds on a Cortex-A9."""
        write = self.registers.write
        write(Register.INSN_COUNT, count)
        write(Register.INSN_ADDR, address)
        # Address registers of 0: every dram_base is absolute, in elements.
        write(Register.INP_ADDR, 0)
        write(Register.WGT_ADDR, 0)
        write(Register.UOP_ADDR, 0)
        write(Register.BIAS_ADDR, 0)
        write(Register.OUT_ADDR, 0)
        started = self.now()
        write(Register.FETCH_CONTROL, START)
        write(Register.LOAD_CONTROL, START_AND_AUTO_RESTART)
        write(Register.COMPUTE_CONTROL, START_AND_AUTO_RESTART)
        write(Register.STORE_CONTROL, START_AND_AUTO_RESTART)
        return started

    def _sleep(self, expected_seconds: float) -> None:
        left = _ASLEEP * expected_seconds - _AWAKE_SECONDS
        while left > 0:
            time.sleep(min(left, _LONGEST_SLEEP))
            left -= _LONGEST_SLEEP
            self.beat()

    def _wait(self, started: float, limit_seconds: float, old_done: bool) -> DeviceRun:
        """A bitstream with the public registers only: the wall clock decides. `old_done`: `done` was set before."""
        allowed = limit_seconds * self.time_scale
        done_since: Optional[float] = None
        late = False
        while True:
            done = self.registers.read(Register.DONE_READ) & 1
            elapsed = self.now() - started
            if not done:
                old_done, done_since = False, None
                if late:
                    return DeviceRun("timeout", "no FINISH within {:g} s".format(limit_seconds), None, elapsed)
            else:
                done_since = elapsed if done_since is None else done_since
                if not old_done or elapsed > min(allowed, OLD_DONE_SECONDS):
                    return DeviceRun("ok", "", None, done_since)
            # The next reading counts: the kernel may have taken the processor away since this one.
            late = elapsed > allowed
            self.beat()

    def _wait_counting(self, started: float, limit_seconds: float) -> DeviceRun:
        """Hilt's bitstreams: cycles decide, so the verdict does not depend on how busy the host or a simulator is."""
        limit = max(1, int(limit_seconds * self.clock_hz))
        late = "no FINISH within {} cycles".format(limit)
        moved, moved_at, polls = -1, started, 0
        while True:
            done = self.registers.read(Register.DONE_READ) & 1
            fault = 0 if done else self.registers.read(Register.FAULT_CODE)
            cycles, now = self.cycles(), self.now()
            if fault:
                return DeviceRun(*self._fault(fault), cycles, now - started)
            if cycles > limit:
                return DeviceRun("timeout", late, cycles, now - started)
            if done:
                return DeviceRun("ok", "", cycles, now - started)
            polls += 1
            if cycles != moved:
                moved, moved_at, polls = cycles, now, 0
            elif polls >= STALL_POLLS and now - moved_at > STALL_SECONDS:
                return DeviceRun("timeout", "no FINISH: the accelerator stands still", cycles, now - started)
            self.beat()

    def _fault(self, code: int) -> Tuple[str, str]:
        read = self.registers.read
        address = read(Register.FAULT_ADDRESS_HIGH) << 32 | read(Register.FAULT_ADDRESS_LOW)
        outcome = "bus_error" if code in (FaultCode.SLVERR, FaultCode.DECERR) else "crash"
        return outcome, FAULTS.get(code, "unknown fault {} at {{}}".format(code)).format(address)
