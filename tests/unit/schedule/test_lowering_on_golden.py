"""Lowered programs on the golden model, against the numpy reference, element for element."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule import Conv2d, Rejected, load_workload, lower, make_tensors, space_for
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.vta.accelerator import Accelerator
from tests.unit.schedule.cases import BATCHED, PYNQ, PYNQ_B, RESNET18, ZCU102, accepted, describe, small_convolutions


def check(workload: Conv2d, knobs: dict[str, int], accelerator: Accelerator) -> None:
    program = lower(workload, knobs, accelerator)
    tensors = make_tensors(workload, accelerator, seed=3)
    run = run_program(build(accelerator, "golden"), program, tensors.inputs)
    assert run.execution.status is DeviceStatus.DONE, describe(knobs)
    wrong = np.flatnonzero(run.output != tensors.expected.ravel())
    assert not wrong.size, f"{describe(knobs)}: {wrong.size} wrong, the first at {wrong[0]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", RESNET18)
def test_resnet18(name: str) -> None:
    workload = load_workload(name)
    for knobs in accepted(workload, PYNQ, 4, seed=2):
        check(workload, knobs, PYNQ)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "accelerator"),
    [("resnet18.C6", PYNQ_B), ("resnet18.C7", ZCU102), ("deepbench.107", BATCHED), ("deepbench.59", PYNQ)],
)
def test_other_accelerators(name: str, accelerator: Accelerator) -> None:
    workload = load_workload(name)
    for knobs in accepted(workload, accelerator, 2, seed=4):
        check(workload, knobs, accelerator)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(small_convolutions(), st.sampled_from([PYNQ, PYNQ_B, BATCHED, ZCU102]), st.integers(0, 2**31))
def test_any_small_convolution(workload: Conv2d, accelerator: Accelerator, seed: int) -> None:
    space = space_for(workload, accelerator)
    knobs = space.knobs_at(int(np.random.default_rng(seed).integers(len(space))))
    try:
        check(workload, knobs, accelerator)
    except Rejected as rejected:
        assert rejected.reason  # test_checks.py tests the refusals
