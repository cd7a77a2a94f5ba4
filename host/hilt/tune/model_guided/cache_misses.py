"""The bytes of each instruction that miss the level-2 cache between an accelerator and its memory.

The public bitstreams reach the memory through the Zynq's cache of 512 KiB (docs/silicon.md). The count is that of
hls/timing/public: an expectation with random replacement.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.simulator.machine import EventMachine, MachineParameters
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

Floats = npt.NDArray[np.float64]

CACHE_BYTES = float(512 << 10)
"""The size of the Zynq's level-2 cache."""
_FREE = 1e30
"""Bytes a cycle of a transfer that costs nothing."""


class CacheMisses:
    """Counts the missed bytes of programs for one accelerator."""

    def __init__(self, accelerator: Accelerator) -> None:
        """Raises MissingToolError or BuildError where the counter cannot be built."""
        self._machine = EventMachine(accelerator)
        self._costs = MachineParameters(
            **dict.fromkeys(MachineParameters.__dataclass_fields__, 0.0)
            | {
                "hit_bytes": _FREE,
                "miss_bytes": 1.0,
                "store_bytes": _FREE,
                "store_allocates": 1.0,
                "cache_bytes": CACHE_BYTES,
            }
        )

    def missed_bytes(self, program: Program) -> Floats:
        """Return the expected bytes of each instruction (n,) that come from memory, in a repeated program."""
        spans = self._machine.timeline(program, self._costs)
        return np.asarray(spans["end"] - spans["start"])
