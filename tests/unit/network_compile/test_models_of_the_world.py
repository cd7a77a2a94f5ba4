"""Models in the forms of several exporters and opsets: each runs as its reference, or ends in one clear line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.unit.network.models import Array, model_of

from .runs import runs_as_its_reference

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_search")]  # compiles and runs networks

node = helper.make_node
_random = np.random.default_rng


def numbers(seed: int) -> Callable[..., Array]:
    random = _random(seed)
    return lambda *shape: random.normal(0, 0.4, shape).astype(np.float32)


def grouped_with_clips_opset_11() -> Any:
    """Depthwise and grouped convolutions, Clip with inputs, Pad with an input, as exporters of opset 11 write them."""
    n = numbers(1)
    nodes = [
        node("Pad", ["x", "pads"], ["p"]),
        node("Conv", ["p", "w", "b"], ["a"], strides=[2, 2]),
        node("Clip", ["a", "zero", "six"], ["r"]),
        node("Conv", ["r", "d"], ["e"], group=24, pads=[1] * 4),
        node("Clip", ["e", "zero", "six"], ["f"]),
        node("Conv", ["f", "g"], ["y"], group=3),
    ]
    constants = {
        "pads": np.array([0, 0, 0, 0, 0, 0, 1, 1]), "w": n(24, 3, 3, 3), "b": n(24), "d": n(24, 1, 3, 3),
        "g": n(12, 8, 1, 1), "zero": np.array(0, np.float32), "six": np.array(6, np.float32),
    }  # fmt: skip
    return model_of(nodes, {"x": (1, 3, 14, 14)}, constants, opset=11)


def one_dimension_with_groups_opset_13() -> Any:
    n = numbers(2)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[4, 4], strides=[2]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "d"], ["c"], group=16, pads=[2, 0]),
        node("BatchNormalization", ["c", "s", "t", "m", "v"], ["e"]),
        node("GlobalAveragePool", ["e"], ["f"]),
        node("Squeeze", ["f", "axis"], ["g"]),
        node("Gemm", ["g", "k"], ["y"], transB=1),
    ]
    constants = {
        "w": n(16, 4, 9), "d": n(16, 1, 3), "s": n(16), "t": n(16), "m": n(16), "v": np.abs(n(16)) + 1,
        "axis": np.array([2]), "k": n(5, 16),
    }  # fmt: skip
    return model_of(nodes, {"x": (1, 4, 64)}, constants, opset=13)


def transposed_with_output_shape() -> Any:
    n = numbers(3)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("ConvTranspose", ["a", "t"], ["b"], strides=[2, 2], output_shape=[15, 13]),
        node("ConvTranspose", ["b", "u"], ["y"], strides=[2, 2], pads=[1] * 4, group=4),
    ]
    return model_of(nodes, {"x": (1, 3, 8, 7)}, {"w": n(16, 3, 3, 3), "t": n(16, 8, 3, 3), "u": n(8, 2, 4, 4)})


def two_branches() -> Any:
    """Concat of a convolution and a pooling, then Split, one half gated by the other."""
    n = numbers(4)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "v"], ["c"]),
        node("MaxPool", ["b"], ["d"], kernel_shape=[3, 3], pads=[1] * 4),
        node("Concat", ["c", "d"], ["e"], axis=1),
        node("Split", ["e", "sizes"], ["f", "g"], axis=1),
        node("Sigmoid", ["g"], ["h"]),
        node("Mul", ["f", "h"], ["i"]),
        node("Conv", ["i", "u"], ["y"]),
    ]
    constants = {"w": n(16, 3, 3, 3), "v": n(16, 16, 1, 1), "u": n(8, 16, 1, 1), "sizes": np.array([16, 16])}
    return model_of(nodes, {"x": (1, 3, 10, 10)}, constants)


def resized_and_padded() -> Any:
    """Nearest Resize by scales, Pad with reflect, HardSwish and PRelu by channel."""
    n = numbers(5)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("HardSwish", ["a"], ["b"]),
        node("Resize", ["b", "", "scales"], ["c"], mode="nearest", coordinate_transformation_mode="asymmetric",
             nearest_mode="floor"),
        node("Pad", ["c", "pads"], ["d"], mode="reflect"),
        node("Conv", ["d", "v"], ["e"]),
        node("PRelu", ["e", "slope"], ["f"]),
        node("Conv", ["f", "u"], ["y"]),
    ]  # fmt: skip
    constants = {
        "w": n(16, 3, 3, 3), "v": n(8, 16, 3, 3), "u": n(4, 8, 1, 1), "scales": np.array([1, 1, 2, 2], np.float32),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "slope": np.abs(n(8, 1, 1)),
    }  # fmt: skip
    return model_of(nodes, {"x": (1, 3, 8, 8)}, constants)


def linear_resize() -> Any:
    n = numbers(6)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Resize", ["a", "", "", "sizes"], ["b"], mode="linear", coordinate_transformation_mode="half_pixel"),
        node("Conv", ["b", "v"], ["y"]),
    ]
    constants = {"w": n(16, 3, 3, 3), "v": n(8, 16, 1, 1), "sizes": np.array([1, 16, 16, 12])}
    return model_of(nodes, {"x": (1, 3, 8, 8)}, constants)


def quantised_by_channel_opset_13() -> Any:
    """QDQ with weight scales by channel and uint8 tensors, as ONNX Runtime's static quantiser writes it."""
    random = _random(7)
    constants: dict[str, Array] = {
        "xs": np.array(0.03, np.float32), "xz": np.array(131, np.uint8), "as": np.array(0.05, np.float32),
        "az": np.array(0, np.uint8), "ys": np.array(0.2, np.float32), "yz": np.array(120, np.uint8),
        "w": random.integers(-63, 64, (16, 3, 3, 3), dtype=np.int8), "wz": np.zeros(16, np.int8),
        "ws": random.uniform(0.002, 0.01, 16).astype(np.float32), "vz": np.zeros(24, np.int8),
        "v": random.integers(-63, 64, (24, 16, 1, 1), dtype=np.int8),
        "vs": random.uniform(0.002, 0.01, 24).astype(np.float32),
    }  # fmt: skip
    constants["b"] = random.integers(-300, 300, 16).astype(np.int32)
    constants["bs"] = constants["ws"] * np.float32(0.03)
    constants["bz"] = np.zeros(16, np.int32)
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["x_q"]),
        node("DequantizeLinear", ["x_q", "xs", "xz"], ["x_d"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["w_d"], axis=0),
        node("DequantizeLinear", ["b", "bs", "bz"], ["b_d"], axis=0),
        node("Conv", ["x_d", "w_d", "b_d"], ["a"], pads=[1] * 4, strides=[2, 2]),
        node("Relu", ["a"], ["r"]),
        node("QuantizeLinear", ["r", "as", "az"], ["a_q"]),
        node("DequantizeLinear", ["a_q", "as", "az"], ["a_d"]),
        node("DequantizeLinear", ["v", "vs", "vz"], ["v_d"], axis=0),
        node("Conv", ["a_d", "v_d"], ["c"]),
        node("QuantizeLinear", ["c", "ys", "yz"], ["c_q"]),
        node("DequantizeLinear", ["c_q", "ys", "yz"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 12, 12)}, constants, opset=13)


