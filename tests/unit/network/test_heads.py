"""Dense layers of a few numbers at the end stay in float: which these are, and values that int8 would cut off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration, Runner
from hilt.network.quantize.heads import float_heads
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import find_regions

from .models import Array, canonical, model_of


def regression(numbers: int = 1, depth: int = 32, rows: int = 1, after: tuple[str, ...] = ()) -> Any:
    """Return a dense layer, and one of some numbers behind it, with operators behind that."""
    random = np.random.default_rng(1)
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], name="body", transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "b"], ["y0"], name="head", transB=1),
    ]
    nodes += [helper.make_node(op, [f"y{place}"], [f"y{place + 1}"]) for place, op in enumerate(after)]
    constants = {"w": random.normal(0, 0.3, (depth, 8)), "v": random.normal(0, 0.3, (numbers, depth))}
    constants["b"] = random.normal(0, 0.3, numbers)
    typed: dict[str, Array] = {name: values.astype(np.float32) for name, values in constants.items()}
    return model_of(nodes, {"x": (rows, 8)}, typed, [f"y{len(after)}"])


def heads_of(model: Any, *kept: str) -> list[str]:
    graph = canonical(model)
    return float_heads(graph, [layer.node for layer in find_regions(graph, kept).layers])


@pytest.mark.parametrize(
    ("given", "is_head"),
    [
        ({}, True),
        ({"numbers": 16}, True),
        ({"numbers": 17}, False),
        ({"depth": 2048, "numbers": 4}, True),
        ({"depth": 2064, "numbers": 4}, False),
        ({"rows": 8, "depth": 1024}, True),
        ({"rows": 9, "depth": 1024}, False),
        ({"after": ("Sigmoid",)}, True),
        ({"after": ("Neg", "Tanh")}, True),
        ({"after": ("Softmax",), "numbers": 2}, False),
        ({"after": ("Neg", "LogSoftmax"), "numbers": 2}, False),
        ({"after": ("ArgMax",), "numbers": 2}, False),
    ],
)
def test_a_few_numbers_that_are_results_stay_in_float(given: dict[str, Any], is_head: bool) -> None:
    assert heads_of(regression(**given)) == (["head"] if is_head else [])


def test_numbers_that_turn_an_image_stay_in_float_though_layers_follow() -> None:
    """A matrix of 3 x 3 from the image itself, as point networks have it: the product of two tensors is of floats."""
    random = np.random.default_rng(2)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], name="body"),
        helper.make_node("GlobalMaxPool", ["h"], ["m"]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["t"], name="turn", transB=1),
        helper.make_node("Reshape", ["t", "square"], ["s"]),
        helper.make_node("Squeeze", ["x", "two"], ["p"]),
        helper.make_node("MatMul", ["s", "p"], ["q"]),
        helper.make_node("Unsqueeze", ["q", "two"], ["i"]),
        helper.make_node("Conv", ["i", "u"], ["y"], name="last"),
    ]
    constants: dict[str, Array] = {
        name: random.normal(0, 0.3, shape).astype(np.float32)
        for name, shape in {"w": (16, 3, 1, 1), "v": (9, 16), "u": (24, 3, 1, 1)}.items()
    }
    constants |= {"square": np.array([1, 3, 3]), "two": np.array([2])}
    model = model_of(nodes, {"x": (1, 3, 1, 20)}, constants)
    assert heads_of(model) == ["turn"]
    nodes[6:7] = [helper.make_node("Softmax", ["s"], ["o"]), helper.make_node("MatMul", ["o", "p"], ["q"])]
    assert heads_of(model_of(nodes, {"x": (1, 3, 1, 20)}, constants)) == []


def test_the_only_layer_is_no_head() -> None:
    assert heads_of(regression(), "body") == []
    assert heads_of(regression(), "head") == []


def test_a_layer_that_another_reads_is_no_head() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], name="narrow", transB=1),
        helper.make_node("Gemm", ["h", "v"], ["y"], name="wide", transB=1),
    ]
    constants = {"w": np.ones((2, 8), np.float32), "v": np.ones((24, 2), np.float32)}
    for outputs in (("y",), ("h", "y")):
        assert heads_of(model_of(nodes, {"x": (1, 8)}, constants, outputs)) == []


def test_a_number_beyond_those_of_the_calibration_is_not_cut_off() -> None:
    """Each sample has one large value, whose mean with others is small; then all are large."""
    graph = canonical(regression(depth=8))
    for node, weights in zip((graph.nodes[0], graph.nodes[2]), (np.eye(8), np.full((1, 8), 1 / 8)), strict=True):
        graph.constants[node.inputs[1]] = weights.astype(np.float32)
    random = np.random.default_rng(3)
    rows = [np.eye(8)[[place % 8]] * random.uniform(0.5, 1) for place in range(64)]
    result = quantise(graph, Calibration(tuple({"x": row.astype(np.float32)} for row in rows)))
    assert [node.name for node in result.kept] == ["head"]
    feeds = {"x": np.full((1, 8), 0.9, np.float32)}
    wanted, given = (Runner(each, ["y0"]).run(feeds)["y0"] for each in (graph, result.model))
    np.testing.assert_allclose(given, wanted, atol=0.02)


def test_a_mean_in_front_of_a_head_is_int8_once() -> None:
    """It is centred; the head reads it with its constant added again, in float."""
    random = np.random.default_rng(5)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["m"]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], name="head", transB=1),
    ]
    shapes = {"w": (24, 4, 3, 3), "b": (24,), "v": (10, 24)}
    constants = {name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    samples = tuple({"x": random.normal(0, 1, (1, 4, 8, 8)).astype(np.float32)} for _ in range(32))
    result = quantise(canonical(model_of(nodes, {"x": (1, 4, 8, 8)}, constants)), Calibration(samples))
    graph = result.graph
    makers = {name: node for node in graph.nodes for name in node.outputs}
    (head,) = (node for node in graph.nodes if node.name == "head")
    front = makers[head.inputs[0]]
    while front.op == "reshape" or graph.tensors[front.outputs[0]].dtype == "float32":
        front = makers[front.inputs[0]]
    assert front.op == "global_average_pool" and front.attributes["offset"] != 0
    assert [node.op for node in graph.nodes].count("table") <= 1
    assert result.costs.decibels > 35
