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


PERMUTATIONS = [((1, 6, 5, 1), (0, 2, 1, 3)), ((2, 1, 5, 7), (0, 3, 2, 1)), ((1, 6, 5, 7), (0, 2, 1, 3))]


@pytest.mark.parametrize(("shape", "perm"), PERMUTATIONS)
def test_a_turn_of_last_channels_is_written_so(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    turned = tuple(shape[axis] for axis in perm)
    tensors = {"x": Tensor("x", shape, "int8", 0.5), "y": Tensor("y", turned, "int8", 0.5)}
    nodes = (Node("turn", "transpose", ("x",), ("y",), {"perm": list(perm)}),)
    graph = Graph("g", ("x",), ("y",), nodes, tensors, {})
    made = with_integer_forms(graph)
    assert [node.op for node in made.nodes] == (["transpose"] if shape == (1, 6, 5, 7) else ["reshape", "transpose"])
    assert made.nodes[-1].attributes["perm"] == [0, 2, 1, 3] if shape == (1, 6, 5, 7) else [0, 3, 1, 2]
    data = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)
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


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
def test_what_is_moved_in_front_of_layers_is_quantised_once(layers: int) -> None:
    """Harmonics of a row: shifted copies, padded and joined with channels last, as basic-pitch stacks them."""
    random = np.random.default_rng(4)
    constants = {
        "w": random.normal(0, 0.3, (8, 3, 3, 1)).astype(np.float32), "axes": np.array([2]), "fifteen": np.array([15]),
        "two": np.array([2]), "many": np.array([1 << 40]), "none": np.array([0]),
        "behind": np.array([0, 0, 0, 0, 0, 0, 2, 0]), "before": np.array([0, 0, 5, 0, 0, 0, 0, 0]),
        "rows": np.array([1, 9, 20, 1]),
    }  # fmt: skip
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[2]),
        helper.make_node("Sub", ["x", "m"], ["c"]),
        helper.make_node("Reshape", ["c", "rows"], ["r"]),
        helper.make_node("Slice", ["r", "two", "many", "axes"], ["up"]),
        helper.make_node("Pad", ["up", "behind"], ["a"]),
        helper.make_node("Slice", ["r", "none", "fifteen", "axes"], ["down"]),
        helper.make_node("Pad", ["down", "before"], ["b"]),
        helper.make_node("Concat", ["a", "r", "b"], ["j"], axis=3),
        helper.make_node("Transpose", ["j"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "w"], ["y"]),
    ]
    if layers == 2:  # each turns them for itself, as TFLite's do
        nodes[-1].output[0] = "first"
        nodes += [
            helper.make_node("Transpose", ["j"], ["u"], perm=[0, 3, 1, 2]),
            helper.make_node("Conv", ["u", "w"], ["second"]),
            helper.make_node("Add", ["first", "second"], ["y"]),
        ]
    made = runs_as_its_reference(model_of(nodes, {"x": (1, 9, 20)}, constants))
    assert made >= {"quantize", "slice", "pad", "concat"} and not made & {"Slice", "Pad", "Concat", "Transpose"}


@pytest.mark.slow
@pytest.mark.parametrize("function", ["Sigmoid", "Softmax"])
def test_a_heads_function_is_taken_of_each_scale(function: str) -> None:
    """A YOLO head: two scales are joined, and the function of all is turned for a layer behind it."""
    random = np.random.default_rng(4)
    constants = {name: random.normal(0, 0.3, (12, 16, 1, 1)).astype(np.float32) for name in ("v", "w")}
    constants |= {"flat": np.array([1, 12, -1]), "parted": np.array([1, 3, 4, 20])}
    constants["z"] = random.normal(0, 0.5, (5, 4, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"]),
        helper.make_node("Conv", ["x", "w"], ["b"], strides=[2, 2]),
        helper.make_node("Reshape", ["a", "flat"], ["c"]),
        helper.make_node("Reshape", ["b", "flat"], ["d"]),
        helper.make_node("Concat", ["c", "d"], ["j"], axis=2),
        helper.make_node("Reshape", ["j", "parted"], ["p"]),
        helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node(function, ["t"], ["f"], **({"axis": 1} if function == "Softmax" else {})),
        helper.make_node("Conv", ["f", "z"], ["y"]),
    ]
    made = runs_as_its_reference(model_of(nodes, {"x": (1, 16, 4, 4)}, constants))
    assert "concat" in made and not made & {function, "Concat", "Transpose"}
    assert ("softmax" if function == "Softmax" else "table") in made
