"""The machine models of a public bitstream's library (hls/timing/public/vta_machine.h), bound with ctypes."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Dict, Optional

COSTS = (
    "instruction",
    "fetch",
    "load_start",
    "load_row",
    "store_start",
    "store_row",
    "rows_overlap",
    "hit_bytes",
    "miss_bytes",
    "store_bytes",
    "store_allocates",
    "cache_bytes",
    "pad_element",
    "gemm_iteration",
    "gemm_micro_op",
    "reset_iteration",
    "alu_iteration",
    "alu_micro_op",
)
"""Fields of vta_machine_parameters, in their order."""

_DONE = 0


class MachineError(Exception):
    """The library has no machine models, or refuses a program."""


class MachineCosts(ctypes.Structure):
    """struct vta_machine_parameters."""

    _fields_ = tuple((name, ctypes.c_double) for name in COSTS)


class _Result(ctypes.Structure):
    _fields_ = (
        ("status", ctypes.c_int32),
        ("instructions", ctypes.c_uint32),
        ("cycles", ctypes.c_double),
        ("details", ctypes.c_double * 8),
    )


class PublicMachine:
    """Cycles of programs on one machine."""

    def __init__(self, library: Path, costs: Dict[str, float]) -> None:
        """Load the machine models. Raises MachineError if the library exports none."""
        try:
            self._predict = ctypes.CDLL(str(library)).vta_machine_predict
        except (OSError, AttributeError) as error:
            raise MachineError("payload has no machine models: {}".format(error)) from None
        self._predict.restype = ctypes.c_int
        self._costs = MachineCosts(**costs)

    def cycles(self, instructions: int, count: int) -> Optional[float]:
        """Return the cycles of `count` instructions at this address of the process; None if they never end."""
        result = _Result()
        offsets = (ctypes.c_uint64 * 2)(0, count)
        refused = self._predict(
            ctypes.c_uint64(1),
            ctypes.c_void_p(instructions),
            offsets,
            ctypes.byref(self._costs),
            ctypes.byref(result),
            None,
        )
        if refused:
            raise MachineError("machine models refused {} instructions (status {})".format(count, refused))
        return result.cycles if result.status == _DONE else None
