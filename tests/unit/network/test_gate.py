"""The last check of a file: wrong names, shapes, types and values are refused."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Calibration
from hilt.network.gate import WrongFileError, check_file, check_rewritten
from hilt.network.graph import Graph
from hilt.network.quantize.files import write_model
from hilt.network.quantize.quantizer import Quantisation, quantise
from hilt.network.reference import evaluate

from .models import canonical, model_of


@pytest.fixture(scope="module")
def quantised() -> Quantisation:
    random = np.random.default_rng(0)
    constants = {"w": random.normal(0, 0.4, (8, 6)).astype(np.float32), "v": np.float32(random.normal(0, 0.4, (6, 5)))}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    graph = canonical(model_of(nodes, {"x": (4, 8)}, constants))
    samples = tuple({"x": random.normal(0, 1, (4, 8)).astype(np.float32)} for _ in range(4))
    return quantise(graph, Calibration(samples), search=False)


def with_constants(graph: Graph, change: float) -> Graph:
    constants = {
        name: np.asarray(values * change, values.dtype) if values.ndim > 1 else values
        for name, values in graph.constants.items()
    }
    return replace(graph, constants=constants)


def test_the_right_file_passes_and_is_written(quantised, tmp_path):
    found = check_file(quantised.graph, quantised.model, quantised.samples)
    assert found.samples == 2 and found.values > 40
    write_model(quantised, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 0


def test_other_weights_in_the_file_are_refused(quantised):
    with pytest.raises(WrongFileError, match="tensor .* of the file, read back, differs"):
        check_file(with_constants(quantised.graph, -1), quantised.model, quantised.samples)


def test_another_output_is_refused(quantised):
    model = deepcopy(quantised.model)
    model.outputs = ["a"]
    with pytest.raises(WrongFileError, match=r"the file has the outputs \['y'\], the model \['a'\]"):
        check_file(quantised.graph, model, quantised.samples)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input x is missing; .* reads x"),
        ({"x": np.zeros((4, 9), np.float32)}, r"input x is float32 \(4, 9\), and .* reads float32 \(4, 8\)"),
        ({"x": np.zeros((4, 8))}, r"input x is float64 \(4, 8\), and .* reads float32 \(4, 8\)"),
    ],
)
def test_a_graph_is_given_its_own_inputs(quantised, feeds, message):
    with pytest.raises(ValueError, match=message):
        evaluate(quantised.graph, feeds)


def test_another_shape_is_refused(quantised):
    model = deepcopy(quantised.model)
    model.nodes[-1].outputs[0] = "before"
    model.constants["shape"] = np.array([5, 4])
    model.nodes.append(replace(model.nodes[0], name="last", op="Reshape", inputs=["before", "shape"], outputs=["y"]))
    model.nodes[-1].attributes.clear()
    with pytest.raises(WrongFileError, match=r"output y is float32 \(4, 5\), and ONNX Runtime makes float32 \(5, 4\)"):
        check_file(quantised.graph, model, quantised.samples)


def test_a_refused_file_leaves_nothing_behind(quantised, tmp_path, monkeypatch):
    monkeypatch.setattr("hilt.network.quantize.files.import_proto", lambda *_: with_constants(quantised.graph, -1))
    with pytest.raises(WrongFileError):
        write_model(quantised, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_rewritten_model_that_computes_something_else_is_refused():
    random = np.random.default_rng(0)
    constants = {"w": random.normal(0, 0.4, (8, 6)).astype(np.float32)}
    graph = canonical(model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (4, 8)}, constants))
    samples = [{"x": random.normal(0, 1, (4, 8)).astype(np.float32)}]
    check_rewritten(graph, deepcopy(graph), samples)
    other = deepcopy(graph)
    for name, values in other.constants.items():
        if values.dtype == np.float32:
            other.constants[name] = values + 0.1
    with pytest.raises(WrongFileError, match="output y of the rewritten model differs"):
        check_rewritten(graph, other, samples)


def test_values_that_are_no_numbers_in_both_are_alike():
    """A logarithm of negative values, say: the model computes NaN, and so does the rewritten one."""
    graph = canonical(model_of([helper.make_node("Log", ["x"], ["y"])], {"x": (4, 8)}, {}))
    samples = [{"x": np.random.default_rng(0).normal(0, 1, (4, 8)).astype(np.float32)}]
    check_rewritten(graph, deepcopy(graph), samples)
    other = deepcopy(graph)
    other.nodes[0].op = "Abs"
    with pytest.raises(WrongFileError, match="output y of the rewritten model differs"):
        check_rewritten(graph, other, samples)
