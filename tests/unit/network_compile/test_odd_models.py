"""Models as exporters write them, from ONNX to tensors on the golden model: every tensor is the reference's."""

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


class Numbers:
    """Seeded weights."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(4)

    def __call__(self, *shape: int) -> Array:
        return self._random.normal(0, 0.4, shape).astype(np.float32)

    def integers(self, *shape: int) -> Array:
        """Return seven bits: ONNX Runtime's products of uint8 and int8 saturate on some processors."""
        return self._random.integers(-63, 64, shape, dtype=np.int8)


def one_dimension(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], group=4, dilations=[3], pads=[3, 3]),
        node("Conv", ["a", "w2"], ["b"], strides=[2], auto_pad="SAME_LOWER"),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2], strides=[2]),
        node("Conv", ["c", "w3"], ["y"], dilations=[8], pads=[8, 8]),
    ]
    return model_of(nodes, {"x": (1, 16, 40)}, {"w": n(16, 4, 3), "w2": n(8, 16, 5), "w3": n(4, 8, 3)})


def transposed(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("ConvTranspose", ["a", "t", "b"], ["c"], strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]),
        node("ConvTranspose", ["c", "t2"], ["y"], strides=[3, 2], auto_pad="SAME_UPPER"),
    ]
    return model_of(
        nodes, {"x": (1, 3, 6, 5)}, {"w": n(16, 3, 3, 3), "t": n(16, 12, 3, 3), "b": n(12), "t2": n(12, 4, 4, 3)}
    )


def uneven_pads(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[0, 2, 1, 3], strides=[2, 1]),
        node("AveragePool", ["a"], ["b"], kernel_shape=[3, 3], pads=[0, 1, 1, 1], ceil_mode=1, strides=[2, 2]),
        node("Conv", ["b", "w2"], ["c"]),
        node("MaxPool", ["c"], ["d"], kernel_shape=[3, 2], pads=[1, 0, 1, 1], strides=[2, 2], ceil_mode=1),
        node("Conv", ["d", "w3"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 11, 9)}, {"w": n(16, 3, 3, 3), "w2": n(8, 16, 1, 1), "w3": n(8, 8, 1, 1)})


def seventeen_channels(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Conv", ["a", "w2"], ["b"], group=17, pads=[2] * 4),
        node("Conv", ["b", "w3"], ["y"], strides=[2, 3]),
    ]
    return model_of(nodes, {"x": (1, 1, 13, 7)}, {"w": n(17, 1, 3, 3), "w2": n(17, 1, 5, 5), "w3": n(33, 17, 1, 1)})


def a_constant_output(n: Numbers) -> Any:
    nodes = [node("Conv", ["x", "w"], ["a"]), node("Selu", ["a"], ["y"]), node("Identity", ["k"], ["z"])]
    return model_of(nodes, {"x": (1, 3, 6, 6), "unread": (1, 2)}, {"w": n(8, 3, 3, 3), "k": n(3)}, ("y", "z"))


def long_filters(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], strides=[2], pads=[20, 7]),
        node("Conv", ["a", "w2", "b2"], ["b"], strides=[4]),
        node("Conv", ["a", "w3"], ["c"], strides=[16]),
        node("Concat", ["b", "c"], ["y"], axis=2),
    ]
    return model_of(nodes, {"x": (1, 1, 500)}, {"w": n(1, 1, 64), "w2": n(1, 1, 40), "b2": n(1), "w3": n(1, 1, 33)})


def half_filled_lanes(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("Conv", ["x", "w2"], ["b"], pads=[1] * 4),
        node("Concat", ["a", "b", "a"], ["c"], axis=1),
        node("Conv", ["c", "w3"], ["d"]),
        node("DepthToSpace", ["d"], ["e"], blocksize=2),
        node("Conv", ["e", "w4"], ["y"]),
    ]
    constants = {"w": n(24, 16, 3, 3), "w2": n(20, 16, 3, 3), "w3": n(48, 68, 1, 1), "w4": n(8, 12, 3, 3)}
    return model_of(nodes, {"x": (1, 16, 9, 7)}, constants)


