"""A start of VTA in C: registers in plain memory, and a thread that behaves as the accelerator does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hilt_runtime.native.library import engine
from hilt_runtime.native.start import mapped_registers
from hilt_runtime.register_protocol import RegisterProtocol, ResetStuckError
from hilt_runtime.registers import REGISTER_BYTES, Register

WORDS = REGISTER_BYTES // 4


class Mapped:
    """Registers as pynq maps them on a board."""

    def __init__(self) -> None:
        self.array = np.zeros(WORDS, np.uint32)

    def read(self, offset: int) -> int:
        return int(self.array[offset // 4])

    def write(self, offset: int, value: int) -> None:
        self.array[offset // 4] = value


class Accelerator:
    """Ends a reset, and after a start counts cycles and sets `done`, or a fault."""

    def __init__(self, registers: Mapped, counts: bool = True, fault: int = 0, hangs: bool = False) -> None:
        self.started: tuple[int, int] | None = None
        self._registers, self._counts, self._fault, self._hangs = registers, counts, fault, hangs
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Accelerator:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        registers = self._registers
        while not self._end.wait(1e-4):
            if registers.read(Register.SOFT_RESET) and not self._hangs:
                registers.write(Register.DONE_READ, 0)
                registers.write(Register.SOFT_RESET, 0)
            if registers.read(Register.STORE_CONTROL) == 0x81 and registers.read(Register.FETCH_CONTROL) == 1:
                self.started = registers.read(Register.INSN_COUNT), registers.read(Register.INSN_ADDR)
                registers.write(Register.FETCH_CONTROL, 0)
                registers.write(Register.DONE_READ, 0)
                self._end.wait(2e-3)
                registers.write(Register.CYCLES_LOW, 1234)
                registers.write(Register.CYCLES_HIGH, 1)
                registers.write(Register.FAULT_CODE, self._fault)
                registers.write(Register.DONE_READ, 0 if self._fault else 1)


@pytest.fixture
def registers() -> Iterator[Mapped]:
    if engine().library is None:
        pytest.skip(engine().reason)
    yield Mapped()


def test_a_program_is_started_and_its_cycles_are_read(registers: Mapped) -> None:
    protocol = RegisterProtocol(registers, True, 100_000_000)
    with Accelerator(registers) as accelerator:
        for _ in range(3):
            run = protocol.run(0x1234000, 77, 100.0)
            assert (run.outcome, run.cycles) == ("ok", (1 << 32) + 1234)
            assert 0 < run.seconds < 5
        assert accelerator.started == (77, 0x1234000)


def test_more_cycles_than_the_limit_are_a_timeout(registers: Mapped) -> None:
    with Accelerator(registers):
        run = RegisterProtocol(registers, True, 1_000_000).run(0x1000, 5, 1.0)
    assert run.outcome == "timeout" and "1000000 cycles" in run.reason


def test_a_fault_is_pythons_to_name(registers: Mapped) -> None:
    with Accelerator(registers, fault=1):
        run = RegisterProtocol(registers, True, 100_000_000).run(0x1000, 5, 100.0)
    assert run.outcome == "bus_error"


def test_a_reset_that_hangs_is_named(registers: Mapped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt_runtime.register_protocol.RESET_SECONDS", 0.05)
    with Accelerator(registers, hangs=True), pytest.raises(ResetStuckError):
        RegisterProtocol(registers, True, 100_000_000).run(0x1000, 5, 100.0)


def test_an_old_done_of_a_public_bitstream_is_not_believed(registers: Mapped) -> None:
    registers.write(Register.DONE_READ, 1)
    with Accelerator(registers, counts=False) as accelerator:
        run = RegisterProtocol(registers, False, 100_000_000).run(0x1000, 5, 10.0)
    assert run.outcome == "ok" and run.cycles is None and run.seconds > 1e-3
    assert accelerator.started == (5, 0x1000)


def test_registers_behind_a_hook_are_not_memory() -> None:
    class Hooked(np.ndarray):
        pass

    class Virtual:
        array = np.zeros(WORDS, np.uint32).view(Hooked)

    class Short:
        array = np.zeros(16, np.uint32)

    assert mapped_registers(Virtual(), True) is None
    assert mapped_registers(Short(), True) is None
    assert mapped_registers(object(), True) is None
