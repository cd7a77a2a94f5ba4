"""Windows over volumes are windows over their frames, with ONNX Runtime's results."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.onnx_graph import OnnxError
from hilt.network.quantize.quantizer import quantise

from .models import Array, canonical, model_of, samples_for
from .test_canonical_form import assert_same, normal

VOLUME = (1, 3, 7, 6, 9)


def weights(*shape: int) -> Array:
    return np.random.default_rng(4).normal(0, 0.3, shape).astype(np.float32)


KERNELS = ((1, 1, 1), (5, 1, 1), (2, 3, 2), (1, 2, 2))
STRIDES = ((1, 1, 1), (2, 1, 2))


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize(("op", "counted"), [("MaxPool", None), ("AveragePool", 0), ("AveragePool", 1)])
def test_a_pool_is_one_of_frames_and_one_along_them(op: str, counted: int | None, ceil_mode: int) -> None:
    for kernel, strides in itertools.product(KERNELS, STRIDES):
        pads = [taps // 2 for taps in kernel] * 2
        more = {} if counted is None else {"count_include_pad": counted}
        pool = helper.make_node(
            op, ["x"], ["y"], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=ceil_mode, **more
        )
        operators = assert_same(model_of([pool], {"x": VOLUME}), {"x": normal(*VOLUME)})
        assert operators[op] == max(1, (max(kernel[1:]) > 1 or strides[2] > 1) + (kernel[0] > 1 or strides[0] > 1))


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 1, 1, 1, 1, 1]},
        {"pads": [2, 0, 1, 0, 1, 0], "strides": [2, 1, 2]},
        {"dilations": [3, 1, 2], "pads": [1, 0, 0, 2, 0, 0]},
    ],
)
def test_a_convolution_reads_frames_as_channels(attributes: dict[str, Any]) -> None:
    conv = helper.make_node("Conv", ["x", "w", "b"], ["y"], name="conv", **attributes)
    constants = {"w": weights(4, 3, 3, 3, 2), "b": weights(4)}
    operators = assert_same(model_of([conv], {"x": VOLUME}, constants), {"x": normal(*VOLUME)})
    assert operators["Conv"] == 1 and operators["Slice"] == 3


def network() -> Any:
    """Return two layers with a norm, an activation, a skip connection and a pool between them."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first", pads=[1] * 6),
        helper.make_node("BatchNormalization", ["a", "one", "two", "two", "one"], ["b"]),
        helper.make_node("LeakyRelu", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "v"], ["d"], name="second", pads=[1] * 6),
        helper.make_node("Add", ["c", "d"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["y"], kernel_shape=[1, 2, 2], strides=[1, 2, 2]),
    ]
    constants = {"w": weights(8, 3, 3, 3, 3), "v": weights(8, 8, 3, 3, 3)}
    constants |= {"one": np.ones(8, np.float32), "two": np.full(8, 0.5, np.float32)}
    return model_of(nodes, {"x": (1, 3, 4, 8, 8)}, constants)


def test_operators_between_convolutions_are_of_frames() -> None:
    graph = canonical(network())
    assert {len(graph.shape(node.inputs[0])) for node in graph.nodes if node.op in ("Add", "LeakyRelu", "MaxPool")} == {
        4
    }
    assert_same(network(), {"x": normal(1, 3, 4, 8, 8)})


def test_a_network_of_volumes_is_quantised() -> None:
    graph = canonical(network())
    result = quantise(graph, samples_for(graph, 8))
    assert result.agreement.unexplained == 0 and result.costs.outputs[0].decibels > 30
    assert sum(node.op == "conv2d" for node in result.graph.nodes) == 2


@pytest.mark.parametrize(
    ("volume", "attributes"),
    [((2, 4, 5, 6, 6), {}), ((1, 4, 5, 6, 6), {"group": 2}), ((1, 4, 5, 6, 6), {"auto_pad": "SAME_UPPER"})],
)
def test_other_convolutions_of_volumes_are_refused(volume: tuple[int, ...], attributes: dict[str, Any]) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="deep", **attributes),
        helper.make_node("Conv", ["z", "u"], ["y"], name="plain"),
    ]
    constants = {"w": weights(4, 4 // attributes.get("group", 1), 3, 3, 3), "u": weights(4, 3, 1, 1)}
    graph = canonical(model_of(nodes, {"x": volume, "z": (1, 3, 4, 4)}, constants, ("a", "y")))
    with pytest.raises(OnnxError, match="deep .* has 3 dimensions; hilt computes one and two, and three of one volume"):
        quantise(graph, samples_for(graph, 4))
