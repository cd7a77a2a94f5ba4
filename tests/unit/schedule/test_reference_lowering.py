"""Two lowerings, plain loops and batches of arrays, write the same programs, word for word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.schedule import Conv2d, Rejected, load_workload, lower_many, space_for
from hilt.schedule.checks import Checks
from hilt.schedule.reference_lowering import lower_one
from hilt.schedule.space import SpaceKind
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program
from tests.unit.schedule.cases import BATCHED, PYNQ, PYNQ_B, ZCU102, small_convolutions

LONGEST = 4000
"""Instructions of a program that is compared: longer ones take a second each and add no case."""
WORKLOADS = {
    "edges, stride, bias": "conv2d:n=1,ci=32,h=15,w=13,co=48,k=3x5,s=2x1,p=1x2,bias=1",
    "groups of several blocks": "conv2d:n=2,ci=64,h=12,w=12,co=64,k=3x3,p=1x1,groups=2,bias=1",
    "groups of one block": "conv2d:n=1,ci=64,h=9,w=9,co=64,k=3x3,p=1x1,groups=4",
    "depthwise": "conv2d:n=1,ci=64,h=9,w=9,co=64,k=3x3,p=1x1,groups=64",
    "dense": "dense:n=4,ci=512,co=100",
    "transposed": "conv2d_transpose:n=1,ci=32,h=7,w=7,co=32,k=4x4,s=2x2,p=1x1",
    "one row of the kernel, stride": "conv2d:n=1,ci=16,h=14,w=14,co=32,k=1x1,s=2x2",
    "boxes that are all padding": "conv2d:n=4,ci=20,h=6,w=6,co=40,k=3x3,p=4x4,bias=1",
}


def compare(
    workload: Conv2d, accelerator: Accelerator, kind: SpaceKind, checks: Checks, count: int, longest: int = LONGEST
) -> int:
    """Compare both lowerings of a sample of the space; return the number of programs."""
    space = space_for(workload, accelerator, orders=1 if kind == "ml2" else 4, kind=kind)
    indices = space.sample(count, np.random.default_rng(7))
    programs = 0
    for index, together in zip(indices, lower_many(workload, space.columns(indices), accelerator, checks), strict=True):
        knobs = space.knobs_at(int(index))
        if isinstance(together, Rejected):
            with pytest.raises(Rejected) as rejected:
                lower_one(workload, knobs, accelerator, checks)
            assert str(rejected.value) == str(together)
        elif len(together.instructions) <= longest:
            alone = lower_one(workload, knobs, accelerator, checks)
            assert_same(alone, together)
            programs += 1
    return programs


def assert_same(alone: Program, together: Program) -> None:
    assert np.array_equal(alone.instructions, together.instructions)
    assert np.array_equal(alone.uops, together.uops)
    assert [buffer.name for buffer in alone.buffers] == [buffer.name for buffer in together.buffers]
    assert alone.sha256 == together.sha256


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_few_programs_of_every_operator(name: str) -> None:
    assert compare(load_workload(WORKLOADS[name]), PYNQ, "ml2", "compiler", 5, longest=600) > 0


@pytest.mark.slow
@pytest.mark.parametrize("checks", ["compiler", "tvm"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_threads_and_orders_of_every_operator(name: str, checks: Checks) -> None:
    workload = load_workload(WORKLOADS[name])
    programs = sum(compare(workload, accelerator, "autotvm", checks, 12) for accelerator in (PYNQ, BATCHED))
    assert programs > 0 or checks == "tvm"  # TVM accepts few of a grouped one


@pytest.mark.slow
@pytest.mark.parametrize("accelerator", [PYNQ_B, ZCU102], ids=["revision B", "zcu102"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_tiles_that_do_not_divide_the_output(name: str, accelerator: Accelerator) -> None:
    assert compare(load_workload(WORKLOADS[name]), accelerator, "ml2", "compiler", 12) > 0


@settings(max_examples=30, deadline=None)
@given(small_convolutions(), st.sampled_from(["autotvm", "ml2"]))
@pytest.mark.slow
def test_any_small_convolution(workload: Conv2d, kind: SpaceKind) -> None:
    compare(workload, PYNQ, kind, "strict", 4)
