"""An image less its means over windows is a sum of depthwise convolutions, with factors and the sum behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import Array, canonical, canonical_operators, model_of

node = helper.make_node
SHAPE = (1, 8, 6, 5)
SAME = {"kernel_shape": [3, 3], "pads": [1] * 4}
POOL = node("AveragePool", ["x"], ["p"], **SAME)
HALVES = np.full((8, 1, 1), 0.5, np.float32)
OWN = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8, 1, 1)


def same(nodes: Sequence[Any], constants: dict[str, Array] | None = None, shape: tuple[int, ...] = SHAPE) -> list[str]:
    """Return the operators of the canonical form, in order of their names, which has ONNX Runtime's results."""
    return sorted(canonical_operators(list(nodes), shape, constants or {}, 17).elements())


@pytest.mark.parametrize("order", [["p", "x"], ["x", "p"]])
def test_a_difference_of_an_image_and_its_means_is_a_convolution_and_a_sum(order: list[str]) -> None:
    assert same([POOL, node("Sub", order, ["y"])]) == ["Add", "AveragePool", "Conv"]


@pytest.mark.parametrize(("factors", "convolutions"), [(HALVES, 2), (OWN, 2), (np.float32(2), 2), (np.float32(1), 1)])
def test_factors_and_the_sum_with_the_image_are_taken_in(factors: Array, convolutions: int) -> None:
    nodes = [POOL, node("Sub", ["p", "x"], ["d"]), node("Mul", ["f", "d"], ["s"]), node("Add", ["s", "x"], ["r"])]
    nodes.append(node("Sigmoid", ["r"], ["y"]))
    wanted = ["Add", "AveragePool", "Conv", "Conv", "Sigmoid"] if convolutions == 2 else ["AveragePool", "Sigmoid"]
    assert same(nodes, {"f": np.asarray(factors)}) == wanted
    graph = canonical(model_of(nodes, {"x": SHAPE}, {"f": np.asarray(factors)}))
    weights = [graph.constants[each.inputs[1]].reshape(-1) for each in graph.nodes if each.op == "Conv"]
    by_channel = np.broadcast_to(factors, (1, 8, 1, 1)).reshape(-1)
    np.testing.assert_allclose(weights, [by_channel, 1 - by_channel][: len(weights)], atol=1e-7)


def test_the_means_are_what_the_difference_and_the_image_add_up_to() -> None:
    nodes = [POOL, node("Sub", ["p", "x"], ["d"]), node("Add", ["x", "d"], ["y"])]
    assert same(nodes) == ["AveragePool", "Identity"]


def test_a_mix_that_is_nothing_stays_a_layer() -> None:
    nodes = [POOL, node("Sub", ["p", "x"], ["d"]), node("Mul", ["d", "f"], ["s"]), node("Sigmoid", ["s"], ["y"])]
    assert same(nodes, {"f": np.zeros(1, np.float32)}) == ["AveragePool", "Conv", "Sigmoid"]


def test_a_result_that_others_read_is_the_last_of_a_mix() -> None:
    nodes = [POOL, node("Sub", ["p", "x"], ["d"]), node("Mul", ["d", "f"], ["s"]), node("Add", ["s", "d"], ["y"])]
    assert same(nodes, {"f": HALVES[None]}) == ["Add", "Add", "AveragePool", "Conv", "Mul"]


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        ([POOL, node("Sub", ["p", "x"], ["y"])], (1, 3, 6, 5)),
        ([POOL, node("Relu", ["x"], ["r"]), node("Sub", ["p", "r"], ["y"])], SHAPE),
        ([node("MaxPool", ["x"], ["p"], **SAME), node("Sub", ["p", "x"], ["y"])], SHAPE),
        ([node("GlobalAveragePool", ["x"], ["p"]), node("Sub", ["x", "p"], ["y"])], SHAPE),
    ],
)
def test_other_differences_stay(nodes: list[Any], shape: tuple[int, ...]) -> None:
    assert "Sub" in same(nodes, shape=shape) and "Conv" not in same(nodes, shape=shape)
