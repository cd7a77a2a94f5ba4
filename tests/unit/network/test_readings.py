"""Readings of the clock: behind which steps there is none, and how the time of one is shared out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.core_speed import CORTEX_A9, StepWork, step_seconds
from hilt_runtime import operators
from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.readings import SMALL, quiet_steps, shared_out
from hilt_runtime.native.strips import KnownTensors
from tests.unit.network.engines import library
from tests.unit.network.test_strips import step

VTA = {"kind": "vta", "name": "vta", "program": 0}
PACK = {"kind": "pack", "name": "pack", "tensor": "x", "buffer": "b"}
SHAPES = {"x": (2, 8), "y": (2, 8), "z": (2, 8), "large": (SMALL + 1,), "most": (SMALL,)}
KNOWN = KnownTensors(SHAPES.get, lambda name: 4, lambda name: None)


def places(*steps: dict[str, Any], numpy: str = "") -> set[int]:
    return set(quiet_steps(steps, KNOWN, lambda each: each["name"] != numpy))


def test_small_steps_that_native_ones_follow_share_a_reading() -> None:
    relu, other = step("Relu", ["x"], "y"), step("Relu", ["y"], "z")
    assert places(relu, other) == {0}
    assert places(relu, other, PACK, VTA) == {0, 1}
    assert places(relu, step("Reshape", ["y"], "z"), VTA) == set()
    assert places(relu, step("Reshape", ["y"], "z"), other, VTA) == {0}
    assert places(relu, other, numpy="z") == set() == places(relu, other, numpy="y")
    assert places(step("Relu", ["most"], "y"), other) == {0}


@pytest.mark.parametrize(
    "first",
    [
        step("Relu", ["x"], "large"),
        step("MatMul", ["x", "large"], "y"),
        step("Relu", ["x"], "unknown"),
        {**step("table", ["x"], "y"), "packed": {"y": "b"}},
    ],
)
def test_others_have_their_own(first: dict[str, Any]) -> None:
    assert places(first, step("Relu", ["y"], "z")) == set()


def test_a_readings_time_is_shared_out_by_work() -> None:
    times = [(0.0, 1.0, None), (1.0, 1.0, None), (1.0, 1.0, None), (1.0, 1.0, None), (1.0, 5.0, 7), (5.0, 6.0, None)]
    shared = shared_out(times, {1, 3}, [9, 1, 0, 2, 1, 9])
    assert shared == [(0, 1, None), (1, 2, None), (2, 2, None), (2, 4, None), (4, 5, 7), (5, 6, None)]


def test_the_engine_reads_the_clock_where_it_must() -> None:
    """Two small steps, numpy's, and two more: each pair has one reading, and the last step of each has it."""
    names = ["a", "b", "c", "d", "e"]
    steps = [
        step("Relu" if name != "c" else "Cos", [source], name) for source, name in zip("xabcd", names, strict=True)
    ]
    plan = InferencePlan(library(), {}, {})
    given = {"x": np.linspace(-2, 2, 64, dtype=np.float32)}
    plan.begin(given)
    for each in steps:
        plan.add_operator(each, lambda data, each=each: operators.run(each["op"], data, {}))
    plan.finish(steps, {"e"})
    assert [record.quiet for record in plan.builder.records] == [1, 0, 0, 1, 0]
    plan.run(given)
    raw, results = plan.times()
    begins, ends = raw[0:10:2], raw[1:10:2]
    assert begins[0] == ends[0] == begins[1] < ends[1] <= begins[2] < ends[2] <= begins[3] == ends[3] == begins[4]
    shared = plan.step_times(raw, results)
    assert all(began < ended for began, ended, _ in shared)
    assert [shared[0][0], shared[1][1], shared[3][0], shared[4][1]] == [begins[0], ends[1], begins[3], ends[4]]


def test_a_quiet_step_takes_less_by_the_model() -> None:
    work = StepWork("Relu", 100, 800)
    alone, shared = (step_seconds(CORTEX_A9, "native", work, quiet=quiet) for quiet in (False, True))
    assert 1e-6 < alone - shared < 2e-6
