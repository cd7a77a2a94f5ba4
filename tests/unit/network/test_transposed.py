"""Transposed convolutions are plain ones: in one layer, or in one for each phase."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from .models import assert_same, canonical, model_of, normal


@pytest.mark.parametrize(
    ("weights", "attributes"),
    [
        ((4, 3, 2, 2), {"strides": [2, 2]}),
        ((4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((4, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((4, 3, 5, 3), {"strides": [3, 3], "pads": [1, 0, 2, 1]}),
        ((4, 3, 3, 3), {"strides": [2, 2], "output_shape": [9, 11]}),
        ((4, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((4, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((4, 3, 3, 2), {"strides": [1, 1], "pads": [1, 0, 1, 1]}),
        ((4, 3, 2, 2), {"strides": [2, 2], "dilations": [2, 2]}),
        ((4, 3, 3, 3), {"strides": [2, 2], "group": 2, "pads": [1, 1, 0, 0]}),
        ((4, 3, 1, 1), {"strides": [2, 2]}),
        ((4, 3, 1, 8), {"strides": [1, 4], "pads": [0, 2, 0, 2]}),
        ((4, 3, 3, 4), {"strides": [3, 2], "pads": [1, 1, 0, 1], "output_padding": [0, 1]}),
        ((4, 3, 3, 3), {"strides": [2, 1], "group": 2, "pads": [0, 1, 1, 0]}),
    ],
)
def test_a_transposed_convolution_becomes_a_plain_one(weights: tuple[int, ...], attributes: dict[str, Any]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)
    channels = weights[1] * attributes.get("group", 1)
    model = model_of([node], {"x": (1, 4, 5, 6)}, {"w": normal(*weights), "b": normal(channels)})
    operators = assert_same(model, {"x": normal(1, 4, 5, 6)})
    assert operators["ConvTranspose"] == 0 and operators["Conv"] == 1


@pytest.mark.parametrize(
    ("kernel", "attributes", "taps"),
    [
        ((4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, 16),
        ((3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}, 9),
        ((3, 3), {"strides": [2, 2], "pads": [0, 0, 1, 1]}, 9),
        ((5, 4), {"strides": [2, 2], "pads": [2, 1, 2, 1], "output_padding": [1, 0]}, 20),
        ((9, 9), {"strides": [3, 3], "pads": [3, 3, 3, 3]}, 81),
        ((4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1], "group": 1}, 16),
    ],
)
@pytest.mark.parametrize("activation", ["Relu", "Tanh", ""])
def test_phases_of_whole_blocks_are_layers_of_their_own_and_nothing_is_cropped(
    kernel: tuple[int, int], attributes: dict[str, Any], taps: int, activation: str
) -> None:
    nodes = [helper.make_node("ConvTranspose", ["x", "w", "b"], ["t" if activation else "y"], **attributes)]
    nodes += [helper.make_node(activation, ["t"], ["y"])] if activation else []
    model = model_of(nodes, {"x": (1, 4, 5, 6)}, {"w": normal(4, 32, *kernel), "b": normal(32)})
    operators = assert_same(model, {"x": normal(1, 4, 5, 6)})
    phases = attributes["strides"][0] ** 2
    wanted = {"Conv": phases, "Concat": 1, "DepthToSpace": 1}
    assert operators == wanted | ({activation: phases} if activation else {})
    graph = canonical(model)
    layers = [node for node in graph.nodes if node.op == "Conv"]
    assert sum(int(np.prod(graph.constants[node.inputs[1]].shape[2:])) for node in layers) == taps
    behind = {node.inputs[0] for node in graph.nodes if node.op == activation}
    assert not activation or behind == {node.outputs[0] for node in layers}


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [2, 2], "pads": [0, 0, 0, 0]},  # nothing is cropped
        {"strides": [2, 2], "pads": [1, 1, 1, 1]},  # an odd number of rows
        {"strides": [4, 4], "pads": [0, 0, 0, 0], "output_padding": [1, 1]},  # phases without taps
    ],
)
def test_other_phases_are_one_layer(attributes: dict[str, Any]) -> None:
    kernel = (3, 3) if attributes["pads"][0] or attributes["strides"][0] == 4 else (2, 2)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    model = model_of([node], {"x": (1, 4, 5, 6)}, {"w": normal(4, 32, *kernel)})
    assert assert_same(model, {"x": normal(1, 4, 5, 6)})["Conv"] == 1


def test_an_activation_behind_a_crop_is_computed_in_front_of_the_shuffle() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["t"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 4, 5, 6)}, {"w": normal(4, 8, 4, 4), "b": normal(8)})
    assert_same(model, {"x": normal(1, 4, 5, 6)})
    assert [node.op for node in canonical(model).nodes] == ["Conv", "Relu", "DepthToSpace", "Slice"]


def test_a_transposed_convolution_multiplies_no_zeros() -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])
    graph = canonical(model_of([node], {"x": (1, 8, 10, 10)}, {"w": normal(8, 8, 2, 2)}))
    conv = next(node for node in graph.nodes if node.op == "Conv")
    macs = np.prod(graph.shape(conv.outputs[0])) * np.prod(graph.constants[conv.inputs[1]].shape[1:])
    assert macs == 20 * 20 * 8 * 8  # the inserted zeros would make it four times as many


def test_terms_norms_and_clips_behind_a_transposed_convolution_fold() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["t"], strides=[2, 2]),
        helper.make_node("Add", ["t", "b"], ["a"]),
        helper.make_node("BatchNormalization", ["a", "s", "z", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    numbers = {"w": normal(4, 3, 2, 2), "b": normal(1, 3, 1, 1), "s": normal(3), "z": normal(3), "m": normal(3)}
    numbers["v"] = np.abs(normal(3)) + 0.5
    model = model_of(nodes, {"x": (1, 4, 5, 5)}, numbers)
    assert_same(model, {"x": normal(1, 4, 5, 5)})
    assert [node.op for node in canonical(model).nodes] == ["Conv", "Relu", "DepthToSpace"]
