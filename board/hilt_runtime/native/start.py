"""A start of VTA in C where its registers are mapped into this process, as pynq's MMIO maps them on a board."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from hilt_runtime.native.library import engine
from hilt_runtime.registers import REGISTER_BYTES, Register

PLACES = np.array(
    [
        offset // 4
        for offset in (
            *(Register.SOFT_RESET, Register.INSN_COUNT, Register.INSN_ADDR, Register.INP_ADDR, Register.WGT_ADDR),
            *(Register.UOP_ADDR, Register.BIAS_ADDR, Register.OUT_ADDR, Register.FETCH_CONTROL),
            *(Register.LOAD_CONTROL, Register.COMPUTE_CONTROL, Register.STORE_CONTROL, Register.DONE_READ),
            *(Register.FAULT_CODE, Register.CYCLES_HIGH, Register.CYCLES_LOW),
        )
    ],
    np.int32,
)
_RESET_SECONDS = 0.01
_POLL_SECONDS = 0.02
"""A call of C's shows no sign of life: it is short, and Python goes on from there."""


class MappedRegisters(NamedTuple):
    """Registers at an address of this process, and the engine that reads and writes them."""

    library: Any
    address: int
    counts_cycles: bool

    def start(self, address: int, count: int) -> Optional[Tuple[float, bool]]:
        """Start a program. Return the time (time.perf_counter) and whether `done` was set, or None if a reset hangs."""
        old_done = ctypes.c_int32(0)
        started = self.library.hilt_start(
            self.address, PLACES.ctypes.data, self.counts_cycles, count, address, _RESET_SECONDS, ctypes.byref(old_done)
        )
        return None if started < 0 else (float(started), bool(old_done.value))

    def poll(self, old_done: bool) -> Tuple[bool, bool, int, float]:
        """Wait a little. Return whether the program ended, whether `done` may be an old one, cycles, and the time."""
        old, cycles, ended = ctypes.c_int32(old_done), ctypes.c_int64(0), ctypes.c_double(0)
        done = self.library.hilt_poll(
            *(self.address, PLACES.ctypes.data, self.counts_cycles, _POLL_SECONDS),
            *(ctypes.byref(old), ctypes.byref(cycles), ctypes.byref(ended)),
        )
        return bool(done), bool(old.value), int(cycles.value), float(ended.value)


def mapped_registers(registers: Any, counts_cycles: bool) -> Optional[MappedRegisters]:
    """Return the registers behind pynq's MMIO where they are plain memory of this process and the engine is native."""
    array = getattr(registers, "array", None)
    if type(array) is not np.ndarray or array.dtype != np.uint32 or array.nbytes < REGISTER_BYTES:
        return None
    library = engine().library
    return None if library is None else MappedRegisters(library, int(array.ctypes.data), counts_cycles)
