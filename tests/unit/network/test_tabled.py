"""Costly functions of floats are tables of int8 where a layer reads their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.calibration import Runner, make_calibration
from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_simplify import fixed_model
from hilt.network.quantize.quantizer import quantise
from hilt.network.quantize.regions import find_regions
from hilt.network.quantize.statistics import signal_to_noise
from hilt.network.quantize.tabled import find_tabled

from .models import Array, model_of
from .test_powers import node

CONSTANTS: dict[str, Array] = {
    "w": np.random.default_rng(2).normal(0, 0.4, (8, 8, 1, 1)).astype(np.float32),
    "root": np.array(2**0.5, np.float32),
    "one": np.array(1, np.float32),
    "half": np.array(0.5, np.float32),
    "each": np.linspace(0.5, 1.5, 8, dtype=np.float32).reshape(1, 8, 1, 1),
    "gain": np.ones(8, np.float32),
    "shift": np.zeros(8, np.float32),
}
GELU = [
    node("Div", "n,root", "d"), node("Erf", "d", "e"), node("Add", "e,one", "s"),
    node("Mul", "n,s", "p"), node("Mul", "p,half", "g"),
]  # fmt: skip
NORM = node("InstanceNormalization", "c,gain,shift", "n")
LAST = node("Conv", "g,w", "y")


def graph_of(nodes: list[Any]) -> OnnxGraph:
    nodes = [node("Conv", "x,w", "c"), *nodes]
    read = {name for each in nodes for name in each.input}
    constants = {name: value for name, value in CONSTANTS.items() if name in read}
    return fixed_model(model_of(nodes, {"x": (1, 8, 6, 6)}, constants), "test")


@pytest.mark.parametrize(
    ("nodes", "tabled"),
    [
        ([NORM, *GELU, LAST], {"n"}),
        ([NORM, node("Tanh", "n", "t"), node("Mul", "t,half", "g"), LAST], {"n"}),
        ([NORM, node("Relu", "n", "g"), LAST], set()),
        ([NORM, node("Sqrt", "n", "g"), LAST], set()),
        ([NORM, node("Mul", "n,each", "m"), node("Tanh", "m", "g"), LAST], {"m"}),
        ([NORM, node("Tanh", "n", "t"), node("Add", "t,n", "g"), LAST], {"n"}),
        ([NORM, node("Tanh", "n", "t"), node("Add", "t,c", "s"), node("Add", "s,n", "g"), LAST], set()),
    ],
    ids=["gelu", "tanh", "cheap", "steep", "behind a gain", "read beside", "read elsewhere"],
)
def test_a_costly_function_of_a_tensor_that_nothing_else_reads(nodes: list[Any], tabled: set[str]) -> None:
    found = find_tabled(graph_of(nodes)) - {"c"}
    assert found == tabled


def test_nothing_is_quantised_for_a_function_that_no_layer_reads() -> None:
    graph = graph_of([NORM, node("Tanh", "n", "y")])
    assert "n" in find_tabled(graph) and "n" not in find_regions(graph).tensors


def test_a_layer_that_stays_in_float_has_its_function_in_float() -> None:
    graph = graph_of([node("Tanh", "c", "t"), node("Conv", "t,w", "y")])
    assert "c" in find_regions(graph).tensors
    assert "c" not in find_regions(graph, ["c"]).tensors and "t" in find_regions(graph, ["c"]).tensors


def test_a_gelu_of_a_normalisation_is_a_table_and_close() -> None:
    graph = graph_of([NORM, *GELU, LAST])
    canonicalise(graph)
    data = {"x": np.random.default_rng(1).normal(size=(16, 8, 6, 6)).astype(np.float32)}
    calibration = make_calibration(data, graph)
    result = quantise(graph, calibration)
    assert "Erf" not in [each.op for each in result.graph.nodes] and result.agreement.unexplained == 0
    wanted, given = (list(Runner(each, graph.outputs).over(calibration.samples)) for each in (graph, result.model))
    decibels = [signal_to_noise(*pair) for pair in zip(wanted, given, strict=True)]
    assert np.mean(decibels) > 28
