"""Means and maxima over channels between layers: a convolution and a pooling; others stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.onnx_canonical import canonicalise

from .models import model_of, operators_after, quantised

IMAGE = (2, 6, 5, 4)
FIRST: tuple[str, str, dict[str, Any]] = ("Conv", "x w -> c", {})
LAST: tuple[str, str, dict[str, Any]] = ("Conv", "m v -> y", {})


def left_by(op: str, axes: tuple[int, ...], keep: int, nodes: Any = (FIRST, None, LAST)) -> list[str]:
    random = np.random.default_rng(3)
    given = {"w": (6, 6, 1, 1), "v": (3, 1, 1, 1)}
    constants: dict[str, Any] = {name: random.normal(0, 1, size).astype(np.float32) for name, size in given.items()}
    reduction = (op, f"{'c' if FIRST in nodes else 'x'} a -> {'m' if LAST in nodes else 'y'}", {"keepdims": keep})
    return operators_after(canonicalise, IMAGE, [each or reduction for each in nodes], {**constants, "a": list(axes)})


def test_a_mean_over_channels_is_a_convolution() -> None:
    assert left_by("ReduceMean", (1,), 1)[:2] == ["Conv", "Conv"]
    assert left_by("ReduceMean", (-3,), 1)[:2] == ["Conv", "Conv"]


def test_a_maximum_over_channels_is_a_pooling() -> None:
    assert left_by("ReduceMax", (1,), 1) == ["Conv", "Reshape", "MaxPool", "Reshape", "Conv"]


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax"])
def test_it_stays_where_no_layer_is_in_front_or_behind(op: str) -> None:
    assert op in left_by(op, (1,), 1, (None, LAST))
    assert op in left_by(op, (1,), 1, (FIRST, None))


def test_the_means_of_a_norm_stay_floats() -> None:
    nodes: list[Any] = [
        FIRST, ("ReduceMean", "c a -> u", {}), ("Sub", "c u -> d", {}), ("Mul", "d d -> q", {}),
        ("ReduceMean", "q a -> s", {}), ("Sqrt", "s -> r", {}), ("Div", "d r -> m", {}), ("Conv", "m w -> y", {}),
    ]  # fmt: skip
    weights = np.random.default_rng(3).normal(0, 1, (6, 6, 1, 1)).astype(np.float32)
    found = operators_after(canonicalise, IMAGE, nodes, {"w": weights, "a": [1]})
    assert found == ["Conv", "ReduceMean", "Sub", "Mul", "ReduceMean", "Sqrt", "Div", "Conv"]


def test_other_axes_stay() -> None:
    assert "ReduceMax" in left_by("ReduceMax", (3,), 1, (FIRST, None))
    assert left_by("ReduceMin", (1,), 1) == ["Conv", "ReduceMin", "Conv"]


def test_channels_that_are_dropped_come_back() -> None:
    nodes: list[Any] = [FIRST, ("ReduceMax", "c a -> d", {"keepdims": 0}), ("Unsqueeze", "d a -> m", {}), LAST]
    constants: dict[str, Any] = {"w": np.ones((6, 6, 1, 1), np.float32), "v": np.ones((3, 1, 1, 1), np.float32)}
    found = operators_after(canonicalise, IMAGE, nodes, {**constants, "a": [1]})
    assert found == ["Conv", "Reshape", "MaxPool", "Reshape", "Conv"]


def test_spatial_attention_is_int8_from_end_to_end() -> None:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"]), node("ReduceMean", ["c"], ["m"], axes=[1]),
        node("ReduceMax", ["c"], ["n"], axes=[1]), node("Concat", ["m", "n"], ["j"], axis=1),
        node("Conv", ["j", "k"], ["g"], pads=[3] * 4), node("Sigmoid", ["g"], ["s"]), node("Mul", ["c", "s"], ["t"]),
        node("Conv", ["t", "v"], ["y"]),
    ]  # fmt: skip
    random = np.random.default_rng(3)
    shapes = {"w": (8, 3, 1, 1), "k": (1, 2, 7, 7), "v": (4, 8, 1, 1)}
    constants = {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    result = quantised(model_of(nodes, {"x": (1, 3, 8, 8)}, constants))
    assert not any(node.op[0].isupper() for node in result.graph.nodes)
    assert result.agreement.unexplained == 0 and result.costs.decibels > 20