def an_empty_part(n: Numbers) -> Any:
    constants = {"w": n(8, 3, 3, 3), "none": np.array([0]), "axis": np.array([1]), "v": n(4, 8, 1, 1)}
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("Slice", ["a", "none", "none", "axis"], ["e"]),
        node("Concat", ["a", "e"], ["c"], axis=1),
        node("Conv", ["c", "v"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 8, 8)}, constants)


def means_of_odd_windows(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        node("AveragePool", ["a"], ["p"], kernel_shape=[3, 3]),
        node("LRN", ["p"], ["l"], size=3),
        node("AveragePool", ["l"], ["q"], kernel_shape=[6, 2], strides=[2, 2]),
        node("Conv", ["q", "v"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 14, 14)}, {"w": n(8, 3, 3, 3), "v": n(4, 8, 1, 1)})


def places_as_input(n: Numbers) -> Any:
    nodes = [node("Gather", ["e", "x"], ["g"]), node("MatMul", ["g", "w"], ["a"]), node("MatMul", ["a", "v"], ["y"])]
    constants = {"e": n(20, 8), "w": n(1, 8, 16), "v": n(16, 3)}
    return model_of(nodes, {"x": (1, 6)}, constants, types={"x": TensorProto.INT64})


def microsofts_operators(n: Numbers) -> Any:
    def at(value: float, zero: int) -> list[Array]:
        return [np.array(value, np.float32), np.array(zero, np.uint8)]

    parts = {
        "x": at(0.02, 128),
        "a": at(0.15, 0),
        "g": at(1 / 256, 0),
        "m": at(0.15, 10),
        "c": at(0.15, 10),
        "o": at(0.5, 128),
    }
    constants = {f"{name}{key}": value for name, pair in parts.items() for key, value in zip("sz", pair, strict=True)}
    constants |= {"w": n.integers(8, 3, 3, 3), "v": n.integers(8, 16, 1, 1), "ws": np.array(0.01, np.float32)}
    constants |= {"wz": np.array(0, np.int8)}
    own = {"domain": "com.microsoft"}
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "as", "az"], ["a"], pads=[1] * 4),
        node("QLinearSigmoid", ["a", "as", "az", "gs", "gz"], ["g"], **own),
        node("QLinearMul", ["a", "as", "az", "g", "gs", "gz", "ms", "mz"], ["m"], **own),
        node("QLinearConcat", ["cs", "cz", "m", "ms", "mz", "a", "as", "az"], ["c"], axis=1, **own),
        node("QLinearConv", ["c", "cs", "cz", "v", "ws", "wz", "os", "oz"], ["o"]),
        node("DequantizeLinear", ["o", "os", "oz"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 10, 10)}, constants)


def padding_alone(n: Numbers) -> Any:
    nodes = [node("Conv", ["x", "w"], ["a"], pads=[3] * 4), node("Conv", ["a", "v"], ["y"], pads=[2] * 4)]
    return model_of(nodes, {"x": (1, 3, 2, 2)}, {"w": n(8, 3, 7, 7), "v": n(4, 8, 3, 3)})


def a_state_alone(n: Numbers) -> Any:
    constants = {"w": n(8, 3, 3), "W": n(1, 20, 8), "R": n(1, 20, 5), "s": np.array([1, 5]), "v": n(5, 4)}
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("Transpose", ["a"], ["t"], perm=[2, 0, 1]),
        node("LSTM", ["t", "W", "R"], ["", "h"], hidden_size=5),
        node("Reshape", ["h", "s"], ["r"]),
        node("Gemm", ["r", "v"], ["y"]),
    ]
    return model_of(nodes, {"x": (1, 3, 9)}, constants)


def lines_of_one_pixel(n: Numbers) -> Any:
    nodes = [
        node("GlobalAveragePool", ["x"], ["g"]),
        node("Conv", ["g", "w"], ["a"], pads=[1, 1], group=18),
        node("MaxPool", ["a"], ["p"], kernel_shape=[1], strides=[2]),
        node("Conv", ["p", "u"], ["c"], pads=[1, 1], group=18),
        node("Flatten", ["c"], ["f"]),
        node("Gemm", ["f", "v"], ["y"]),
    ]
    return model_of(nodes, {"x": (2, 18, 6)}, {"w": n(18, 1, 3), "u": n(18, 1, 3), "v": n(18, 7)})


