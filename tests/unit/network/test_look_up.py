"""One-hot products become look-ups, functions of looked-up rows other rows: with ONNX Runtime's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxGraph

from .models import Array, canonical, model_of, run_float

RANDOM = np.random.default_rng(5)
KINDS = {np.int32: TensorProto.INT32, np.int64: TensorProto.INT64}


def model(nodes: list[Any], kind: type, shape: tuple[int, ...], constants: dict[str, Array]) -> Any:
    return model_of(nodes, {"x": shape}, constants, types={"x": KINDS[kind]})


def one_hot(kind: type, width: int, numbers: Array | None = None) -> tuple[list[Any], dict[str, Array]]:
    nodes = [
        helper.make_node("Unsqueeze", ["x", "last"], ["column"]),
        helper.make_node("Equal", ["column", "numbers"], ["hits"]),
        helper.make_node("Cast", ["hits"], ["rows"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["rows", "w"], ["product"]),
    ]
    numbers = np.arange(width) if numbers is None else numbers
    constants = {
        "last": np.array([2]),
        "numbers": numbers.astype(kind).reshape(1, 1, -1),
        "w": RANDOM.normal(0, 1, (width, 6)).astype(np.float32),
    }
    return nodes, constants


def assert_same(given: Any, data: Array) -> OnnxGraph:
    graph = canonical(given)
    found = list(Runner(graph, graph.outputs).run({"x": data}).values())
    for first, second in zip(run_float(given, {"x": data}), found, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)
    return graph


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_a_product_with_one_hot_rows_is_a_look_up(kind: type) -> None:
    nodes, constants = one_hot(kind, 9)
    nodes.append(helper.make_node("Relu", ["product"], ["y"]))
    data = np.array([[0, 8, 3, 9, -1, 200, -7, 4]], kind)  # some are no place: their rows are zeros
    graph = assert_same(model(nodes, kind, data.shape, constants), data)
    assert {node.op for node in graph.nodes} == {"Reshape", "Cast", "Clip", "Gather"}


def test_a_bias_an_activation_and_their_product_are_computed_of_the_table() -> None:
    nodes, constants = one_hot(np.int32, 5)
    nodes += [
        helper.make_node("Add", ["product", "b"], ["biased"]),
        helper.make_node("Sigmoid", ["biased"], ["gate"]),
        helper.make_node("Mul", ["biased", "gate"], ["y"]),
    ]
    constants["b"] = RANDOM.normal(0, 1, 6).astype(np.float32)
    graph = assert_same(model(nodes, np.int32, (2, 4), constants), np.array([[0, 1, 2, 3], [4, 5, -1, 2]], np.int32))
    assert [node.op for node in graph.nodes if node.op in ("Add", "Mul", "Sigmoid", "Gemm")] == []


@pytest.mark.parametrize("numbers", [np.array([0, 2, 1, 3, 4]), np.arange(1, 6), np.array([0, 1, 1, 3, 4])])
def test_other_numbers_than_those_of_the_rows_stay_a_product(numbers: Array) -> None:
    nodes, constants = one_hot(np.int32, 5, numbers)
    nodes.append(helper.make_node("Relu", ["product"], ["y"]))
    graph = assert_same(model(nodes, np.int32, (1, 6), constants), np.array([[0, 1, 2, 3, 4, 5]], np.int32))
    assert "Gather" not in {node.op for node in graph.nodes}


def test_rows_of_different_places_are_added_behind_the_look_ups() -> None:
    """Two embeddings of different integers have no table together."""
    nodes = [
        helper.make_node("Gather", ["words", "x"], ["word"]),
        helper.make_node("Sub", ["five", "x"], ["back"]),
        helper.make_node("Gather", ["words", "back"], ["other"]),
        helper.make_node("Add", ["word", "other"], ["y"]),
    ]
    constants = {"words": RANDOM.normal(0, 1, (6, 3)).astype(np.float32), "five": np.array(5, np.int64)}
    graph = assert_same(model(nodes, np.int64, (1, 4), constants), np.array([[0, 1, 5, 3]], np.int64))
    assert [node.op for node in graph.nodes].count("Add") == 1


def test_what_varies_along_the_rows_is_not_computed_of_the_table() -> None:
    nodes = [helper.make_node("Gather", ["words", "x"], ["word"]), helper.make_node("Add", ["word", "places"], ["y"])]
    constants = {name: RANDOM.normal(0, 1, (4, 3)).astype(np.float32) for name in ("words", "places")}
    graph = assert_same(model(nodes, np.int64, (4,), constants), np.array([3, 1, 1, 0], np.int64))
    assert [node.op for node in graph.nodes] == ["Gather", "Add"]


@pytest.mark.parametrize("step", [1, -1])
def test_a_slice_of_everything_is_nothing_unless_it_turns_around(step: int) -> None:
    bounds = [np.array([value], np.int64) for value in ((0, 1 << 40) if step > 0 else (-1, -(1 << 40)))]
    nodes = [
        helper.make_node("Gather", ["words", "x"], ["word"]),
        helper.make_node("Slice", ["word", "s", "e", "a", "t"], ["part"]),
        helper.make_node("MatMul", ["part", "w"], ["y"]),
    ]
    constants = {
        "words": RANDOM.normal(0, 1, (4, 3)).astype(np.float32),
        "w": RANDOM.normal(0, 1, (3, 2)).astype(np.float32),
        **{"s": bounds[0], "e": bounds[1], "a": np.array([1], np.int64), "t": np.array([step], np.int64)},
    }
    graph = assert_same(model(nodes, np.int64, (4,), constants), np.array([3, 1, 1, 0], np.int64))
    assert ("Slice" in {node.op for node in graph.nodes}) == (step < 0)
