"""The accelerator without an interlock, in numpy: an accumulator whose updates come too close loses some.

The source is docs/microarchitecture.md, *Hazards*. Sources and destinations are read in slots, one a cycle. A read
in slot s sees the updates of destinations in slots up to s - 3. When two updates miss each other, the later one is
kept.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from hilt.vta.isa import AluOpcode
from tests.rtl.numpy_interpreter import NumpyInterpreter

_SEEN_AFTER = 3  # slots


class HazardInterpreter(NumpyInterpreter):
    def _gemm(self, f: dict[str, int]) -> None:
        written = _Updates(self)
        for slot, (dst, src, wgt) in enumerate(self._indices(f, ("dst", "src", "wgt"))):
            written.make_visible(slot)
            total = self.acc[dst] + self.inp[src].astype(np.int32) @ self.wgt[wgt].astype(np.int32).T
            written.add(slot, dst, np.zeros_like(total) if f["reset"] else total, total)
        written.make_visible()

    def _alu(self, f: dict[str, int]) -> None:
        written, slot = _Updates(self), 0
        for dst, src in self._indices(f, ("dst", "src")):
            written.make_visible(slot)
            if f["use_imm"]:
                right = np.full_like(self.acc[dst], f["imm"])
            else:
                right = self.acc[src].copy()
                slot += 1
                written.make_visible(slot)
            result = self._operate(AluOpcode(f["alu_opcode"]), self.acc[dst].astype(np.int64), right.astype(np.int64))
            written.add(slot, dst, result.astype(np.int32), result.astype(np.int32))
            slot += 1
        written.make_visible()


class _Updates:
    """Updates of one instruction that reads do not see yet, in order."""

    def __init__(self, machine: NumpyInterpreter) -> None:
        self._machine = machine
        self._waiting: deque[tuple[int, int, NDArray[np.int32], NDArray[np.int32]]] = deque()

    def add(self, slot: int, dst: int, acc: NDArray[np.int32], out: NDArray[np.int32]) -> None:
        self._waiting.append((slot, dst, acc, out))

    def make_visible(self, slot: int | None = None) -> None:
        """Apply the updates that a read in `slot` sees; all of them if `slot` is None."""
        while self._waiting and (slot is None or self._waiting[0][0] + _SEEN_AFTER <= slot):
            _, dst, acc, out = self._waiting.popleft()
            self._machine.acc[dst] = acc
            self._machine.out[dst] = out.astype(np.int8)
