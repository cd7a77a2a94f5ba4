"""A schedule of a workload in a simulated accelerator's memory, ready to be run and timed again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from hilt.schedule import load_workload, lower, make_tensors
from hilt.simulator.build import Form, build
from hilt.simulator.device import DeviceStatus, MemoryModel, SimulatedDevice
from hilt.simulator.driver import Execution, execute
from hilt.simulator.program_run import place
from hilt.vta.accelerator import Accelerator

KNOBS = ("tile_b", "tile_h", "tile_w", "tile_ci", "tile_co", "oc_nthread", "h_nthread")
GOOD_C5 = dict(zip(KNOBS, (1, 14, 28, 1, 2, 2, 1), strict=True))
"""The best configuration of resnet18.C5 on pynq that `python -m tests.bench roofline` finds."""


@dataclass(frozen=True)
class Prepared:
    device: SimulatedDevice
    insn_addr: int
    insn_count: int

    def run(self) -> tuple[Execution, float]:
        """One run and the processor seconds that it took. The device runs in the caller's thread."""
        start = time.thread_time()
        execution = execute(self.device, self.insn_addr, self.insn_count, 1 << 40)
        seconds = time.thread_time() - start
        assert execution.status is DeviceStatus.DONE, execution
        return execution, seconds


@contextmanager
def prepared(
    accelerator: Accelerator, form: Form, workload: str, knobs: Mapping[str, int], memory: MemoryModel
) -> Iterator[Prepared]:
    """The schedule, whose whole output is compared with the reference after the last run."""
    problem = load_workload(workload)
    program = lower(problem, knobs, accelerator)
    tensors = make_tensors(problem, accelerator, seed=1)
    addresses, end = place(program, memory.base)
    with SimulatedDevice(build(accelerator, form), replace(memory, bytes=end - memory.base)) as device:
        device.write_memory(addresses["insn"], program.relocated(addresses))
        for name, array in {**tensors.inputs, "uop": program.uops}.items():
            device.write_memory(addresses[name], array)
        yield Prepared(device, addresses["insn"], len(program.instructions))
        output = device.view(addresses["out"], program.buffer("out").bytes).view(np.int8)
        assert np.array_equal(output, tensors.expected.ravel()), "the timed program gave a wrong answer"
