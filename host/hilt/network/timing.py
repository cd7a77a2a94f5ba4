"""The twin's cycles of a chain, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilt.simulator.device import MemoryModel
from hilt.simulator.machine import MachineTwin
from hilt.simulator.twin import Twin, TwinStatus
from hilt.vta.program import Program, ProgramError


def layer_ends(program: Program, lengths: Sequence[int], twin: Twin | MachineTwin, memory: MemoryModel) -> list[int]:
    """Return the cycle at which each layer's last instruction ends; the last layer ends with the program.

    Args:
        program: A chain of layers and FINISH.
        lengths: Instructions of each layer, in order.
        twin: The timing model.
        memory: The memory behind the accelerator.

    Raises:
        ProgramError: The twin says that the program never ends.
    """
    predicted = twin.predict([program], memory)[0]
    if predicted["status"] != TwinStatus.DONE:
        raise ProgramError(f"a chain of {len(lengths)} layers never ends (twin: status {int(predicted['status'])})")
    spans = twin.timeline(program, memory)
    ends = []
    first = 0
    for length in lengths:
        ends.append(int(spans["end"][first : first + length].max()))
        first += length
    ends[-1] = int(predicted["cycles"])
    return [int(end) for end in np.maximum.accumulate(ends)]
