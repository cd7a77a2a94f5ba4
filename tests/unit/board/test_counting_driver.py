"""The driver on hilt's own bitstream: 64-bit cycles in two reads, verdicts by cycles, faults, resets."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hilt_runtime import register_protocol, registers
from hilt_runtime.registers import FaultCode, Register

from .examples import MANIFEST

CODE = SimpleNamespace(physical_address=0x1680_0000, nbytes=4096)


class Registers:
    """A design that counts `step` cycles at each look at them and is done at `done_at`."""

    def __init__(self, done_at: int = 1000, step: int = 10) -> None:
        self.cycles = 0
        self.done_at, self.step = done_at, step
        self.fault = 0
        self.fault_at = 1 << 70
        self.resetting = 0
        self.written: list[tuple[int, int]] = []

    def write(self, offset: int, value: int) -> None:
        self.written.append((offset, value))
        if offset == Register.FETCH_CONTROL:
            self.cycles = 0

    def read(self, offset: int) -> int:
        if offset == Register.SOFT_RESET:
            self.resetting = max(0, self.resetting - 1)
            return int(self.resetting > 0)
        if offset == Register.DONE_READ:
            self.cycles += self.step
            return int(self.cycles >= self.done_at)
        return {
            Register.FAULT_CODE: self.fault if self.cycles >= self.fault_at else 0,
            Register.FAULT_ADDRESS_LOW: 0x89ABCDEF,
            Register.FAULT_ADDRESS_HIGH: 0x1,
            Register.CYCLES_LOW: self.cycles & 0xFFFFFFFF,
            Register.CYCLES_HIGH: self.cycles >> 32,
        }[offset]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.setitem(sys.modules, "pynq", ModuleType("pynq"))
    yield importlib.import_module("hilt_board.driver")
    del sys.modules["hilt_board.driver"]


def driver_on(module: ModuleType, design: Any) -> Any:
    driver = module.Driver(1.0, lambda: None)
    driver._manifest, driver._registers = MANIFEST, design
    return driver


class Wrapping(Registers):
    """The low half wraps between the read of the high half and that of the low one."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = iter([0xFFFFFFFF, 0x1_0000_0003, 0x1_0000_0004, 0x1_0000_0005, 0x1_0000_0006, 0x1_0000_0007])

    def read(self, offset: int) -> int:
        now = next(self.reads)
        return now >> 32 if offset == Register.CYCLES_HIGH else now & 0xFFFFFFFF


def test_the_halves_of_a_count_are_of_one_moment(module: ModuleType) -> None:
    """Read as it comes, it would be 3, or four billion too many."""
    assert driver_on(module, Wrapping())._protocol.cycles() == 0x1_0000_0006


def test_a_count_of_more_than_32_bits_is_read_whole(module: ModuleType) -> None:
    design = Registers()
    design.cycles = 0x12_3456_789A
    assert driver_on(module, design)._protocol.cycles() == 0x12_3456_789A


def test_a_run_ends_when_it_is_done_with_its_cycles(module: ModuleType) -> None:
    ran = driver_on(module, Registers(done_at=1000, step=10)).run(CODE, 2, 1.0)
    assert (ran.outcome, ran.reason, ran.cycles) == ("ok", "", 1000)


@pytest.mark.parametrize(("done_at", "outcome"), [(1000, "ok"), (1010, "timeout"), (1 << 60, "timeout")])
def test_the_limit_is_of_cycles_and_the_last_one_counts(module: ModuleType, done_at: int, outcome: str) -> None:
    limit_seconds = 1000 / MANIFEST.clock_hz
    ran = driver_on(module, Registers(done_at=done_at, step=10)).run(CODE, 2, limit_seconds)
    assert ran.outcome == outcome
    if outcome == "timeout":
        assert (ran.reason, ran.cycles) == ("no FINISH within 1000 cycles", 1010)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(FaultCode.SLVERR, "bus_error"), (FaultCode.DECERR, "bus_error"), (3, "crash"), (8, "crash")],
)
def test_a_fault_ends_the_run_and_says_where(module: ModuleType, code: int, outcome: str) -> None:
    design = Registers(done_at=1 << 60)
    design.fault, design.fault_at = code, 500
    ran = driver_on(module, design).run(CODE, 2, 1.0)
    assert (ran.outcome, ran.cycles) == (outcome, 500)
    assert any(text in ran.reason for text in (str(0x1_89AB_CDEF), f"{0x1_89AB_CDEF:x}"))


def test_a_design_that_stands_still_is_given_up(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_protocol, "STALL_SECONDS", 0.0)
    monkeypatch.setattr(register_protocol, "STALL_POLLS", 20)
    ran = driver_on(module, Registers(done_at=1000, step=0)).run(CODE, 2, 1.0)
    assert (ran.outcome, ran.reason) == ("timeout", "no FINISH: the accelerator stands still")


def test_every_run_begins_with_a_soft_reset_and_ends_with_the_starts_in_order(module: ModuleType) -> None:
    design = Registers(done_at=100)
    design.resetting = 4
    driver_on(module, design).run(CODE, 7, 1.0)
    assert design.resetting == 0
    assert design.written[0] == (Register.SOFT_RESET, 1)
    assert design.written[1:3] == [(Register.INSN_COUNT, 7), (Register.INSN_ADDR, CODE.physical_address)]
    assert design.written[-4:] == [
        (Register.FETCH_CONTROL, registers.START),
        (Register.LOAD_CONTROL, registers.START_AND_AUTO_RESTART),
        (Register.COMPUTE_CONTROL, registers.START_AND_AUTO_RESTART),
        (Register.STORE_CONTROL, registers.START_AND_AUTO_RESTART),
    ]
    assert [value for _, value in design.written[3:-4]] == [0, 0, 0, 0, 0]


