"""A product with a number in front of a quantisation is its factor, where nothing else reads it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt.network.graph import Graph, Node, Tensor
from hilt.network.multiplied_steps import with_multiplied_steps
from hilt.network.reference import evaluate

from .models import Array

FLOATS = (1, 3, 4)


def graph_of(number: Array, outputs: tuple[str, ...] = ("y",), *further: Node) -> Graph:
    nodes = (
        Node("product", "Mul", ("x", "n"), ("p",), source=("product",)),
        Node("steps", "quantize", ("p",), ("y",), {"scale": 0.25}, ("steps",)),
        *further,
    )
    tensors = {name: Tensor(name, FLOATS, "float32") for name in ("x", "p", "z")}
    tensors["y"] = Tensor("y", FLOATS, "int8", 0.25)
    made = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    return Graph("g", ("x",), outputs, nodes, {name: tensors[name] for name in tensors if name in made}, {"n": number})


def test_the_factor_gives_the_same_steps_in_one_node() -> None:
    graph = graph_of(np.array([1.37], np.float32))
    (node,) = with_multiplied_steps(graph).nodes
    assert (node.op, node.inputs, node.source) == ("quantize", ("x",), ("product", "steps"))
    data = {"x": np.random.default_rng(0).normal(0, 9, FLOATS).astype(np.float32)}
    given, wanted = (evaluate(each, data)["y"] for each in (with_multiplied_steps(graph), graph))
    np.testing.assert_array_equal(given, wanted)


@pytest.mark.parametrize(
    "graph",
    [
        graph_of(np.array([1, 2, 3, 4], np.float32)),
        graph_of(np.array([np.inf], np.float32)),
        graph_of(np.array([1.5], np.float32), ("y", "p")),
        graph_of(np.array([1.5], np.float32), ("y", "z"), Node("other", "Relu", ("p",), ("z",))),
    ],
    ids=["a factor for each column", "no number", "the product is an output", "another reader"],
)
def test_other_products_stay(graph: Any) -> None:
    assert with_multiplied_steps(graph).nodes == graph.nodes
