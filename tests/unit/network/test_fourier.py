"""Transforms of Fourier are products and convolutions, with ONNX Runtime's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_simplify import fixed_model

from .models import Array, model_of
from .test_canonical_form import assert_same, normal
from .test_quantize import assert_agrees, ops, quantised


def transform(opset: int, axis: int, length: int | None, **attributes: Any) -> tuple[Any, dict[str, Array]]:
    """Return a DFT's node and its constants."""
    constants = {} if length is None else {"length": np.array(length, np.int64)}
    names = ["x", "" if length is None else "length"]
    if opset >= 20:
        constants["axis"] = np.array(axis, np.int64)
        return helper.make_node("DFT", [*names, "axis"], ["y"], **attributes), constants
    return helper.make_node("DFT", names, ["y"], axis=axis, **attributes), constants


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize(
    ("shape", "axis", "length", "attributes"),
    [
        ((2, 15, 1), 1, None, {}),
        ((2, 16, 1), 1, None, {"onesided": 1}),
        ((2, 15, 2), 1, None, {}),
        ((1, 6, 8, 2), 1, None, {"inverse": 1}),
        ((3, 8, 5, 1), 2, None, {"onesided": 1}),
        ((2, 16, 1), 1, 10, {"onesided": 1}),
        ((2, 9, 1), 1, 16, {}),
        ((4, 12, 2), -2, 12, {"inverse": 1}),
    ],
)
def test_a_dft_is_a_product(
    shape: tuple[int, ...], axis: int, length: int | None, attributes: dict[str, Any], opset: int
) -> None:
    node, constants = transform(opset, axis, length, **attributes)
    made = list(assert_same(model_of([node], {"x": shape}, constants, opset=opset), {"x": normal(*shape)}))
    assert "DFT" not in made and {"Gemm", "MatMul"} & set(made)


@pytest.mark.parametrize("windowed", [True, False])
@pytest.mark.parametrize("onesided", [1, 0])
def test_an_stft_is_a_convolution(windowed: bool, onesided: int) -> None:
    constants = {"step": np.array(5), "length": np.array(16)}
    if windowed:
        constants["window"] = np.hanning(16).astype(np.float32)
    inputs = ["x", "step", "window" if windowed else "", "length"]
    model = model_of([helper.make_node("STFT", inputs, ["y"], onesided=onesided)], {"x": (2, 70, 1)}, constants)
    made = list(assert_same(model, {"x": normal(2, 70, 1)}))
    assert "STFT" not in made and "Conv" in made


def test_a_dft_of_computed_length_or_an_inverse_to_real_numbers_stays() -> None:
    node, _ = transform(20, 1, None, inverse=1, onesided=1)
    model = model_of([node], {"x": (2, 9, 2)}, {"axis": np.array(1)}, opset=20)
    graph = fixed_model(model, "test")
    canonicalise(graph)
    assert [each.op for each in graph.nodes] == ["DFT"]


def test_a_spectrogram_and_a_layer_are_quantised() -> None:
    nodes = [
        helper.make_node("STFT", ["x", "step", "window", "length"], ["s"]),
        helper.make_node("Mul", ["s", "s"], ["p"]),
        helper.make_node("ReduceSum", ["p", "last"], ["e"], keepdims=0),
        helper.make_node("Add", ["e", "least"], ["f"]),
        helper.make_node("Log", ["f"], ["l"]),
        helper.make_node("Transpose", ["l"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "w"], ["y"], kernel_shape=[3]),
    ]
    constants = {
        "step": np.array(8), "length": np.array(16), "window": np.hanning(16).astype(np.float32),
        "last": np.array([3]), "least": np.array(1e-3, np.float32), "w": normal(4, 9, 3),
    }  # fmt: skip
    result = quantised(model_of(nodes, {"x": (1, 200, 1)}, constants))
    assert_agrees(result)
    assert ops(result.graph).count("conv2d") == 2
