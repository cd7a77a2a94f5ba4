"""A public bitstream on a virtual board: the registers that it has, and the time that a program takes on the wall.

The golden model computes the outputs before the program is started. Time is the board's own, not the host's: a
register takes as long as Python needs on a Cortex-A9, and now and then the kernel takes the processor away. So a busy
host changes no measurement.
"""

from __future__ import annotations

import ctypes
import random
from pathlib import Path
from typing import Optional

from hilt_runtime.registers import START, START_AND_AUTO_RESTART, Register

from .board_model import ModelSettings
from .machine import PublicMachine
from .model import DONE, Model

_INSTRUCTION_BYTES = 16
_OWN_REGISTERS = 0x40
"""The first of hilt's own registers on a page; a public bitstream reads 0 there."""
_PAGE = 0xFFF
_MOST_WORK = 1 << 32
"""Instructions and micro-ops of a program: more than any board would be given time for."""
_ACCESS_SECONDS = (8e-6, 14e-6)
"""A register, read or written by Python."""
_SWITCH_CHANCE, _SWITCH_SECONDS = 0.02, 150e-6
"""The chance that a run loses the processor, and the mean time without it."""
_HANGING_SECONDS = 0.01
"""Passes at each look at a program that never ends."""
_CONTROLS = (Register.FETCH_CONTROL, Register.LOAD_CONTROL, Register.COMPUTE_CONTROL, Register.STORE_CONTROL)


class PublicTime:
    """Registers of a public bitstream over a golden model and a machine model."""

    def __init__(self, model: Model, library: Path, board_model: ModelSettings) -> None:
        """Raise MachineError if the library has no machine models."""
        self._model = model
        self._machine = PublicMachine(library, board_model.machine or {})
        self._clock_hz = board_model.clock_hz
        self._base = board_model.memory["base"]
        self._bytes = board_model.memory["bytes"]
        self._random = random.Random(board_model.memory["seed"])
        self._now = 0.0
        self.reset()

    def now(self) -> float:
        """Return the board's wall clock in seconds."""
        return self._now

    def reset(self) -> None:
        """Return to the state after power-on."""
        self._count = self._address = 0
        self._seconds: Optional[float] = None
        self._done_at: Optional[float] = None
        self._started = False

    def read(self, offset: int) -> int:
        """Return a register; `done` rises when the program's time is over."""
        self._access()
        if offset & _PAGE >= _OWN_REGISTERS:
            return 0
        if offset == Register.DONE_READ:
            return int(self._wait())
        return self._model.read_register(offset)

    def write(self, offset: int, value: int) -> None:
        """Write a register. The last address before the start runs the program on the models."""
        self._access()
        if offset & _PAGE >= _OWN_REGISTERS:
            return
        if offset == Register.INSN_COUNT:
            self._count = value
        elif offset == Register.INSN_ADDR:
            self._address = value
        if offset in _CONTROLS:
            if offset == Register.FETCH_CONTROL and value & START:
                self._started = True
                self._done_at = None if self._seconds is None else self._now + self._seconds
            return
        self._model.write_register(offset, value)
        if offset == Register.OUT_ADDR:
            self._seconds = self._prepare()

    def _access(self) -> None:
        self._now += self._random.uniform(*_ACCESS_SECONDS)

    def _wait(self) -> bool:
        """Let polls pass until the program is done; of one that never is, a while passes."""
        if self._done_at is None:
            self._now += _HANGING_SECONDS if self._started else 0.0
            return False
        if self._started:
            if self._random.random() < _SWITCH_CHANCE:
                self._now += self._random.expovariate(1 / _SWITCH_SECONDS)
            while self._now < self._done_at:
                left = self._done_at - self._now
                self._now += max(left - _ACCESS_SECONDS[1], self._random.uniform(*_ACCESS_SECONDS))
            self._started = False
        return True

    def _prepare(self) -> Optional[float]:
        """Run the golden model and return the seconds that the board would take; None if it would hang."""
        first = self._address - self._base
        size = self._count * _INSTRUCTION_BYTES
        if first < 0 or size == 0 or first + size > self._bytes:
            return None
        instructions = self._model.view(first, size)
        cycles = self._machine.cycles(ctypes.addressof(instructions), self._count)
        if cycles is None:
            return None
        self._model.write_register(Register.FETCH_CONTROL, START)
        for control in _CONTROLS[1:]:
            self._model.write_register(control, START_AND_AUTO_RESTART)
        status, _ = self._model.step(_MOST_WORK)
        return cycles / self._clock_hz if status == DONE else None
