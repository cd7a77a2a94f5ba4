"""Graphs that are none are refused by the node and the tensor, and one of one image is one of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hilt.network.graph import Graph, GraphError, Node, Tensor, check, exponent_of
from hilt.network.images_at_once import with_images
from hilt.network.random_inputs import random_arrays


def tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, "int8", 1.0)


def layer(name: str, data: str, made: str, **attributes: Any) -> Node:
    given = {"strides": [1, 1], "pads": [0] * 4, "groups": 1, "dilations": [1, 1], "input_dilation": [1, 1]}
    return Node(name, "conv2d", (data, "w", ""), (made,), {**given, "shift": [0], "clip": [-128, 127], **attributes})


def graph(**changes: Any) -> Graph:
    """Return two layers of four channels, one behind the other."""
    tensors = [tensor("x", 1, 4, 5, 5), tensor("a", 1, 4, 5, 5), tensor("y", 1, 4, 5, 5)]
    made = Graph(
        name="small",
        inputs=("x",),
        outputs=("y",),
        nodes=(layer("first", "x", "a"), layer("second", "a", "y")),
        tensors={each.name: each for each in tensors},
        constants={"w": np.ones((4, 4, 1, 1), np.int8)},
    )
    return replace(made, **changes)


def test_the_graph_that_the_others_change_is_one() -> None:
    check(graph())
    assert graph().macs(graph().nodes[0]) == 4 * 25 * 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": graph().nodes[::-1]}, r"node second \(conv2d\) reads a, which no earlier node makes"),
        ({"nodes": graph().nodes[1:]}, r"node second \(conv2d\) reads a, which no earlier node makes"),
        ({"inputs": ("x", "a")}, r"node first \(conv2d\) makes a, which is there already"),
        ({"nodes": (layer("first", "x", "a"), layer("second", "x", "a"))}, r"makes a, which is there already"),
        ({"nodes": (layer("first", "x", "b"),)}, r"makes b, which the graph does not list"),
        ({"outputs": ("z",)}, "the graph's output z is made by no node"),
        ({"nodes": (Node("odd", "conv3d", ("x",), ("y",), {}),)}, "node odd is conv3d, which is none of conv2d, dense"),
        ({"constants": {"w": np.ones((4, 4, 1, 1), np.int16)}}, "has weights w that are no int8 constant"),
        ({"constants": {}, "inputs": ("x", "w")}, "has weights w that are no int8 constant"),
        ({"constants": {"w": np.ones((3, 4, 1, 1), np.int8)}}, "node first has 3 kernels for 4 output channels"),
        ({"nodes": (layer("first", "x", "y", shift=[32]),)}, r"has shift \[32\]; hilt needs 0 to 31"),
        ({"nodes": (layer("first", "x", "y", shift=[-1]),)}, r"has shift \[-1\]"),
        ({"nodes": (layer("first", "x", "y", shift=[1, 2]),)}, r"has shift \[1, 2\]"),
        ({"nodes": (layer("first", "x", "y", shift=[1] * 5),)}, r"has shift \[1, 1, 1, 1\]; hilt"),
        ({"nodes": (layer("first", "x", "y", residual_shift=[32] * 4),)}, r"has residual_shift \[32, 32, 32, 32\]"),
    ],
)
def test_a_graph_that_is_none_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        check(graph(**changes))


@pytest.mark.parametrize("shift", [[0], [31], [0, 31, 5, 1]])
def test_shifts_are_one_or_one_a_channel(shift: list[int]) -> None:
    check(graph(nodes=(layer("first", "x", "y", shift=shift, residual_shift=shift),)))


def test_inputs_that_are_left_out_and_results_that_nobody_reads_have_no_names() -> None:
    check(graph(nodes=(Node("top", "TopK", ("x", ""), ("y", ""), {}),)))


@pytest.mark.parametrize(("scale", "exponent"), [(1.0, 0), (0.5, 1), (2.0, -1), (2.0**-30, 30), (2.0**20, -20)])
def test_the_exponent_of_a_scale(scale: float, exponent: int) -> None:
    assert exponent_of(scale, "t") == exponent


@pytest.mark.parametrize("scale", [None, 0.0, -0.5, 0.75, 3.0])
def test_a_scale_that_is_no_power_of_two_is_refused(scale: float | None) -> None:
    with pytest.raises(GraphError, match=f"^tensor t has scale {scale}, which is no power of two"):
        exponent_of(scale, "t")


def one(op: str, shape: tuple[int, ...], /, **attributes: Any) -> Graph:
    """Return a graph of one node that makes a tensor of `shape`."""
    made = Node("n", op, ("x",), ("y",), attributes)
    return Graph("one", ("x",), ("y",), (made,), {"x": tensor("x", 1, 4, 6), "y": tensor("y", *shape)}, {})


KEPT: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("concat", (1, 4, 6), {"axis": 1}),
    ("concat", (1, 4, 6), {"axis": -1}),
    ("slice", (1, 4, 6), {"axes": [1, -1], "starts": [0, 0], "ends": [4, 6]}),
    ("transpose", (1, 6, 4), {"perm": [0, 2, 1]}),
    ("pad", (1, 5, 7), {"pads": [0, 1, 0, 0, 0, 1]}),
]
MIXED: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("concat", (1, 4, 6), {"axis": 0}),
    ("concat", (1, 4, 6), {"axis": -3}),
    ("slice", (1, 4, 6), {"axes": [1, 0], "starts": [0, 0], "ends": [4, 1]}),
    ("transpose", (1, 4, 6), {"perm": [1, 0, 2]}),
    ("pad", (1, 5, 7), {"pads": [1, 0, 0, 0, 0, 0]}),
    ("pad", (1, 5, 7), {"pads": [0, 0, 0, 1, 0, 0]}),
]


@pytest.mark.parametrize(("op", "shape", "attributes"), KEPT)
def test_a_graph_of_one_image_is_one_of_several(op: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    made = with_images(one(op, shape, **attributes), 3)
    assert [each.shape for each in made.tensors.values()] == [(3, 4, 6), (3, *shape[1:])]
    assert made.nodes[0].attributes == attributes
    assert with_images(made, 1) is made


def test_a_reshape_has_the_number_of_images_in_its_shape() -> None:
    assert with_images(one("reshape", (1, 24), shape=[1, 24]), 3).nodes[0].attributes["shape"] == [3, 24]


@pytest.mark.parametrize(("op", "shape", "attributes"), MIXED)
def test_what_works_along_the_images_is_of_one(op: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    with pytest.raises(GraphError, match=rf"node n \({op}\) works along the images"):
        with_images(one(op, shape, **attributes), 3)


def test_what_may_mix_images_or_has_several_is_of_one() -> None:
    with pytest.raises(GraphError, match=r"node n \(Softmax\) may mix images"):
        with_images(one("Softmax", (1, 4, 6)), 2)
    with pytest.raises(GraphError, match=r"tensor y has shape \(2, 12\): its first axis is no single image"):
        with_images(one("reshape", (2, 12), shape=[2, 12]), 2)
    assert with_images(one("Softmax", (1, 4, 6)), 1).nodes[0].op == "Softmax"


@pytest.mark.parametrize(
    ("dtype", "holds"),
    [
        ("int8", lambda values: values.min() < -100 and values.max() > 100),
        ("int64", lambda values: set(values.ravel().tolist()) == {0, 1}),
        ("float32", lambda values: abs(values.mean()) < 0.1 and 0.9 < values.std() < 1.1),
    ],
)
def test_random_inputs_are_of_their_type_and_the_same_each_time(dtype: str, holds: Callable[[Any], bool]) -> None:
    wanted = [{"name": "a", "shape": [2, 500], "dtype": dtype}, {"name": "b", "shape": [3], "dtype": dtype}]
    first, second = random_arrays(wanted), random_arrays(wanted)
    assert first["a"].shape == (2, 500) and first["a"].dtype == dtype and holds(first["a"])
    assert all(np.array_equal(first[name], second[name]) for name in "ab")
