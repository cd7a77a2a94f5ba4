"""Sequences between one-dimensional convolutions become images of height 1, with all that stands between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.calibration import Runner
from hilt.network.onnx_graph import OnnxGraph, graph_of
from hilt.network.onnx_sequences import lift_sequences
from hilt.network.onnx_simplify import fix

from .models import Array, model_of, run_float

Nodes = list[Any]
node = helper.make_node


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype(np.float32)


CONSTANTS: dict[str, Array] = {
    "k": normal(8, 6, 3), "m": normal(4, 8, 3), "one": normal(8, 8, 1), "up": normal(8, 8, 2),
    "c": normal(8), "d": normal(8), "e": abs(normal(8)), "half": np.float32(0.5), "column": normal(8, 1),
    "row": normal(12), "whole": normal(1, 8, 12),
    "pads": np.array([0, 0, 2, 0, 0, 1]), "third": np.array([2]), "second": np.array([-2]), "both": np.array([1, 2]),
    "low": np.array([2]), "high": np.array([9]), "by": np.array([1]), "four": np.array([4, 4]),
    "long": np.array([1, 8, 24]), "scales": np.array([1, 1, 1.5], np.float32),
}  # fmt: skip

BETWEEN: dict[str, Nodes] = {
    "functions": [node("Sigmoid", ["a"], ["f"]), node("LeakyRelu", ["f"], ["b"])],
    "constants": [
        node("Mul", ["a", "column"], ["f"]), node("Add", ["f", "whole"], ["g"]),
        node("Sub", ["row", "g"], ["h"]), node("Mul", ["half", "h"], ["b"]),
    ],
    "PRelu": [node("PRelu", ["a", "column"], ["b"])],
    "norms": [
        node("BatchNormalization", ["a", "c", "d", "c", "e"], ["f"]),
        node("InstanceNormalization", ["f", "c", "d"], ["b"]),
    ],
    "halves": [
        node("Split", ["a", "four"], ["f", "g"], axis=-2), node("Tanh", ["f"], ["h"]), node("Sigmoid", ["g"], ["i"]),
        node("Concat", ["h", "i"], ["b"], axis=1),
    ],
    "cut": [node("Slice", ["a", "low", "high", "third", "by"], ["f"]), node("Concat", ["f", "f"], ["b"], axis=2)],
    "pad": [node("Pad", ["a", "pads", "half"], ["b"])],
    "gate": [
        node("ReduceMean", ["a", "third"], ["f"]), node("Conv", ["f", "one"], ["g"]), node("Sigmoid", ["g"], ["h"]),
        node("Mul", ["a", "h"], ["b"]),
    ],
    "largest of channels": [node("ReduceMax", ["a", "second"], ["f"]), node("Mul", ["a", "f"], ["b"])],
    "pools": [
        node("MaxPool", ["a"], ["f"], kernel_shape=[2], strides=[1], pads=[1, 0]),
        node("AveragePool", ["f"], ["g"], kernel_shape=[3], strides=[2]),
        node("ConvTranspose", ["g", "up"], ["b"], strides=[2]),
    ],
    "sizes": [
        node("Resize", ["a", "", "", "long"], ["f"], mode="nearest"),
        node("Resize", ["f", "", "scales"], ["b"], mode="linear", coordinate_transformation_mode="asymmetric"),
    ],
    "residual": [node("Conv", ["a", "one"], ["f"]), node("Add", ["a", "f"], ["b"])],
}  # fmt: skip


def lifted(
    nodes: Nodes, outputs: tuple[str, ...] = ("y",), opset: int = 18, more: dict[str, Array] | None = None
) -> OnnxGraph:
    """Return the graph with images, which computes as the model does."""
    model = model_of(nodes, {"x": (1, 6, 12)}, CONSTANTS | (more or {}), outputs, opset)
    graph, feeds = graph_of(model, "net"), {"x": normal(1, 6, 12)}
    fix(graph, {}, {})
    lift_sequences(graph)
    given = Runner(graph, graph.outputs).run(feeds)
    for name, wanted in zip(outputs, run_float(model, feeds), strict=True):
        assert given[name].shape == wanted.shape
        np.testing.assert_allclose(given[name], wanted, rtol=1e-4, atol=1e-4)
    return graph


def ranks(graph: OnnxGraph) -> list[int]:
    """Return the rank of each operator's result, Reshapes at the ends among them."""
    return [len(graph.shape(each.outputs[0])) for each in graph.nodes]


@pytest.mark.parametrize("kind", BETWEEN)
def test_all_between_two_convolutions_are_images(kind: str) -> None:
    first, last = node("Conv", ["x", "k"], ["a"], pads=[1, 1]), node("Conv", ["b", "m"], ["y"])
    graph = lifted([first, *BETWEEN[kind], last])
    assert ranks(graph) == [4] * (len(graph.nodes) - 1) + [3]
    assert [each.op for each in graph.nodes].count("Reshape") == 2


@pytest.mark.parametrize(
    ("axes", "keepdims", "shape"),
    [
        ("third", 0, (1, 8)),
        ("second", 0, (1, 12)),
        ("both", 0, (1,)),
        ("both", 1, (1, 1, 1)),
        ("second", 1, (1, 1, 12)),
    ],
)
def test_a_reduction_at_the_end_has_the_shape_of_the_sequence_s(
    axes: str, keepdims: int, shape: tuple[int, ...]
) -> None:
    graph = lifted(
        [node("Conv", ["x", "k"], ["a"], pads=[1, 1]), node("ReduceMean", ["a", axes], ["y"], keepdims=keepdims)]
    )
    assert graph.shape("y") == shape
    assert "ReduceMean" in [each.op for each in graph.nodes if len(graph.shape(each.inputs[0])) == 4]


def test_axes_may_be_an_attribute() -> None:
    mean = node("ReduceMean", ["a"], ["y"], axes=[-1], keepdims=0)
    graph = lifted([node("Conv", ["x", "k"], ["a"], pads=[1, 1]), mean], opset=17)
    assert graph.nodes[-1].attributes["axes"] == [2, 3]


def test_a_cut_may_have_its_places_in_32_bits() -> None:
    constants = {name: np.array([value], np.int32) for name, value in (("from", 1), ("to", 9), ("axis", -1))}
    cut = node("Slice", ["a", *constants], ["y"])
    graph = lifted([node("Conv", ["x", "k"], ["a"], pads=[1, 1]), cut], more=constants)
    assert graph.shape("y") == (1, 8, 8)


def test_other_operators_read_the_sequence() -> None:
    nodes = [
        node("Conv", ["x", "k"], ["a"], pads=[1, 1]),
        node("Softmax", ["a"], ["s"], axis=1),
        node("Transpose", ["a"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["s", "t"], ["y"]),
        node("Relu", ["a"], ["z"]),
    ]
    graph = lifted(nodes, ("y", "z"))
    found = {each.op: len(graph.shape(each.inputs[0])) for each in graph.nodes if each.op != "Reshape"}
    assert found == {"Conv": 4, "Softmax": 3, "Transpose": 3, "MatMul": 3, "Relu": 4}


def test_sequences_without_a_window_stay() -> None:
    graph = lifted([node("Relu", ["x"], ["a"]), node("ReduceMean", ["a", "third"], ["y"])])
    assert [each.op for each in graph.nodes] == ["Relu", "ReduceMean"]
