"""Concats that copy nothing: their bits, inference after inference, which of them do so, and that they cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.core_speed import CORTEX_A9
from hilt.network.graph import Graph, Node, Tensor
from hilt.network.processor_time import modelled_time
from hilt_runtime.native.inference import InferencePlan
from hilt_runtime.native.joins import joined_in_place
from hilt_runtime.native.steps import KERNELS
from tests.unit.network.engines import bits
from tests.unit.network.test_strips import Step, by_numpy, known, planned, step

RANDOM = np.random.default_rng(6)
BOXES, SCORES = (1, 4, 50), (1, 30, 50)
HEAD = [
    step("Add", ["boxes", "anchors"], "moved"),
    step("Mul", ["moved", "size"], "scaled"),
    step("table", ["scores", "sigmoid"], "sure"),
    step("Concat", ["scaled", "sure"], "all", axis=1),
]
CONSTANTS = {
    "anchors": RANDOM.normal(0, 1, (1, 1, 50)).astype(np.float32),
    "size": np.full(1, 8, np.float32),
    "sigmoid": RANDOM.normal(0, 1, 256).astype(np.float32),
}


def given() -> dict[str, Any]:
    return {
        "boxes": RANDOM.normal(0, 3, BOXES).astype(np.float32),
        "scores": RANDOM.integers(-128, 128, SCORES).astype(np.int8),
    }


def kernels(plan: InferencePlan) -> list[str]:
    return [KERNELS[record.kernel - 1] for record in plan.builder.records]


def runs_alike(steps: list[Step], kept: set[str], threads: int = 1) -> InferencePlan:
    """Return the plan of steps; their kept tensors have numpy's bits, in the first inference and in later ones."""
    inputs = given()
    plan = planned(steps, CONSTANTS, inputs, kept, threads)
    for turn in range(3):
        if turn:
            inputs = given()
            plan.run(inputs)
        wanted = by_numpy(steps, {**CONSTANTS, **inputs})
        for name in sorted(kept):
            np.testing.assert_array_equal(bits(plan.values[name]), bits(wanted[name]), err_msg=f"{name}, turn {turn}")
    return plan


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kept", [{"all"}, {"all", "sure", "scaled", "moved"}])
def test_the_parts_of_a_head_are_made_where_they_are_joined(kept: set[str], threads: int) -> None:
    plan = runs_alike(HEAD, kept, threads)
    assert "copy" not in kernels(plan)
    assert np.shares_memory(plan.values["all"], plan.values["sure"])
    times = plan.step_times(*plan.times())
    assert times[3][0] == times[3][1] and len(times) == 4


def test_joined_tensors_that_are_joined_again_are_made_in_the_last() -> None:
    steps = [*HEAD, step("Exp", ["boxes"], "wide"), step("Concat", ["all", "wide"], "more", axis=-2)]
    plan = runs_alike(steps, {"more", "all", "sure"})
    assert "copy" not in kernels(plan)
    assert np.shares_memory(plan.values["more"], plan.values["sure"])


def test_a_chain_of_strips_writes_to_its_part() -> None:
    steps = [
        step("Relu", ["boxes"], "above"), step("Exp", ["above"], "wide"), step("table", ["scores", "sigmoid"], "sure"),
        step("Concat", ["wide", "sure"], "all", axis=1),
    ]  # fmt: skip
    large = {"boxes": RANDOM.normal(0, 1, (1, 40, 400)), "scores": RANDOM.integers(-128, 128, (1, 8, 400))}
    inputs = {"boxes": large["boxes"].astype(np.float32), "scores": large["scores"].astype(np.int8)}
    plan = planned(steps, CONSTANTS, inputs, {"all"})
    assert any(record.chain > 1 for record in plan.builder.records) and "copy" not in kernels(plan)
    other = {name: value[..., ::-1].copy() for name, value in inputs.items()}
    plan.run(other)
    np.testing.assert_array_equal(bits(plan.values["all"]), bits(by_numpy(steps, {**CONSTANTS, **other})["all"]))


def places(steps: list[Step], refused: str = "") -> frozenset[int]:
    values = by_numpy(steps, {**CONSTANTS, **given()})
    return joined_in_place(steps, known(values, CONSTANTS), lambda each: each["name"] != refused)


COPYING: dict[str, list[Step]] = {
    "columns": [*HEAD[:3], step("Concat", ["scaled", "moved"], "all", axis=2)],
    "an input": [*HEAD[:3], step("Concat", ["scaled", "boxes"], "all", axis=1)],
    "a constant": [*HEAD[:3], step("Concat", ["scaled", "anchors"], "all", axis=1)],
    "twice the same": [*HEAD[:3], step("Concat", ["sure", "sure"], "all", axis=1)],
    "a part that others read": [*HEAD, step("Exp", ["sure"], "more")],
    "a view": [
        *HEAD[:3],
        step("Reshape", ["sure", "shape"], "flat"),
        step("Concat", ["scaled", "flat"], "all", axis=1),
    ],
}


@pytest.mark.parametrize("case", COPYING)
def test_other_parts_are_copied(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONSTANTS, "shape", np.array(SCORES))
    assert places(HEAD) == {3}
    assert not places(COPYING[case])
    runs_alike(COPYING[case], {"all"})


@pytest.mark.parametrize("refused", ["all", "sure", "scaled"])
def test_what_numpy_computes_is_copied(refused: str) -> None:
    assert not places(HEAD, refused)


def test_the_time_of_a_head_has_no_copy() -> None:
    shapes = {"boxes": BOXES, "scores": SCORES, "moved": BOXES, "scaled": BOXES, "sure": SCORES, "all": (1, 34, 50)}
    tensors = {name: Tensor(name, shape, "int8" if name == "scores" else "float32") for name, shape in shapes.items()}
    nodes = tuple(Node(each["name"], each["op"], tuple(each["inputs"]), tuple(each["outputs"]), each["attributes"])
                  for each in HEAD)  # fmt: skip
    graph = Graph("head", ("boxes", "scores"), ("all",), nodes, tensors, CONSTANTS)
    manifest = {
        "steps": HEAD,
        "outputs": [{"name": "all"}],
        "buffers": {},
        "target": {"parameters": "1x16_i8w8a32_15_15_18_17"},
    }
    native = modelled_time(CORTEX_A9, graph, manifest, {})
    assert native.steps[3] == 0.0 and native.steps[2] > 0.0
    by_hand = modelled_time(CORTEX_A9, graph, manifest, {"sure": "numpy"})
    assert by_hand.steps[3] > 0.0
