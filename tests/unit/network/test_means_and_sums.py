"""Means of rows and columns are pools; of a sum of images of two sizes the smaller one is repeated first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import Array, canonical, canonical_operators, model_of

node = helper.make_node
SHAPE = (1, 4, 6, 5)


def normal(*shape: int) -> Array:
    return np.random.default_rng(len(shape) + sum(shape)).normal(0, 1, shape).astype(np.float32)


def same(nodes: list[Any], constants: dict[str, Array], opset: int = 17) -> Counter[str]:
    return canonical_operators(nodes, SHAPE, constants, opset)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [2, 3, -1])
def test_a_mean_of_one_axis_is_a_pool(axis: int, keepdims: int) -> None:
    operators = same([node("ReduceMean", ["x"], ["y"], axes=[axis], keepdims=keepdims)], {})
    assert operators == {"AveragePool": 1} | ({} if keepdims else {"Reshape": 1})
    nodes = [node("ReduceMean", ["x", "axes"], ["y"], keepdims=keepdims)]
    assert same(nodes, {"axes": np.array([axis])}, opset=18) == operators


@pytest.mark.parametrize("axes", [[1], [0, 3], [1, 2, 3], None])
def test_a_mean_of_other_axes_stays(axes: list[int] | None) -> None:
    assert same([node("ReduceMean", ["x"], ["y"], axes=axes)], {}) == {"ReduceMean": 1}


@pytest.mark.parametrize("axis", [2, 3])
def test_a_mean_of_one_axis_that_weights_read_divides_by_a_power_of_two(axis: int) -> None:
    nodes = [node("ReduceMean", ["x"], ["m"], axes=[axis]), node("Conv", ["m", "w"], ["y"], pads=[1] * 4)]
    constants = {"w": normal(8, 4, 3, 3)}
    assert same(nodes, constants) == {"AveragePool": 1, "Conv": 1}
    pool = canonical(model_of(nodes, {"x": SHAPE}, constants)).nodes[0]
    assert pool.attributes["kernel_shape"] == [8 if axis == 2 else 1, 8 if axis == 3 else 1]


WINDOWS: list[dict[str, Any]] = [
    {"kernel_shape": [6, 3]},
    {"kernel_shape": [1, 5], "strides": [2, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 1], "count_include_pad": 1},
    {"kernel_shape": [3, 2], "strides": [3, 3], "ceil_mode": 1},  # no window leaves the image
]
OTHERS: list[dict[str, Any]] = [
    {"kernel_shape": [2, 4]},
    {"kernel_shape": [3, 3], "pads": [1] * 4},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
]


@pytest.mark.parametrize("attributes", WINDOWS)
def test_windows_that_weights_read_are_a_convolution(attributes: dict[str, Any]) -> None:
    nodes = [node("AveragePool", ["x"], ["m"], **attributes), node("Conv", ["m", "w"], ["y"])]
    assert same(nodes, {"w": normal(8, 4, 1, 1)}) == {"Conv": 2}
    first = canonical(model_of(nodes, {"x": SHAPE}, {"w": normal(8, 4, 1, 1)})).nodes[0]
    assert first.attributes["group"] == 4 and first.attributes["kernel_shape"] == attributes["kernel_shape"]


@pytest.mark.parametrize("attributes", OTHERS)
def test_windows_of_a_power_of_two_or_beyond_the_image_stay(attributes: dict[str, Any]) -> None:
    nodes = [node("AveragePool", ["x"], ["m"], **attributes), node("Conv", ["m", "w"], ["y"])]
    assert same(nodes, {"w": normal(8, 4, 1, 1)}) == {"AveragePool": 1, "Conv": 1}


def test_windows_that_are_a_result_stay() -> None:
    assert same([node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3])], {}) == {"AveragePool": 1}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("axes", [[2], [3], [2, 3]])
def test_the_smaller_addend_is_repeated(axes: list[int], first: bool) -> None:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("ReduceMean", ["c"], ["m"], axes=axes),
        node("Conv", ["m", "v"], ["d"]),
        node("Sigmoid", ["d"], ["s"]),
        node("Add", ["s", "c"] if first else ["c", "s"], ["y"]),
    ]
    operators = same(nodes, {"w": normal(4, 4, 3, 3), "v": normal(4, 4, 1, 1)})
    assert operators["Resize"] == 1 and operators["Add"] == 1


def test_other_sums_stay() -> None:
    """A sum of tensors that no convolution makes, of a constant, of two sizes that both grow, or by channel alone."""
    conv = node("Conv", ["x", "w"], ["c"], pads=[1] * 4)
    row, column, all_channels = (
        node("ReduceMean", ["c"], [name], axes=axes) for name, axes in (("m", [2]), ("n", [3]), ("k", [1]))
    )
    weights = {"w": normal(4, 4, 3, 3)}
    assert same([node("ReduceMax", ["x"], ["m"], axes=[2]), node("Add", ["m", "x"], ["y"])], {})["Resize"] == 0
    assert same([conv, node("Add", ["c", "t"], ["y"])], {**weights, "t": normal(1, 4, 6, 1)})["Resize"] == 0
    assert same([conv, row, column, node("Add", ["m", "n"], ["y"])], weights)["Resize"] == 0
    assert same([conv, all_channels, node("Add", ["c", "k"], ["y"])], weights)["Resize"] == 0
