"""One-hot products become look-ups, functions of looked-up rows other rows: with ONNX Runtime's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxGraph

from .models import Array, canonical, model_of, run_float

INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64)
RANDOM = np.random.default_rng(5)
KINDS = {kind: helper.np_dtype_to_tensor_dtype(np.dtype(kind)) for kind in (*INTEGERS, np.float32)}


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


def operators_of(graph: OnnxGraph) -> list[str]:
    return sorted(node.op for node in graph.nodes)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.int64])
def test_the_numbers_of_one_hot_rows_come_first_or_last_and_are_any_integers(kind: type) -> None:
    nodes, constants = one_hot(kind, 5)
    nodes[1] = helper.make_node("Equal", ["numbers", "column"], ["hits"])
    nodes.append(helper.make_node("Tanh", ["product"], ["y"]))
    data = np.array([[0, 4, 3, 5, 1, 100]], kind)
    graph = canonical(model(nodes, kind, data.shape, constants))
    assert set(operators_of(graph)) == {"Cast", "Clip", "Gather", "Reshape"}
    (found,) = Runner(graph, graph.outputs).run({"x": data}).values()
    rows = np.concatenate([constants["w"], np.zeros((1, 6), np.float32)])[np.minimum(data.astype(int), 5)]
    np.testing.assert_allclose(found, np.tanh(rows), rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "values"),
    [({"alpha": 0.5}, {}), ({"beta": 3.0}, {}), ({"transA": 1}, {}), ({"transB": 0}, {"w": (5, 6)})],
)
def test_a_product_with_factors_or_of_turned_rows_has_onnx_runtimes_results(
    changed: dict[str, Any], values: dict[str, tuple[int, ...]]
) -> None:
    """Whether it is a look-up or stays a product."""
    width, rows = 5, 5
    nodes = [
        helper.make_node("Equal", ["x", "numbers"], ["hits"]),
        helper.make_node("Cast", ["hits"], ["rows"], to=TensorProto.FLOAT),
        helper.make_node("Gemm", ["rows", "w", "b"], ["product"], **{"transB": 1, **changed}),
        helper.make_node("Relu", ["product"], ["y"]),
    ]
    constants = {
        "numbers": np.arange(width),
        "w": RANDOM.normal(0, 1, values.get("w", (6, width))).astype(np.float32),
        "b": RANDOM.normal(0, 1, 6).astype(np.float32),
    }
    assert_same(model(nodes, np.int64, (rows, 1), constants), np.array([[1], [0], [4], [9], [-1]]))


@pytest.mark.parametrize("shape", [(3, 5), (1, 5)])
def test_places_that_are_compared_one_by_one_make_no_one_hot_rows(shape: tuple[int, ...]) -> None:
    nodes = [
        helper.make_node("Equal", ["x", "numbers"], ["hits"]),
        helper.make_node("Cast", ["hits"], ["rows"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["rows", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["y"]),
    ]
    constants = {"numbers": np.arange(5), "w": RANDOM.normal(0, 1, (5, 6)).astype(np.float32)}
    graph = assert_same(model(nodes, np.int64, shape, constants), RANDOM.integers(0, 5, shape))
    assert "Gather" not in operators_of(graph)


def test_rows_of_floats_are_no_places() -> None:
    nodes, constants = one_hot(np.float32, 5)
    nodes.append(helper.make_node("Relu", ["product"], ["y"]))
    graph = assert_same(model(nodes, np.float32, (1, 4), constants), np.array([[0.0, 0.5, 3.0, 1.5]], np.float32))
    assert "Gather" not in operators_of(graph)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (6,), (1, 6)])
def test_one_row_for_all_places_is_computed_of_the_table(shape: tuple[int, ...]) -> None:
    nodes = [
        helper.make_node("Gather", ["words", "x"], ["word"]),
        helper.make_node("Mul", ["word", "row"], ["scaled"]),
        helper.make_node("Max", ["scaled", "word"], ["y"]),
    ]
    constants = {"words": RANDOM.normal(0, 1, (4, 6)).astype(np.float32)}
    constants["row"] = RANDOM.normal(1, 1, shape).astype(np.float32)
    graph = assert_same(model(nodes, np.int64, (5,), constants), np.array([3, 1, 1, 0, 2]))
    assert operators_of(graph) == ["Gather"]


@pytest.mark.parametrize(
    ("words", "axis", "shape"),
    [((4, 6), 1, (4, 3)), ((6,), 0, (3,)), ((4, 5, 2), 0, (3, 5, 2))],
    ids=["columns", "numbers", "matrices"],
)
def test_what_is_taken_otherwise_than_by_rows_is_computed_behind(
    words: tuple[int, ...], axis: int, shape: tuple[int, ...]
) -> None:
    nodes = [helper.make_node("Gather", ["words", "x"], ["word"], axis=axis), helper.make_node("Exp", ["word"], ["y"])]
    constants = {"words": RANDOM.normal(0, 1, words).astype(np.float32)}
    graph = assert_same(model(nodes, np.int64, (3,), constants), np.array([3, 1, 0]))
    assert operators_of(graph) == ["Exp", "Gather"]
    assert graph.shape(graph.outputs[0]) == shape


def test_a_function_of_rows_that_are_integers_is_computed_behind() -> None:
    nodes = [helper.make_node("Gather", ["words", "x"], ["word"]), helper.make_node("Add", ["word", "one"], ["more"])]
    nodes.append(helper.make_node("Cast", ["more"], ["y"], to=TensorProto.FLOAT))
    constants = {"words": RANDOM.integers(0, 9, (4, 3)), "one": np.array([1])}
    graph = assert_same(model(nodes, np.int64, (3,), constants), np.array([3, 1, 0]))
    assert operators_of(graph) == ["Add", "Cast", "Gather"]


def test_a_product_whose_bias_is_computed_stays_one() -> None:
    nodes, constants = one_hot(np.int64, 5)
    nodes[3:] = [
        helper.make_node("Reshape", ["rows", "flat"], ["lines"]),
        helper.make_node("Slice", ["lines", "first", "second"], ["line"]),
        helper.make_node("MatMul", ["line", "w"], ["bias"]),
        helper.make_node("Gemm", ["lines", "w", "bias"], ["y"]),
    ]
    constants |= {"flat": np.array([-1, 5]), "first": np.array([0]), "second": np.array([1])}
    graph = assert_same(model(nodes, np.int64, (1, 4), constants), np.array([[0, 4, 2, 7]]))
    assert operators_of(graph).count("Gather") < 2


def test_a_product_of_more_rows_than_weights_is_a_look_up_of_zeros_too() -> None:
    nodes, constants = one_hot(np.int64, 3)
    nodes.append(helper.make_node("Relu", ["product"], ["y"]))
    graph = assert_same(model(nodes, np.int64, (1, 40), constants), np.arange(-20, 20)[None])
    (gather,) = (node for node in graph.nodes if node.op == "Gather")
    assert graph.constants[gather.inputs[0]].shape == (4, 6), "a row for each place, and one of zeros"