def operators_on_integers_opset_11() -> Any:
    """QOperator of the standard domain: QLinearConv, MaxPool on uint8, QLinearMatMul."""
    random = _random(8)
    constants: dict[str, Array] = {
        "xs": np.array(0.03, np.float32), "xz": np.array(128, np.uint8), "as": np.array(0.04, np.float32),
        "az": np.array(0, np.uint8), "ys": np.array(0.3, np.float32), "yz": np.array(128, np.uint8),
        "w": random.integers(-63, 64, (8, 3, 3, 3), dtype=np.int8), "ws": np.array(0.006, np.float32),
        "wz": np.array(0, np.int8), "k": random.integers(-63, 64, (128, 10), dtype=np.int8),
        "shape": np.array([1, 128]),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "as", "az"], ["a"], pads=[1] * 4),
        node("DequantizeLinear", ["a", "as", "az"], ["ad"]),
        node("MaxPool", ["ad"], ["md"], kernel_shape=[2, 2], strides=[2, 2]),
        node("QuantizeLinear", ["md", "as", "az"], ["m"]),
        node("Reshape", ["m", "shape"], ["f"]),
        node("QLinearMatMul", ["f", "as", "az", "k", "ws", "wz", "ys", "yz"], ["o"]),
        node("DequantizeLinear", ["o", "ys", "yz"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 8, 8)}, constants, opset=11)