def names_that_hurt(n: Numbers) -> Any:
    nodes = [node("Conv", ["in put/0", "w;`$(x)`"], ["\x1b[31ma"]), node("Conv", ["\x1b[31ma", "../../v"], ["../z"])]
    constants = {"w;`$(x)`": n(8, 3, 3, 3), "../../v": n(4, 8, 1, 1)}
    return model_of(nodes, {"in put/0": (1, 3, 8, 8)}, constants, ("../z",))


def a_class_token(n: Numbers) -> Any:
    """The index 0 without dimensions takes one token, as PyTorch's x[:, 0] does."""
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Relu", ["a"], ["r"]),
        node("Gather", ["r", "zero"], ["g"], axis=1),
        node("Gemm", ["g", "v", "b"], ["y"]),
    ]
    constants = {"w": n(8, 16), "zero": np.array(0, np.int64), "v": n(16, 4), "b": n(4)}
    return model_of(nodes, {"x": (2, 4, 8)}, constants)


def a_scalar_at_the_end(n: Numbers) -> Any:
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Softmax", ["a"], ["s"], axis=-1),
        node("Gather", ["s", "zero"], ["g"], axis=1),
        node("ReduceMean", ["s"], ["m"], axes=[1], keepdims=0),
        node("Add", ["g", "m"], ["p"]),
        node("ReduceSum", ["p"], ["t"], keepdims=0),
        node("Mul", ["t", "half"], ["y"]),
    ]
    constants = {"w": n(8, 8), "zero": np.array(0, np.int64)}
    return model_of(nodes, {"x": (2, 4, 8)}, constants | {"half": np.array(0.5, np.float32)})


def a_constant_joined(n: Numbers) -> Any:
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("Concat", ["a", "rows"], ["b"], axis=0),
        node("MatMul", ["b", "v"], ["c"]),
        node("Concat", ["columns", "c"], ["d"], axis=1),
        node("MatMul", ["d", "u"], ["y"]),
    ]
    constants = {"w": n(8, 4), "rows": n(3, 4), "v": n(4, 6), "columns": n(5, 2), "u": n(8, 4)}
    return model_of(nodes, {"x": (2, 8)}, constants)


def doubled_to_odd_sizes(n: Numbers) -> Any:
    nodes = [
        node("ConvTranspose", ["x", "t", "b"], ["a"], strides=[2, 2], output_padding=[1, 1]),
        node("Conv", ["a", "w"], ["c"], pads=[1] * 4),
        node("ConvTranspose", ["c", "u", "b"], ["d"], strides=[3, 3], pads=[1] * 4, output_padding=[2, 1]),
        node("ConvTranspose", ["d", "v"], ["y"], strides=[3, 3], output_padding=[2, 2]),
    ]
    constants = {"t": n(8, 12, 2, 2), "b": n(12), "w": n(8, 12, 3, 3), "u": n(8, 12, 3, 3), "v": n(12, 4, 2, 2)}
    return model_of(nodes, {"x": (1, 8, 5, 6)}, constants)


def a_larger_output_shape(n: Numbers) -> Any:
    nodes = [
        node("Conv", ["x", "w"], ["a"]),
        node("ConvTranspose", ["a", "t"], ["y"], strides=[3, 2], output_shape=[10, 8]),
    ]
    return model_of(nodes, {"x": (1, 3, 3, 3)}, {"w": n(8, 3, 1, 1), "t": n(8, 4, 3, 3)})


def a_constant_on_the_left(n: Numbers) -> Any:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["k", "a"], ["y"])]
    return model_of(nodes, {"x": (6, 8)}, {"w": n(8, 4), "k": n(3, 6)})


MODELS: list[Callable[[Numbers], Any]] = [
    a_class_token, a_constant_joined, a_constant_on_the_left, a_larger_output_shape, a_scalar_at_the_end,
    doubled_to_odd_sizes, an_empty_part, half_filled_lanes, long_filters, a_constant_output,
    a_state_alone, means_of_odd_windows, microsofts_operators, names_that_hurt,
    lines_of_one_pixel, one_dimension, padding_alone, places_as_input, seventeen_channels, transposed, uneven_pads,
]  # fmt: skip


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_a_model_runs_as_its_reference(make: Callable[[Numbers], Any]) -> None:
    runs_as_its_reference(make(Numbers()))
