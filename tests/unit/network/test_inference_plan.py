"""A plan of an inference: the tensors and buffers that it leaves to numpy, and steps that change their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime.native.inference import ForbiddenError, InferencePlan, ShapeChangedError
from hilt_runtime.native.steps import NotNativeError
from tests.unit.network.engines import library

BUFFER = (1, 2, 3, 4, 1, 16)
"""Of one image of 32 channels, 3 rows and 4 columns."""


def plan_of(data: Any, buffer: Any) -> InferencePlan:
    plan = InferencePlan(library(), {}, {"b": buffer})
    plan.begin({"t": data})
    return plan


@pytest.mark.parametrize(
    ("data", "buffer", "reason"),
    [
        (np.zeros((1, 32, 3, 4), np.uint8), np.zeros(BUFFER, np.int8), "a tensor that is not int8"),
        (np.zeros((1, 32, 3, 4), np.int8), np.zeros(BUFFER, np.uint8), "a tensor that is not int8"),
        (np.zeros((1, 32, 3, 5), np.int8), np.zeros(BUFFER, np.int8), "a tensor of another size than its buffer"),
    ],
)
def test_a_tensor_is_packed_into_a_buffer_of_its_type_and_width(data: Any, buffer: Any, reason: str) -> None:
    plan = plan_of(data, buffer)
    with pytest.raises(NotNativeError, match=reason):
        plan.add_pack({"tensor": "t", "buffer": "b"})
    assert plan.builder.records == [] and not buffer.any()


def test_a_tensor_is_read_back_from_a_buffer_of_its_width() -> None:
    plan = plan_of(np.zeros(1, np.int8), np.zeros(BUFFER, np.int8))
    with pytest.raises(NotNativeError, match="a tensor of another size than its buffer"):
        plan.add_unpack({"tensor": "u", "buffer": "b", "shape": [1, 32, 3, 5]})
    assert "u" not in plan.values


@pytest.mark.parametrize("shape", [(1, 2, 4, 3, 1, 16), (1, 2, 3, 4, 1, 8)])
def test_an_operators_result_has_the_shape_of_its_buffer(shape: tuple[int, ...]) -> None:
    plan = InferencePlan(library(), {"table": np.arange(256).astype(np.int8)}, {"b": np.ones(BUFFER, np.int8)})
    plan._packed["out"] = np.full(shape, 9, np.int8)
    plan.begin({})
    packed = {"x": "b", "y": "out"}
    with pytest.raises(NotNativeError, match="a result of another shape than its buffer"):
        plan.add_packed(
            {"name": "n", "op": "table", "inputs": ["x", "table"], "outputs": ["y"], "attributes": {}, "packed": packed}
        )
    assert plan.builder.records == [] and (plan._packed["out"] == 9).all()


def step(op: str, *inputs: str) -> dict[str, Any]:
    return {"kind": "cpu", "name": op, "op": op, "inputs": list(inputs), "outputs": ["y"], "attributes": {}}


@pytest.mark.parametrize(
    "other", [np.zeros(3, np.float32), np.zeros((4, 1), np.float32), np.zeros(4)], ids=["size", "axes", "type"]
)
def test_a_result_of_numpys_keeps_its_shape_and_type(other: Any) -> None:
    results = [np.ones(4, np.float32), np.full(4, 2, np.float32), other]
    given = {"x": np.zeros(4, np.float32)}
    plan = InferencePlan(library(), {}, {})
    plan.begin(given)
    unknown = step("Unknown", "x")
    plan.add_operator(unknown, lambda inputs: [results.pop(0)])
    assert list(plan.reasons) == ["Unknown"]
    plan.finish([unknown], {"y"})
    assert plan.values["y"].tolist() == [1] * 4
    plan.run(given)
    assert plan.values["y"].tolist() == [2] * 4, "in the memory of the first"
    with pytest.raises(ShapeChangedError, match=r"for float32 \(4,\)$"):
        plan.run(given)


def test_an_operator_of_constants_is_computed_once() -> None:
    constant = np.arange(3, dtype=np.float32)
    plan = InferencePlan(library(), {"c": constant}, {})
    plan.begin({})
    calls = []
    plan.add_operator(step("Neg", "c"), lambda inputs: calls.append(1) or [-inputs[0]])  # type: ignore[func-returns-value]
    plan.add_operator({**step("Abs", "y"), "outputs": ["z"]}, lambda inputs: [np.abs(inputs[0])])
    plan.finish([step("Neg", "c"), step("Abs", "y")], {"z"})
    plan.run({})
    assert calls == [1] and plan.builder.records == [] and plan.values["z"].tolist() == [0, 1, 2]
    assert plan.step_times(*plan.times())[0][2] is None, "a constant takes no time"


def test_a_value_that_a_step_forbids_is_told_by_its_place() -> None:
    """A place that a Gather reads is checked when it is known."""
    data, places = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([1, 3], np.int64)
    given = {"x": data, "p": places}
    plan = InferencePlan(library(), {}, {})
    plan.begin(given)
    steps = [{**step("Relu", "x"), "outputs": ["r"]}, step("Gather", "r", "p")]
    for each in steps:
        plan.add_operator(each, lambda inputs: pytest.fail("numpy computes it"))
    plan.finish(steps, {"y"})
    plan.run({"x": -data, "p": places})
    assert not plan.values["y"].any()
    plan.run(given)
    np.testing.assert_array_equal(plan.values["y"], data[[1, 3]])
    with pytest.raises(ForbiddenError, match="a value forbids step 1") as forbidden:
        plan.run({"x": data, "p": np.array([1, 4], np.int64)})
    assert forbidden.value.place == 1