def transposed_with_an_odd_padding() -> Any:
    """An output_shape that leaves one row and column to cut: in front, as ONNX has it without SAME_UPPER."""
    n = numbers(10)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("ConvTranspose", ["a", "t"], ["b"], strides=[2, 2], output_shape=[16, 14]),
        node("ConvTranspose", ["b", "u"], ["y"], strides=[2, 2], dilations=[2, 2], auto_pad="SAME_UPPER"),
    ]
    return model_of(nodes, {"x": (1, 3, 8, 7)}, {"w": n(16, 3, 3, 3), "t": n(16, 8, 3, 3), "u": n(8, 4, 4, 4)})


def transposed_in_one_dimension() -> Any:
    n = numbers(11)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1]),
        node("ConvTranspose", ["a", "t"], ["y"], strides=[2], output_shape=[21]),
    ]
    return model_of(nodes, {"x": (1, 4, 10)}, {"w": n(16, 4, 3), "t": n(16, 8, 4)})


def broadcast_residuals() -> Any:
    """Means of columns go through dilated layers along time and are added to every column, as in BC-ResNet."""
    n = numbers(9)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("ReduceMean", ["a"], ["m"], axes=[3]),
        node("Conv", ["m", "d"], ["e"], group=16, pads=[2, 0, 2, 0], dilations=[2, 1]),
        node("Conv", ["e", "p"], ["f"]),
        node("Relu", ["f"], ["g"]),
        node("Add", ["a", "g"], ["s"]),
        node("Relu", ["s"], ["r"]),
        node("GlobalAveragePool", ["r"], ["k"]),
        node("Conv", ["k", "q"], ["t"]),
        node("Add", ["t", "r"], ["y"]),
    ]
    constants = {"w": n(16, 3, 3, 3), "d": n(16, 1, 3, 1), "p": n(16, 16, 1, 1), "q": n(16, 16, 1, 1)}
    return model_of(nodes, {"x": (1, 3, 11, 10)}, constants)


def scales_by_block_opset_21() -> Any:
    """Weights whose scales change along the sum, ten to a block, the last one smaller."""
    random = _random(12)
    nodes = [
        node("Conv", ["x", "c"], ["a"]),
        node("Flatten", ["a"], ["f"]),
        node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0, block_size=10),
        node("MatMul", ["f", "w"], ["y"]),
    ]
    constants = {
        "c": numbers(12)(8, 3, 3, 3), "q": random.integers(0, 200, (32, 6), dtype=np.uint8),
        "s": np.array([[0.01], [0.05], [0.002], [0.02]] * np.ones((1, 6)), np.float32),
        "z": np.array([[90], [110], [100], [95]] * np.ones((1, 6)), np.uint8),
    }  # fmt: skip
    return model_of(nodes, {"x": (1, 3, 4, 4)}, constants, opset=21)


MODELS = [
    grouped_with_clips_opset_11, one_dimension_with_groups_opset_13, transposed_with_output_shape, two_branches,
    resized_and_padded, linear_resize, quantised_by_channel_opset_13, operators_on_integers_opset_11,
    transposed_with_an_odd_padding, transposed_in_one_dimension, scales_by_block_opset_21,
]  # fmt: skip


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_model_runs_as_its_reference(make: Callable[[], Any]) -> None:
    assert "conv2d" in runs_as_its_reference(make())


def test_broadcast_residuals_leave_neither_vta_nor_the_integers() -> None:
    operators = runs_as_its_reference(broadcast_residuals())
    assert {"average_pool", "upsample", "add"} <= operators and "ReduceMean" not in operators


def test_an_open_batch_and_size_are_given() -> None:
    n = numbers(9)
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Shape", ["a"], ["s"]),
        node("Gather", ["s", "first"], ["batch"]),
        node("Concat", ["batch", "rest"], ["shape"], axis=0),
        node("Reshape", ["a", "shape"], ["b"]),
        node("Gemm", ["b", "k"], ["y"]),
    ]
    constants = {"w": n(8, 3, 3, 3), "first": np.array([0]), "rest": np.array([-1]), "k": n(8 * 36, 24)}
    model = model_of(nodes, {"x": ("batch", 3, "h", "w")}, constants, types={"x": TensorProto.FLOAT})
    assert {"conv2d", "dense"} <= runs_as_its_reference(model, {"x": (2, 3, 6, 6)})
