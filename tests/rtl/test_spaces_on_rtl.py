"""Schedules of every space and operator that `strict` accepts, on Verilated hardware without interlock.

The public bitstreams have none.
"""

import numpy as np
import pytest

from hilt.schedule import load_workload, lower, make_tensors, space_for, verdicts
from hilt.simulator.build import quick_build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator, load_parameters
from tests.unit.schedule.cases import describe

WITHOUT_INTERLOCK = Accelerator.for_parameters(load_parameters("pynq"), hazards="none")
SAMPLE = 6
WORKLOADS = {
    "padded": "conv2d:n=2,ci=48,h=11,w=13,co=80,k=3x3,p=1x1,bias=1",
    "strided": "conv2d:n=1,ci=64,h=14,w=14,co=64,k=1x1,s=2x2",
    "resnet18": "resnet18.C11",
    "grouped": "conv2d:n=1,ci=64,h=10,w=9,co=64,k=3x3,p=1x1,groups=4",
    "groups of two blocks": "conv2d:n=1,ci=64,h=7,w=9,co=128,k=3x3,p=1x1,groups=2,bias=1",
    "groups of less than a block": "conv2d:n=1,ci=24,h=8,w=8,co=24,k=3x3,p=1x1,groups=3",
    "transposed": "conv2d_transpose:n=1,ci=32,h=6,w=5,co=48,k=4x4,s=2x2,p=1x1",
    "dense": "dense:n=3,ci=100,co=200,bias=1",
}


@pytest.mark.parametrize("kind", ["autotvm", "ml2"])
@pytest.mark.parametrize("text", WORKLOADS.values(), ids=WORKLOADS)
def test_strict_is_right_without_interlock(text: str, kind: str) -> None:
    workload = load_workload(text)
    library = quick_build(WITHOUT_INTERLOCK, "rtl")
    space = space_for(workload, WITHOUT_INTERLOCK, orders=4, kind=kind)  # type: ignore[arg-type]
    generator = np.random.default_rng(11)
    indices = space.sample(3000, generator)
    accepted = indices[verdicts(workload, WITHOUT_INTERLOCK, space.columns(indices), "strict") == 0]
    tensors = make_tensors(workload, WITHOUT_INTERLOCK, seed=9)
    for index in generator.choice(accepted, min(SAMPLE, len(accepted)), replace=False):
        knobs = space.knobs_at(int(index))
        program = lower(workload, knobs, WITHOUT_INTERLOCK, "strict")
        run = run_program(library, program, tensors.inputs, max_cycles=5_000_000)
        assert run.execution.status is DeviceStatus.DONE, describe(knobs)
        assert np.array_equal(run.output, tensors.expected.ravel()), describe(knobs)
