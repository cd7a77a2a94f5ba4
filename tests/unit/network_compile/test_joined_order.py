"""Concats with the operands of whole blocks first compute the same, in one program of VTA where the blocks allow it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.compile import compile_network
from hilt.network.graph import Graph, Node, Tensor, check
from hilt.network.joined_order import with_whole_blocks_first
from hilt.network.reference import evaluate
from hilt_runtime import read_bundle

from .graphs import target

pytestmark = pytest.mark.usefixtures("quick_search")

PLAIN = {"strides": [1, 1], "pads": [0] * 4, "groups": 1, "shift": [6], "clip": [-128, 127]}


def joined(sizes: tuple[int, ...], groups: int = 1, outputs: tuple[str, ...] = ("y", "z")) -> Graph:
    """Return convolutions of so many channels that are joined for two others."""
    random = np.random.default_rng(0)
    constants: dict[str, np.ndarray[Any, Any]] = {}
    tensors = {"x": Tensor("x", (1, 16, 6, 5), "int8", 0.25), "j": Tensor("j", (1, sum(sizes), 6, 5), "int8", 0.25)}
    nodes = []
    for place, size in enumerate(sizes):
        constants[f"w{place}"] = random.integers(-20, 21, (size, 16, 1, 1)).astype(np.int8)
        tensors[f"a{place}"] = Tensor(f"a{place}", (1, size, 6, 5), "int8", 0.25)
        nodes.append(Node(f"n{place}", "conv2d", ("x", f"w{place}", "", ""), (f"a{place}",), PLAIN))
    nodes.append(Node("join", "concat", tuple(f"a{place}" for place in range(len(sizes))), ("j",), {"axis": 1}))
    for name, kernel in (("y", 1), ("z", 3)):
        constants[f"w{name}"] = random.integers(-20, 21, (8, sum(sizes) // groups, kernel, kernel)).astype(np.int8)
        tensors[name] = Tensor(name, (1, 8, 7 - kernel, 6 - kernel), "int8", 0.25)
        nodes.append(Node(name, "conv2d", ("j", f"w{name}", "", ""), (name,), {**PLAIN, "groups": groups}))
    return Graph("g", ("x",), outputs, tuple(nodes), tensors, constants)


@pytest.mark.parametrize("sizes", [(1, 32), (3, 16, 4, 48), (24, 16)])
def test_the_order_changes_and_no_value(sizes: tuple[int, ...]) -> None:
    graph = joined(sizes)
    made = with_whole_blocks_first(graph)
    check(made)
    data = {"x": np.random.default_rng(1).integers(-128, 128, (1, 16, 6, 5)).astype(np.int8)}
    wanted, found = evaluate(graph, data), evaluate(made, data)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])
    (node,) = (node for node in made.nodes if node.op == "concat")
    counts = [made.tensors[name].shape[1] for name in node.inputs]
    assert counts[0] % 16 == 0 and counts != list(sizes) and sorted(counts) == sorted(sizes)
    assert "j" not in made.tensors and np.abs(wanted["y"]).max() > 10


@pytest.mark.parametrize(
    "graph", [joined((32, 1)), joined((16, 16)), joined((8, 16), groups=8), joined((1, 32), outputs=("y", "z", "j"))]
)
def test_what_is_in_order_or_read_otherwise_stays(graph: Graph) -> None:
    assert with_whole_blocks_first(graph).nodes == graph.nodes


def test_a_joined_constant_stays_where_it_is() -> None:
    graph = joined((3, 32))
    constants = {**graph.constants, "a0": np.ones((1, 3, 6, 5), np.int8)}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name != "a0"}
    nodes = tuple(node for node in graph.nodes if node.name != "n0")
    graph = replace(graph, nodes=nodes, tensors=tensors, constants=constants)
    assert with_whole_blocks_first(graph).nodes == nodes


def test_channels_that_are_no_weights_columns_stay() -> None:
    """A convolution in two groups reads a part of the channels with each; weights may be made while it runs."""
    halves = joined((8, 16, 16, 24), groups=2)
    assert with_whole_blocks_first(halves).nodes == halves.nodes
    graph = joined((1, 32))
    nodes = tuple(replace(node, inputs=("j", "a0", "", "")) if node.name == "y" else node for node in graph.nodes)
    assert with_whole_blocks_first(replace(graph, nodes=nodes)).nodes == nodes


def test_additions_of_a_reader_stay_and_names_that_are_taken_are_not_given_again() -> None:
    graph = joined((1, 32))
    bias = np.arange(8, dtype=np.int32) * 1000
    taken = {"j.blocks": bias, "y.blocks_weights": bias + 1, "z.blocks_weights": bias + 2}
    sums = {"y": "y.blocks_weights", "z": "z.blocks_weights"}
    nodes = tuple(
        replace(node, inputs=(*node.inputs[:2], sums[node.name], "")) if node.name in sums else node
        for node in graph.nodes
    )
    graph = replace(graph, nodes=nodes, constants={**graph.constants, **taken})
    made = with_whole_blocks_first(graph)
    data = {"x": np.random.default_rng(1).integers(-128, 128, (1, 16, 6, 5)).astype(np.int8)}
    wanted, found = evaluate(graph, data), evaluate(made, data)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])
    readers = {node.name: node.inputs for node in made.nodes if node.name in sums}
    assert readers == {name: ("j.blocks_", f"{name}.blocks_weights_", f"{name}.blocks_weights", "") for name in sums}


def test_what_is_joined_with_a_rest_behind_whole_blocks_is_one_program() -> None:
    starts = []
    for graph in (joined((1, 32)), with_whole_blocks_first(joined((1, 32)))):
        steps = read_bundle(compile_network(graph, target()).data, "g").manifest["steps"]
        starts.append(sum(step["kind"] == "vta" for step in steps))
    assert starts == [2, 1]
