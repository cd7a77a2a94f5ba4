"""Batch norms, constant factors and terms go into layers, or are layers of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import Array, model_of
from .test_canonical_form import assert_same, normal


def test_norms_and_activations_of_one_dimension_follow_their_layers() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1]),
        helper.make_node("BatchNormalization", ["a", "g", "b", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["r", "u"], ["c"], pads=[1, 1], group=4),
        helper.make_node("Mul", ["c", "f"], ["d"]),
        helper.make_node("Add", ["d", "r"], ["e"]),
        helper.make_node("Clip", ["e", "low"], ["k"]),
        helper.make_node("PRelu", ["k", "f"], ["p"]),
        helper.make_node("Conv", ["p", "t"], ["y"]),
    ]
    constants = {"w": normal(8, 3, 3), "u": normal(8, 2, 3), "t": normal(5, 8, 1), "f": normal(8, 1)}
    constants |= {"g": normal(8), "b": normal(8), "m": normal(8), "v": np.abs(normal(8)) + 0.1}
    constants["low"] = np.array(-0.5, np.float32)
    operators = assert_same(model_of(nodes, {"x": (2, 3, 12)}, constants), {"x": normal(2, 3, 12)})
    assert operators == {"Reshape": 2, "Conv": 3, "Relu": 1, "Add": 1, "Clip": 1, "PRelu": 1}


def test_biases_of_products_of_rank_three_fold() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["b", "a"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MatMul", ["r", "u"], ["d"]),
        helper.make_node("Mul", ["d", "f"], ["e"]),
        helper.make_node("Sub", ["one", "e"], ["g"]),
        helper.make_node("Add", ["g", "rows"], ["y"]),
    ]
    constants = {"w": normal(8, 16), "b": normal(16), "u": normal(16, 8), "f": normal(1, 1, 8)}
    constants |= {"one": normal(1, 1, 1), "rows": normal(4, 1)}
    operators = assert_same(model_of(nodes, {"x": (2, 4, 8)}, constants), {"x": normal(2, 4, 8)})
    assert operators == {"Reshape": 2, "Gemm": 2, "Relu": 1, "Add": 1}


@pytest.mark.parametrize(
    ("node", "constant"),
    [
        (helper.make_node("Add", ["a", "k"], ["y"]), normal(7)),
        (helper.make_node("Mul", ["a", "k"], ["y"]), normal(2, 1, 7)),
        (helper.make_node("Add", ["a", "k"], ["y"]), normal(1, 2, 5, 7)),
        (helper.make_node("Softmax", ["a"], ["y"], axis=1), normal(1)),
        (helper.make_node("Add", ["a", "x"], ["y"]), normal(1)),
    ],
)
def test_what_varies_along_a_line_stays_behind_it(node: Any, constant: Array) -> None:
    conv = helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1])
    model = model_of([conv, node], {"x": (2, 5, 7)}, {"w": normal(5, 5, 3), "k": constant})
    assert_same(model, {"x": normal(2, 5, 7)})


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("swapped", [False, True])
def test_constants_fold_into_a_convolution(op: str, swapped: bool) -> None:
    operands = ["c", "s"] if swapped else ["s", "c"]
    nodes = [helper.make_node("Conv", ["x", "w"], ["s"]), helper.make_node(op, operands, ["y"])]
    model = model_of(nodes, {"x": (1, 2, 4, 4)}, {"w": normal(3, 2, 1, 1), "c": np.abs(normal(1, 3, 1, 1)) + 1})
    operators = assert_same(model, {"x": normal(1, 2, 4, 4) + 9})
    assert operators[op] == (1 if op == "Div" and swapped else 0)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_batch_norms_fold(op: str) -> None:
    nodes = [
        helper.make_node(op, ["x", "w"], ["s"], group=2),
        helper.make_node("BatchNormalization", ["s", "g", "b", "m", "v"], ["t"]),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    parts = {"g": normal(6), "b": normal(6), "m": normal(6), "v": np.abs(normal(6)) + 0.1}
    weights = normal(6, 2, 3, 3) if op == "Conv" else normal(4, 3, 3, 3)
    operators = assert_same(model_of(nodes, {"x": (1, 4, 5, 5)}, {"w": weights, **parts}), {"x": normal(1, 4, 5, 5)})
    assert operators["BatchNormalization"] == 0


@pytest.mark.parametrize("product", [False, True])
def test_a_norm_in_front_of_layers_is_a_layer(product: bool) -> None:
    norm = [helper.make_node("BatchNormalization", ["j", "g", "b", "m", "v"], ["n"])]
    if product:
        norm = [helper.make_node("Mul", ["f", "j"], ["s"]), helper.make_node("Add", ["s", "f"], ["n"])]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Concat", ["x", "c"], ["j"], axis=1),
        *norm,
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["r", "u"], ["y"]),
    ]
    constants = {"w": normal(8, 4, 1, 1), "u": normal(5, 12, 3, 3), "f": normal(12, 1, 1)}
    constants |= {"g": normal(12), "b": normal(12), "m": normal(12), "v": np.abs(normal(12)) + 0.1}
    operators = assert_same(model_of(nodes, {"x": (1, 4, 6, 6)}, constants), {"x": normal(1, 4, 6, 6)})
    assert operators["Conv"] == 3 and operators["BatchNormalization"] == operators["Mul"] == operators["Add"] == 0


def test_a_norm_of_few_channels_of_the_input_or_of_one_number_stays() -> None:
    parts = {"g": normal(4), "b": normal(4), "m": normal(4), "v": np.abs(normal(4)) + 0.1}
    pool = helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2])
    norm = helper.make_node("BatchNormalization", ["p", "g", "b", "m", "v"], ["y"])
    assert assert_same(model_of([pool, norm], {"x": (1, 4, 6, 6)}, parts), {"x": normal(1, 4, 6, 6)})["Conv"] == 0
    nodes = [
        pool,
        helper.make_node("Mul", ["p", "two"], ["s"]),
        helper.make_node("Add", ["s", "two"], ["y"]),
    ]
    scalar = {"two": np.array(2.0, np.float32)}
    assert assert_same(model_of(nodes, {"x": (1, 16, 6, 6)}, scalar), {"x": normal(1, 16, 6, 6)})["Conv"] == 0
    wide = {name: np.repeat(value, 4) for name, value in parts.items()}
    norm = helper.make_node("BatchNormalization", ["x", "g", "b", "m", "v"], ["y"])
    assert assert_same(model_of([norm], {"x": (1, 16, 6, 6)}, wide), {"x": normal(1, 16, 6, 6)})["Conv"] == 0


@pytest.mark.parametrize("grouped", [False, True])
def test_factors_behind_a_normalization_are_no_layer(grouped: bool) -> None:
    """The normalization takes them in; a layer would need its result in int8 first."""
    shapes = [helper.make_node("Reshape", ["x", "groups"], ["g"]), helper.make_node("Reshape", ["n", "image"], ["i"])]
    norm = helper.make_node("InstanceNormalization", ["g" if grouped else "x", "o", "z"], ["n"])
    nodes = [
        *([shapes[0], norm, shapes[1]] if grouped else [norm]),
        helper.make_node("Mul", ["i" if grouped else "n", "f"], ["s"]),
        helper.make_node("Add", ["s", "f"], ["y"]),
    ]
    count = 2 if grouped else 12
    constants = {"o": np.ones(count, np.float32), "z": np.zeros(count, np.float32), "f": normal(12, 1, 1)}
    constants |= {"groups": np.array([1, 2, -1]), "image": np.array([1, 12, 6, 6])} if grouped else {}
    operators = assert_same(model_of(nodes, {"x": (1, 12, 6, 6)}, constants), {"x": normal(1, 12, 6, 6)})
    assert operators["Conv"] == 0 and operators["Mul"] == operators["Add"] == 1
