"""Maxima of floats are found on int8, and floats are quantised before they are moved: the same bits, fewer floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.graph import Graph, Node, Tensor
from hilt.network.integer_forms import with_integer_forms
from hilt.network.reference import evaluate
from tests.unit.network.models import model_of

from .runs import runs_as_its_reference

Change = Callable[[Graph], Graph]


def largest_of_table(entries: Any) -> Graph:
    """Return a table's floats, their maximum over the image, and its absolute value."""
    tensors = {
        "x": Tensor("x", (2, 3, 4, 5), "int8", 0.25), "f": Tensor("f", (2, 3, 4, 5), "float32"),
        "r": Tensor("r", (2, 3, 20), "float32"), "m": Tensor("m", (2, 3, 1), "float32"),
        "y": Tensor("y", (2, 3, 1), "float32"),
    }  # fmt: skip
    constants = {"entries": np.asarray(entries, np.float32), "shape": np.array([2, 3, 20])}
    nodes = (
        Node("look", "table", ("x", "entries"), ("f",)),
        Node("flat", "Reshape", ("f", "shape"), ("r",)),
        Node("most", "GlobalMaxPool", ("r",), ("m",)),
        Node("end", "Abs", ("m",), ("y",)),
    )
    return Graph("g", ("x",), ("y",), nodes, tensors, constants)


TABLES = {
    "wave": np.sin(np.arange(256) / 9),
    "rising": np.arange(256) / 8 - 3,
    "falling": -np.arange(256.0),
    "steps with infinities": np.where(np.arange(256) % 7 == 0, np.inf, np.arange(256) // 16),
    "zeros": np.where(np.arange(256) % 2, 0.0, -0.0),
}


@pytest.mark.parametrize("table", TABLES)
def test_the_largest_float_is_that_of_the_largest_rank(table: str) -> None:
    graph = largest_of_table(TABLES[table])
    made = with_integer_forms(graph)
    operators = [node.op for node in made.nodes]
    assert operators == [*([] if table in ("rising", "zeros") else ["table"]), "max_pool", "reshape", "table", "Abs"]
    for seed in range(5):
        data = np.random.default_rng(seed).integers(-128, 128, (2, 3, 4, 5)).astype(np.int8)
        wanted, given = (evaluate(each, {"x": data}) for each in (graph, made))
        np.testing.assert_array_equal(given["m"], wanted["m"])


def _no_number(graph: Graph) -> Graph:
    entries = graph.constants["entries"].copy()
    entries[3] = np.nan
    return replace(graph, constants={**graph.constants, "entries": entries})


def _of_channels(graph: Graph) -> Graph:
    tensors = {**graph.tensors, "r": Tensor("r", (2, 4, 15), "float32"), "m": Tensor("m", (2, 4, 1), "float32")}
    tensors["y"] = Tensor("y", (2, 4, 1), "float32")
    return replace(graph, tensors=tensors, constants={**graph.constants, "shape": np.array([2, 4, 15])})


CHANGES: dict[str, Change] = {
    "an entry that is no number": _no_number,
    "windows of other elements": _of_channels,
    "floats that the caller gets": lambda graph: replace(graph, outputs=("y", "f")),
    "floats that another node reads": lambda graph: replace(
        graph, outputs=("y", "z"), tensors={**graph.tensors, "z": Tensor("z", (2, 3, 20), "float32")},
        nodes=(*graph.nodes, Node("other", "Neg", ("r",), ("z",))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_other_maxima_stay_in_floats(change: str) -> None:
    graph = CHANGES[change](largest_of_table(TABLES["wave"]))
    assert with_integer_forms(graph).nodes == graph.nodes


@pytest.mark.parametrize(("shape", "perm"), [((1, 6, 5, 1), (0, 2, 1, 3)), ((1, 6, 5, 7), (0, 3, 1, 2)),
                                             ((1, 6, 5, 7), (0, 2, 1, 3)), ((2, 1, 5, 7), (0, 3, 2, 1))])  # fmt: skip
def test_floats_are_quantised_before_they_are_turned(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    turned = tuple(shape[axis] for axis in perm)
    tensors = {name: Tensor(name, shape, "float32") for name in ("x", "s")}
    tensors |= {"t": Tensor("t", turned, "float32"), "y": Tensor("y", turned, "int8", 0.125)}
    nodes = (
        Node("abs", "Abs", ("x",), ("s",)),
        Node("turn", "Transpose", ("s",), ("t",), {"perm": list(perm)}),
        Node("q", "quantize", ("t",), ("y",), {"scale": 0.125}),
    )
    graph = Graph("g", ("x",), ("y",), nodes, tensors, {})
    made = with_integer_forms(graph)
    operators = [node.op for node in made.nodes]
    assert operators[:2] == ["Abs", "quantize"] and operators[-1] == "transpose" and set(operators[2:-1]) <= {"reshape"}
    if shape != (1, 6, 5, 7) or perm == (0, 3, 1, 2):  # a tensor with channels last is packed as it lies
        assert made.nodes[-1].attributes["perm"] == [0, 3, 1, 2]
    data = np.random.default_rng(2).normal(0, 4, shape).astype(np.float32)
    np.testing.assert_array_equal(evaluate(made, {"x": data})["y"], evaluate(graph, {"x": data})["y"])


@pytest.mark.slow
def test_a_network_with_both_runs_as_its_reference() -> None:
    """A sum of logarithms over a row, turned, in front of a layer, and a largest value behind its activation."""
    random = np.random.default_rng(4)
    constants = {
        "w": random.normal(0, 0.3, (24, 20, 3, 1)).astype(np.float32), "axes": np.array([2]),
        "rows": np.array([1, 9, 20, 1]), "flat": np.array([1, 24, -1]), "row": np.array([1, 24]),
        "v": random.normal(0, 0.4, (10, 24)).astype(np.float32), "half": np.array([0.5], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[2]),
        helper.make_node("Sub", ["x", "m"], ["c"]),
        helper.make_node("Reshape", ["c", "rows"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Conv", ["t", "w"], ["s"]),
        helper.make_node("Sigmoid", ["s"], ["g"]),
        helper.make_node("Mul", ["s", "g"], ["a"]),
        helper.make_node("Reshape", ["a", "flat"], ["f"]),
        helper.make_node("GlobalMaxPool", ["f"], ["p"]),
        helper.make_node("Reshape", ["p", "row"], ["q"]),
        helper.make_node("Softmax", ["q"], ["e"]),
        helper.make_node("Gemm", ["e", "v"], ["y"], transB=1),
    ]
    made = runs_as_its_reference(model_of(nodes, {"x": (1, 9, 20)}, constants))
    assert made >= {"max_pool", "transpose"} and not made & {"GlobalMaxPool", "Transpose"}
