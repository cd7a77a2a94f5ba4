"""Models of older opsets: ONNX Runtime computes them as they are as it does in hilt's form, which is opset 17's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.onnx_opsets import modernise

from .models import Array, model_of
from .test_canonical_form import assert_same

RANDOM = np.random.default_rng(31)


def normal(*shape: int) -> Array:
    return RANDOM.normal(0, 2, shape).astype(np.float32)


SHAPE = (2, 3, 4, 6)
LINES = (2, 5, 7)
STATISTICS = {name: np.abs(normal(3)) + np.float32(0.1) for name in ("s", "b", "m", "v")}
SCALES = {"k": np.array([1, 1, 2, 3], np.float32)}
CASES: dict[str, tuple[int, str, dict[str, Any], tuple[int, ...], dict[str, Array]]] = {
    "normalisation of channels": (7, "BatchNormalization", {"epsilon": 0.1}, SHAPE, STATISTICS),
    "between two bounds": (10, "Clip", {"min": -0.5, "max": 0.75}, SHAPE, {}),
    "from below": (10, "Clip", {"min": -0.5}, SHAPE, {}),
    "from above": (7, "Clip", {"max": 0.5}, SHAPE, {}),
    "with bounds as inputs": (11, "Clip", {}, SHAPE, {"l": np.array(-0.5, np.float32), "h": np.array(0.5, np.float32)}),
    "nothing is dropped": (10, "Dropout", {"ratio": 0.5}, SHAPE, {}),
    "nothing is dropped later either": (12, "Dropout", {}, SHAPE, {"r": np.array(0.5, np.float32)}),
    "softmax of all behind the first axis": (11, "Softmax", {}, SHAPE, {}),
    "softmax of the last two axes": (12, "Softmax", {"axis": 2}, SHAPE, {}),
    "softmax of the last axis": (9, "Softmax", {"axis": 3}, SHAPE, {}),
    "softmax of the last axis from behind": (9, "Softmax", {"axis": -1}, SHAPE, {}),
    "softmax of everything": (11, "Softmax", {"axis": 0}, SHAPE, {}),
    "logarithms of the last two": (11, "LogSoftmax", {"axis": 1}, LINES, {}),
    "softmax of one axis": (13, "Softmax", {"axis": 1}, SHAPE, {}),
    "pads with a number": (10, "Pad", {"pads": [0, 0, 1, 2, 0, 0, 2, 1], "value": 0.5}, SHAPE, {}),
    "pads with zeros": (9, "Pad", {"pads": [0, 1, 0, 1, 0, 0]}, LINES, {}),
    "pads by reflection": (10, "Pad", {"pads": [0, 0, 1, 0, 0, 3], "mode": "reflect"}, LINES, {}),
    "sum over axes": (12, "ReduceSum", {"axes": [1, -1], "keepdims": 0}, SHAPE, {}),
    "sum over all": (11, "ReduceSum", {}, SHAPE, {}),
    "resized to the nearest": (10, "Resize", {"mode": "nearest"}, SHAPE, SCALES),
    "resized in lines": (10, "Resize", {"mode": "linear"}, SHAPE, SCALES),
    "enlarged by attributes": (7, "Upsample", {"mode": "nearest", "scales": [1.0, 1.0, 2.0, 3.0]}, SHAPE, {}),
    "enlarged in lines": (9, "Upsample", {"mode": "linear"}, SHAPE, SCALES),
    "cut along named axes": (9, "Slice", {"axes": [3, 1], "starts": [1, 0], "ends": [-1, 2]}, SHAPE, {}),
    "cut along the first axes": (7, "Slice", {"starts": [0, 1], "ends": [1, 9]}, SHAPE, {}),
    "without an axis of one": (12, "Squeeze", {"axes": [1]}, (2, 1, 5), {}),
    "without all of one": (11, "Squeeze", {}, (2, 1, 5), {}),
    "with axes of one": (12, "Unsqueeze", {"axes": [0, 3]}, LINES, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_older_form_is_the_same_in_opset_17(name: str) -> None:
    opset, op, attributes, shape, constants = CASES[name]
    node = helper.make_node(op, ["x", *constants], ["y"], **attributes)
    assert_same(model_of([node], {"x": shape}, constants, opset=opset), {"x": normal(*shape)})


@pytest.mark.parametrize(("opset", "attributes"), [(11, {"split": [1, 2]}), (12, {"split": [2, 1]})])
def test_parts_of_given_sizes(opset: int, attributes: dict[str, Any]) -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, **attributes),
        helper.make_node("Concat", ["b", "a"], ["y"], axis=1),
    ]
    assert_same(model_of(nodes, {"x": SHAPE}, opset=opset), {"x": normal(*SHAPE)})


def test_the_largest_few() -> None:
    nodes = [helper.make_node("TopK", ["x"], ["y", "p"], k=2, axis=2)]
    model = model_of(nodes, {"x": LINES}, outputs=("y", "p"), opset=9, types={"p": TensorProto.INT64})
    assert_same(model, {"x": normal(*LINES)})


def test_nodes_of_other_domains_and_new_opsets_stay() -> None:
    for opset, domain in ((9, "com.microsoft"), (17, "")):
        node = OnnxNode("n", "Clip", ["x"], ["y"], {"min": 0.0}, domain=domain)
        graph = OnnxGraph("g", 17, ["x"], ["y"], [node], {}, {"x": SHAPE}, {"x": "float32"})
        modernise(graph, opset)
        assert graph.nodes[0].attributes == {"min": 0.0} and graph.nodes[0].inputs == ["x"]