def test_a_soft_reset_that_does_not_end_is_a_stuck_board(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_protocol, "RESET_SECONDS", 0.0)
    design = Registers()
    design.resetting = 1 << 30
    with pytest.raises(module.StuckError, match="soft reset did not end"):
        driver_on(module, design).soft_reset()


@pytest.mark.parametrize(("place", "reached"), [((1 << 32) - 4096, True), ((1 << 32) - 4095, False)])
def test_a_buffer_lies_below_4_gib(module: ModuleType, place: int, reached: bool) -> None:
    buffer = SimpleNamespace(physical_address=place, nbytes=4096)
    if reached:
        assert module.physical_address(buffer) == place
        return
    with pytest.raises(module.AddressError, match="beyond the 32 bits"):
        module.physical_address(buffer)


def test_nothing_runs_before_a_bitstream_is_loaded(module: ModuleType) -> None:
    driver = module.Driver(1.0, lambda: None)
    for act in (lambda: driver.manifest, driver.reload, lambda: driver.run(CODE, 1, 1.0)):
        with pytest.raises(module.NotLoadedError, match="no bitstream is loaded"):
            act()


class Clock:
    """The driver's clock, which each look at it moves by `step` seconds."""

    def __init__(self, step: float) -> None:
        self.seconds, self.step = 0.0, step

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


@pytest.mark.parametrize(("step", "looks"), [(1 / 64, 1001), (1 / 4096, 2050)])
def test_a_design_stands_still_after_a_thousand_looks_and_half_a_second(
    module: ModuleType, step: float, looks: int
) -> None:
    """A busy machine looks seldom, so time alone shows nothing; a quick one looks a thousand times in a moment."""
    design = Registers(done_at=1000, step=0)
    driver = driver_on(module, design)
    driver._now = Clock(step)
    beats: list[None] = []
    driver._beat = lambda: beats.append(None)
    ran = driver.run(CODE, 2, 1.0)
    assert (ran.outcome, ran.cycles) == ("timeout", 0)
    assert len(beats) == looks - 1, "the daemon sees at each look but the last that the worker lives"
    assert ran.seconds == pytest.approx(looks * step)


def test_a_design_that_moves_is_not_given_up(module: ModuleType) -> None:
    """One cycle in 900 looks, for half a minute of the clock."""

    class Slow(Registers):
        looks = 0

        def read(self, offset: int) -> int:
            if offset == Register.DONE_READ:
                self.looks += 1
                self.cycles = self.looks // 900
                return int(self.cycles >= 4)
            return super().read(offset)

    driver = driver_on(module, Slow())
    driver._now = Clock(1 / 128)
    ran = driver.run(CODE, 2, 1.0)
    assert (ran.outcome, ran.cycles) == ("ok", 4)


@pytest.mark.parametrize(
    ("done_at", "fault_at", "limit", "outcome"),
    [(40, 1 << 70, 100, "ok"), (1 << 60, 40, 100, "bus_error"), (1 << 60, 1 << 70, 35, "timeout")],
)
def test_the_seconds_of_a_run_begin_with_its_start(
    module: ModuleType, done_at: int, fault_at: int, limit: int, outcome: str
) -> None:
    """Four looks, a quarter of a second apart, at a design that counts ten cycles between them."""
    design = Registers(done_at=done_at)
    design.fault, design.fault_at = FaultCode.SLVERR, fault_at
    driver = driver_on(module, design)
    driver._now = Clock(0.25)
    driver._now.seconds = 100.0
    ran = driver.run(CODE, 2, limit / MANIFEST.clock_hz)
    assert (ran.outcome, ran.cycles, ran.seconds) == (outcome, 40, 1.0)


def test_a_limit_is_a_cycle_at_least(module: ModuleType) -> None:
    ran = driver_on(module, Registers(done_at=1 << 60, step=1)).run(CODE, 2, 0.0)
    assert (ran.outcome, ran.reason, ran.cycles) == ("timeout", "no FINISH within 1 cycles", 2)


@pytest.mark.parametrize(("looks", "ends"), [(4, True), (5, True), (6, False)])
def test_a_soft_reset_may_take_a_second(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch, looks: int, ends: bool
) -> None:
    """The clock moves by a quarter of a second at each reading. The first reading sets the deadline."""
    clock = Clock(0.25)
    monkeypatch.setattr(register_protocol, "time", SimpleNamespace(perf_counter=clock))
    design, beats = Registers(), list[None]()
    design.resetting = looks
    driver = driver_on(module, design)
    driver._beat = lambda: beats.append(None)
    if ends:
        driver.soft_reset()
        assert len(beats) == looks - 1, "the daemon sees that the worker lives"
        return
    with pytest.raises(module.StuckError, match="soft reset did not end within 1 s"):
        driver.soft_reset()
    assert len(beats) == 4


def test_a_fault_says_its_whole_address(module: ModuleType) -> None:
    outcome, reason = driver_on(module, Registers())._protocol._fault(99)
    assert (outcome, reason) == ("crash", f"unknown fault 99 at {0x1_89AB_CDEF}")
