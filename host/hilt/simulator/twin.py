"""The twin: the RTL's counters for a program, computed instead of simulated (hls/timing/vta_timing.h).

Programs are given before relocation. Cycles depend on buffer addresses only modulo 4096, and every allocator here
gives
whole pages (hilt.simulator.program_run, the agent's contiguous memory). The twin does not know the memory's
history: it
predicts the first run after power-on. A later run differs if jitter or the turn of the ports has moved on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.build import build
from hilt.simulator.device import MemoryModel, SimulatorError, memory_structure
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

API_VERSION = 1


class TwinStatus(IntEnum):
    """The end of a program (vta_timing.h). NEVER: a token or FINISH is missing, and a board would hang."""

    DONE = 0
    NEVER = 1
    FAULT = 2


_STAGE = np.dtype([(name, np.uint64) for name in ("busy", "starved", "stalled", "bytes", "instructions")])

PREDICTION = np.dtype(
    [
        ("status", np.int32),
        ("fault", np.uint32),
        ("cycles", np.uint64),
        ("macs", np.uint64),
        *((stage, _STAGE) for stage in ("fetch", "load", "compute", "store")),
    ]
)
"""One program: TwinStatus, fault code of docs/architecture.md or 0, cycles from the start of fetch to FINISH, and each
stage's counters (hilt.simulator.device.StageCounters). For NEVER, `cycles` is when the last thing happens."""

SPAN = np.dtype([("start", np.uint64), ("end", np.uint64), ("stage", np.uint32), ("reserved", np.uint32)])
"""One instruction: busy in the cycles [start, end) of stage 1 (load), 2 (compute) or 3 (store); both 0 where the
program ends before it begins."""


@dataclass(frozen=True, eq=False)
class PlacedProgram:
    """A program at its addresses.

    Instructions are uint64 (n, words) with physical dram_base, at byte address `insn_address`. Micro-ops are uint32
    (m, words), the memory from byte address `uop_address` on.
    """

    instructions: NDArray[np.uint64]
    uops: NDArray[np.uint32]
    insn_address: int = 0
    uop_address: int = 0

    @classmethod
    def of(cls, program: Program, addresses: Mapping[str, int] | None = None) -> Self:
        """`program` with its buffers, and its instructions as `insn`, at these byte addresses.

        Without any, each at the start of a page.
        """
        if addresses is None:
            return cls(program.instructions, program.uops)
        buffers = {name: address for name, address in addresses.items() if name != "insn"}
        return cls(program.relocated(buffers), program.uops, addresses["insn"], addresses["uop"])


class Twin:
    """The timing model of one accelerator. Any number of threads may call it at once."""

    def __init__(self, accelerator: Accelerator) -> None:
        """Raises MissingToolError or BuildError where the model cannot be built."""
        self.accelerator = accelerator
        self._library = ctypes.CDLL(str(build(accelerator, "timing")))
        if self._library.vta_timing_api_version() != API_VERSION:
            raise SimulatorError("the timing model and its binding are of different versions")
        self._library.vta_timing_predict.restype = ctypes.c_int

    def predict(self, programs: Iterable[Program | PlacedProgram], memory: MemoryModel) -> NDArray[np.void]:
        """PREDICTION (programs,) of each program alone after power-on. Of `memory`, base and size do not matter.

        Raises SimulatorError where the bandwidth is impossible.
        """
        return self._predict(_placed(programs), memory, None)

    def timeline(self, program: Program | PlacedProgram, memory: MemoryModel) -> NDArray[np.void]:
        """SPAN (instructions,) of one program."""
        placed = _placed([program])
        spans = np.zeros(len(placed[0].instructions), dtype=SPAN)
        self._predict(placed, memory, spans)
        return spans

    def _predict(
        self, programs: Sequence[PlacedProgram], memory: MemoryModel, spans: NDArray[np.void] | None
    ) -> NDArray[np.void]:
        predictions = np.zeros(len(programs), dtype=PREDICTION)
        if not programs:
            return predictions
        instructions = _joined([program.instructions for program in programs])
        uops = _joined([program.uops for program in programs])
        arrays = (
            instructions,
            _offsets([len(program.instructions) for program in programs]),
            np.array([program.insn_address for program in programs], dtype=np.uint64),
            uops,
            _offsets([len(program.uops) for program in programs]),
            np.array([program.uop_address for program in programs], dtype=np.uint64),
        )
        packed = _Programs(len(programs), *(array.ctypes.data for array in arrays))
        refused = self._library.vta_timing_predict(
            ctypes.byref(packed),
            ctypes.byref(memory_structure(memory)),
            ctypes.c_void_p(predictions.ctypes.data),
            ctypes.c_void_p(None if spans is None else spans.ctypes.data),
        )
        if refused:
            raise SimulatorError(f"the timing model refused (status {refused}): a bandwidth of {memory.bandwidth}")
        return predictions


class _Programs(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint64),
        *(
            (name, ctypes.c_void_p)
            for name in ("instructions", "instruction_offset", "insn_address", "uops", "uop_offset", "uop_address")
        ),
    )


def _placed(programs: Iterable[Program | PlacedProgram]) -> list[PlacedProgram]:
    return [PlacedProgram.of(program) if isinstance(program, Program) else program for program in programs]


def _joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One after another in memory; a single array as it is."""
    return np.ascontiguousarray(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))


def _offsets(lengths: Sequence[int]) -> NDArray[np.uint64]:
    offsets: NDArray[np.uint64] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    return offsets
