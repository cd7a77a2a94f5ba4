"""Floats of int8 tensors are made where they are read: moves and functions in front of that are of int8, same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.postponed import with_postponed_floats
from hilt.network.reference import evaluate
from tests.unit.network.models import model_of

from .runs import runs_as_its_reference

Shapes = Mapping[str, Sequence[int]]


def graph_of(nodes: Sequence[Node], shapes: Shapes, outputs: Sequence[str], **constants: Any) -> Graph:
    """Return a graph of int8 inputs x and (1, 4, 2, 3) z, and floats of the given shapes."""
    tensors = {"x": Tensor("x", (1, 6, 2, 3), "int8", 0.25), "z": Tensor("z", (1, 4, 2, 3), "int8", 0.25)}
    tensors |= {name: Tensor(name, tuple(shape), "float32") for name, shape in shapes.items()}
    return Graph(
        "g", ("x", "z"), tuple(outputs), tuple(nodes), tensors, {k: np.asarray(v) for k, v in constants.items()}
    )


def dequantised(name: str, made: str) -> Node:
    return Node(f"{made}.dequantize", "dequantize", (name,), (made,), {"scale": 0.25})


def bits_stay(graph: Graph) -> Graph:
    """Return the rewritten graph, whose outputs have the same bits."""
    made = with_postponed_floats(graph)
    check(made)
    random = np.random.default_rng(0)
    given = {name: random.integers(-128, 128, graph.tensors[name].shape).astype(np.int8) for name in graph.inputs}
    wanted, found = evaluate(graph, given), evaluate(made, given)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name].view(np.uint32), wanted[name].view(np.uint32))
        assert found[name].shape == wanted[name].shape
    return made


def operators(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_a_head_of_slices_sigmoids_and_transposes_moves_int8() -> None:
    bounds = {"a": [0], "b": [2], "c": [6], "axis": [1], "flat": [1, 2, 6]}
    nodes = [
        dequantised("x", "f"),
        Node("classes", "Slice", ("f", "a", "b", "axis"), ("p",)),
        Node("boxes", "Slice", ("f", "b", "c", "axis"), ("q",)),
        Node("sigmoid", "Sigmoid", ("p",), ("s",)),
        Node("reshape", "Reshape", ("s", "flat"), ("r",)),
        Node("turn", "Transpose", ("r",), ("t",), {"perm": [0, 2, 1]}),
    ]
    shapes = {
        "f": (1, 6, 2, 3),
        "p": (1, 2, 2, 3),
        "q": (1, 4, 2, 3),
        "s": (1, 2, 2, 3),
        "r": (1, 2, 6),
        "t": (1, 6, 2),
    }
    made = bits_stay(graph_of(nodes, shapes, ["q", "t"], **bounds))
    assert operators(made) == ["slice", "slice", "reshape", "transpose", "dequantize", "table"]
    assert "f" not in made.tensors


def test_floats_that_are_read_twice_are_made_once_and_moved_too() -> None:
    nodes = [
        dequantised("x", "f"),
        Node("abs", "Add", ("f", "row"), ("a",)),
        Node("again", "Mul", ("f", "a"), ("b",)),
        Node("spread", "DepthToSpace", ("d",), ("y",), {"blocksize": 2, "mode": "CRD"}),
    ]
    nodes.insert(1, dequantised("z", "d"))
    shapes = {"f": (1, 6, 2, 3), "a": (1, 6, 2, 3), "b": (1, 6, 2, 3), "d": (1, 4, 2, 3), "y": (1, 1, 4, 6)}
    made = bits_stay(graph_of(nodes, shapes, ["b", "y", "d"], row=np.arange(3, dtype=np.float32)))
    assert operators(made) == ["dequantize", "Add", "Mul", "depth_to_space", "dequantize", "dequantize"]
    assert len({node.name for node in made.nodes}) == len(made.nodes)


@pytest.mark.parametrize("function", ["Sigmoid", "Tanh"])
def test_alike_parts_are_joined_as_int8_and_others_as_floats(function: str) -> None:
    nodes = [
        dequantised("x", "f"), dequantised("z", "g"),
        Node("one", "Sigmoid", ("f",), ("p",)), Node("two", function, ("g",), ("q",)),
        Node("join", "Concat", ("p", "q"), ("y",), {"axis": 1}),
    ]  # fmt: skip
    shapes = {"f": (1, 6, 2, 3), "g": (1, 4, 2, 3), "p": (1, 6, 2, 3), "q": (1, 4, 2, 3), "y": (1, 10, 2, 3)}
    made = bits_stay(graph_of(nodes, shapes, ["y"]))
    assert operators(made) == (["concat", "table"] if function == "Sigmoid" else ["table", "table", "Concat"])


def test_zeros_of_another_sign_are_other_floats() -> None:
    """-f and 0 - f differ where f is zero alone, and so do f and -(0 - f)."""
    nodes = [
        dequantised("x", "f"), dequantised("z", "g"),
        Node("one", "Neg", ("f",), ("p",)), Node("two", "Sub", ("zero", "g"), ("q",)),
        Node("join", "Concat", ("p", "q"), ("y",), {"axis": 1}), Node("back", "Neg", ("q",), ("r",)),
    ]  # fmt: skip
    shapes = {"f": (1, 6, 2, 3), "g": (1, 4, 2, 3), "p": (1, 6, 2, 3), "q": (1, 4, 2, 3), "y": (1, 10, 2, 3)}
    made = bits_stay(graph_of(nodes, {**shapes, "r": (1, 4, 2, 3)}, ["y", "r"], zero=np.float32(0)))
    assert operators(made) == ["table", "table", "Concat", "table"]


@pytest.mark.parametrize(
    "node",
    [
        Node("n", "Add", ("f", "many"), ("y",)),  # a constant for each channel
        Node("n", "Slice", ("f", "a", "b", "", "a"), ("y",)),  # its axes are left out
        Node("n", "Softmax", ("f",), ("y",), {"axis": 1}),
    ],
    ids=["a row", "no axes", "an axis"],
)
def test_other_operators_read_the_floats(node: Node) -> None:
    shape = (1, 6, 2, 3)
    nodes = [dequantised("x", "f"), node]
    constants = {"many": np.ones((6, 1, 1), np.float32), "a": [1], "b": [1]}
    graph = graph_of(nodes, {"f": shape, "y": shape}, ["y"], **constants)
    assert operators(with_postponed_floats(graph)) == ["dequantize", node.op]


def test_functions_and_scalars_are_one_table_with_the_functions_own_bits() -> None:
    nodes = [
        dequantised("x", "f"),
        Node("less", "Sub", ("one", "f"), ("a",)),
        Node("log", "Log", ("a",), ("b",)),  # NaN and infinity among its entries
        Node("bound", "Clip", ("b", "", "one"), ("c",)),
    ]
    shapes = dict.fromkeys(("f", "a", "b", "c"), (1, 6, 2, 3))
    made = bits_stay(graph_of(nodes, shapes, ["c"], one=np.float32(1)))
    assert operators(made) == ["table"]


@pytest.mark.slow
def test_a_detection_head_runs_as_its_reference() -> None:
    """Classes and boxes are cut apart behind a layer; the classes' Sigmoid, turned, is a look-up at the end."""
    random = np.random.default_rng(4)
    constants = {
        "w": random.normal(0, 0.3, (18, 16, 1, 1)).astype(np.float32),
        "parts": np.array([10, 8]),
        "flat": np.array([1, 10, -1]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Split", ["a", "parts"], ["classes", "boxes"], axis=1),
        helper.make_node("Sigmoid", ["classes"], ["s"]),
        helper.make_node("Reshape", ["s", "flat"], ["r"]),
        helper.make_node("Transpose", ["r"], ["y"], perm=[0, 2, 1]),
        helper.make_node("Relu", ["boxes"], ["z"]),
    ]
    made = runs_as_its_reference(model_of(nodes, {"x": (1, 16, 5, 4)}, constants, ["y", "z"]))
    assert made >= {"slice", "transpose", "table"} and not made & {"Slice", "Sigmoid", "Transpose", "Relu"}
