"""A run of assembled instructions on the RTL, whose cycles and counters must equal the twin's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilt.simulator.build import quick_build
from hilt.simulator.device import MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.twin import PlacedProgram, Twin
from hilt.vta.accelerator import Accelerator
from tests.rtl.assembly import BASE, DATA, INSN, MEMORY_BYTES, UOP_POOL
from tests.rtl.twin_comparison import differences


@dataclass(frozen=True)
class RtlRun:
    """An execution, with the memory (bytes from BASE) before and after it."""

    execution: Execution
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]


def run_beside_twin(
    accelerator: Accelerator,
    program: NDArray[np.uint64],
    micro_ops: bytes,
    data: NDArray[np.integer] | None = None,
    memory: MemoryModel | None = None,
) -> RtlRun:
    """Run a program from power-on, with its micro-ops at UOP_POOL and `data` at DATA; all other memory is zero.

    Raises:
        AssertionError: Status, fault, cycles or a counter differ from the twin's.
    """
    timing = memory or MemoryModel()
    with SimulatedDevice(quick_build(accelerator, "rtl"), replace(timing, base=BASE, bytes=MEMORY_BYTES)) as device:
        device.write_memory(INSN, program)
        device.write_memory(UOP_POOL, micro_ops)
        if data is not None:
            device.write_memory(DATA, data)
        before = device.memory.copy()
        execution = execute(device, INSN, len(program), 1_000_000)
        after = device.memory.copy()
    pool = np.frombuffer(micro_ops, np.uint32).reshape(-1, accelerator.uop_element_bytes // 4)
    placed = PlacedProgram(program, pool, INSN, UOP_POOL)
    assert differences(execution, Twin(accelerator), placed, timing) == []
    return RtlRun(execution, before, after)
