"""TFLite's operators one by one, with the results of its own interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilt.network.onnx_graph import OnnxError
from hilt.network.tflite.convert import load_tflite

from .models import Array
from .test_tflite import assert_same
from .tflite_models import TfliteBuilder, schema

SHAPE = (1, 3, 4, 5)
RELU = schema.ActivationFunctionType.RELU


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


def floats(*shape: int, least: float = -3.0, most: float = 3.0) -> Array:
    return np.random.default_rng(4).uniform(least, most, shape).astype(np.float32)


UNARY = {
    **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "ABS", "NEG"), -9.0),
    **dict.fromkeys(("EXP", "SIN", "COS", "FLOOR", "SQUARE", "HARD_SWISH"), -9.0),
    **dict.fromkeys(("LOG", "SQRT", "RSQRT"), 0.1),
}
"""Functions of one tensor, and the least argument."""
Case = tuple[str, dict[str, Any], tuple[int, ...], tuple[int, ...], dict[str, Array]]
"""Code, options, shape before and after, and constant inputs behind the first."""
CASES: dict[str, Case] = {
    **{name.lower(): (name, {}, SHAPE, SHAPE, {}) for name in UNARY},
    "gelu": ("GELU", {"kind": "GeluOptions"}, SHAPE, SHAPE, {}),
    "gelu, approximate": ("GELU", {"kind": "GeluOptions", "approximate": True}, SHAPE, SHAPE, {}),
    "softmax": ("SOFTMAX", {"kind": "SoftmaxOptions", "beta": 0.5}, SHAPE, SHAPE, {}),
    "softmax of 2": ("SOFTMAX", {"kind": "SoftmaxOptions", "beta": 2.0}, SHAPE, SHAPE, {}),
    "log softmax": ("LOG_SOFTMAX", {"kind": "LogSoftmaxOptions"}, SHAPE, SHAPE, {}),
    "sub": ("SUB", {"kind": "SubOptions", "fusedActivationFunction": RELU}, SHAPE, SHAPE, {"b": floats(5)}),
    "div": ("DIV", {"kind": "DivOptions"}, SHAPE, SHAPE, {"b": floats(1, 4, 1, least=0.5)}),
    "mul": ("MUL", {"kind": "MulOptions", "fusedActivationFunction": RELU}, SHAPE, SHAPE, {"b": floats(5)}),
    "floor division": ("FLOOR_DIV", {}, SHAPE, SHAPE, {"b": floats(5, least=0.5)}),
    "maximum": ("MAXIMUM", {"kind": "MaximumMinimumOptions"}, SHAPE, SHAPE, {"b": floats(5)}),
    "minimum": ("MINIMUM", {"kind": "MaximumMinimumOptions"}, SHAPE, SHAPE, {"b": floats(5)}),
    "squared difference": ("SQUARED_DIFFERENCE", {}, SHAPE, SHAPE, {"b": floats(5)}),
    "mean": ("MEAN", {"kind": "ReducerOptions", "keepDims": True}, SHAPE, (1, 3, 1, 5), {"a": ints(2)}),
    "sum": ("SUM", {"kind": "ReducerOptions"}, SHAPE, (1, 5), {"a": ints(1, 2)}),
    "sum, kept": ("SUM", {"kind": "ReducerOptions", "keepDims": True}, SHAPE, (1, 1, 4, 1), {"a": ints(-1, 1)}),
    "largest": ("REDUCE_MAX", {"kind": "ReducerOptions"}, SHAPE, (1, 3, 5), {"a": ints(2)}),
    "smallest": ("REDUCE_MIN", {"kind": "ReducerOptions", "keepDims": True}, SHAPE, (1, 3, 4, 1), {"a": ints(3)}),
    "squeeze": ("SQUEEZE", {"kind": "SqueezeOptions", "squeezeDims": [0]}, SHAPE, (3, 4, 5), {}),
    "expand": ("EXPAND_DIMS", {}, SHAPE, (1, 3, 1, 4, 5), {"a": ints(2)}),
    "no padding": ("PAD", {}, SHAPE, SHAPE, {"p": np.zeros((4, 2), np.int32)}),
    "filled": (
        "PADV2",
        {},
        SHAPE,
        (1, 6, 4, 6),
        {"p": ints([0, 0], [1, 2], [0, 0], [0, 1]), "v": np.array(1.5, np.float32)},
    ),
    "reflected": (
        "MIRROR_PAD",
        {"kind": "MirrorPadOptions", "mode": 0},
        SHAPE,
        (1, 6, 4, 6),
        {"p": ints([0, 0], [1, 2], [0, 0], [0, 1])},
    ),
    "slice": ("SLICE", {}, SHAPE, (1, 2, 4, 2), {"b": ints(0, 1, 0, 2), "s": ints(1, -1, 4, 2)}),
    "strides": (
        "STRIDED_SLICE",
        {"kind": "StridedSliceOptions", "beginMask": 1, "endMask": 3},
        SHAPE,
        (1, 2, 2, 2),
        {"b": ints(7, 1, 3, 0), "e": ints(0, 0, 0, 4), "s": ints(1, 1, -2, 2)},
    ),
    "backwards": (
        "STRIDED_SLICE",
        {"kind": "StridedSliceOptions", "beginMask": 7, "endMask": 7},
        SHAPE,
        (1, 3, 4, 4),
        {"b": ints(0, 0, 0, 1), "e": ints(0, 0, 0, 5), "s": ints(1, -1, -1, 1)},
    ),
    "last": (
        "STRIDED_SLICE",
        {"kind": "StridedSliceOptions", "beginMask": 5, "endMask": 5, "shrinkAxisMask": 10},
        SHAPE,
        (1, 4),
        {"b": ints(0, -1, 0, 2), "e": ints(0, 0, 0, 0), "s": ints(1, 1, 1, 1)},
    ),
    "tile": ("TILE", {}, SHAPE, (1, 6, 4, 15), {"m": ints(1, 2, 1, 3)}),
    "broadcast": ("BROADCAST_TO", {"version": 2}, (1, 1, 4, 1), SHAPE, {"s": ints(*SHAPE)}),
    "gather": ("GATHER", {"kind": "GatherOptions", "axis": 2}, SHAPE, (1, 3, 3, 5), {"i": ints(3, 0, 3)}),
    "pack": (
        "PACK",
        {"kind": "PackOptions", "axis": 2, "valuesCount": 2},
        (1, 3, 4),
        (1, 3, 2, 4),
        {"b": floats(1, 3, 4)},
    ),
    "join": (
        "CONCATENATION",
        {"kind": "ConcatenationOptions", "axis": 3},
        SHAPE,
        (1, 3, 4, 7),
        {"b": floats(1, 3, 4, 2)},
    ),
    "to depth": ("SPACE_TO_DEPTH", {"kind": "SpaceToDepthOptions", "blockSize": 2}, (1, 4, 6, 3), (1, 2, 3, 12), {}),
    "product": ("BATCH_MATMUL", {"kind": "BatchMatMulOptions"}, (2, 3, 4), (2, 3, 5), {"b": floats(2, 4, 5)}),
    "product, turned": (
        "BATCH_MATMUL",
        {"kind": "BatchMatMulOptions", "adjY": True},
        (2, 3, 4),
        (2, 3, 5),
        {"b": floats(2, 5, 4)},
    ),
    "product of a turned one": (
        "BATCH_MATMUL",
        {"kind": "BatchMatMulOptions", "adjX": True},
        (2, 4, 3),
        (2, 3, 5),
        {"b": floats(2, 4, 5)},
    ),
    "length": ("L2_NORMALIZATION", {"kind": "L2NormOptions"}, (4, 5), (4, 5), {}),
    "corners": (
        "RESIZE_BILINEAR",
        {"kind": "ResizeBilinearOptions", "alignCorners": True},
        SHAPE,
        (1, 7, 9, 5),
        {"s": ints(7, 9)},
    ),
    "plain": ("RESIZE_BILINEAR", {"kind": "ResizeBilinearOptions"}, SHAPE, (1, 7, 9, 5), {"s": ints(7, 9)}),
    "nearest corners": (
        "RESIZE_NEAREST_NEIGHBOR",
        {"kind": "ResizeNearestNeighborOptions", "alignCorners": True},
        SHAPE,
        (1, 7, 9, 5),
        {"s": ints(7, 9)},
    ),
    "nearest halves": (
        "RESIZE_NEAREST_NEIGHBOR",
        {"kind": "ResizeNearestNeighborOptions", "halfPixelCenters": True},
        SHAPE,
        (1, 7, 9, 5),
        {"s": ints(7, 9)},
    ),
}


def saved(case: Case, path: Path, kind: str = "float32") -> Path:
    code, options, before, after, constants = case
    b = TfliteBuilder()
    b.tensor("x", before)
    b.tensor("y", after, kind)
    for name, value in constants.items():
        b.tensor(name, value.shape, str(value.dtype), value)
    b.operator(code, ["x", *constants], ["y"], **options)
    return b.save(path, ["x"], ["y"])


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_the_interpreters(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert_same(saved(case, tmp_path / "op.tflite"), [floats(*case[2], least=UNARY.get(case[0], -3.0), most=9.0)])


def test_a_convolution_with_groups_and_dilation(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 9, 8, 4))
    b.tensor("y", (1, 5, 6, 6))
    b.tensor("w", (6, 3, 2, 2), value=floats(6, 3, 2, 2))
    b.tensor("b", (6,), value=floats(6))
    b.operator("CONV_2D", ["x", "w", "b"], ["y"], "Conv2DOptions", padding=schema.Padding.VALID, strideH=1, strideW=1,
               dilationHFactor=2, dilationWFactor=2, fusedActivationFunction=RELU)  # fmt: skip
    assert_same(b.save(tmp_path / "c.tflite", ["x"], ["y"]), [floats(1, 9, 8, 4)])


def test_a_depthwise_layer_without_bias_makes_several_channels_of_each(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 6, 7, 3))
    b.tensor("y", (1, 3, 4, 6))
    b.tensor("w", (1, 3, 2, 6), value=floats(1, 3, 2, 6))
    b.operator("DEPTHWISE_CONV_2D", ["x", "w"], ["y"], "DepthwiseConv2DOptions", padding=schema.Padding.SAME,
               strideH=2, strideW=2, depthMultiplier=2)  # fmt: skip
    assert_same(b.save(tmp_path / "d.tflite", ["x"], ["y"]), [floats(1, 6, 7, 3)])


def test_a_transposed_convolution_with_its_bias(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (1, 4, 5, 3))
    b.tensor("y", (1, 8, 10, 6))
    b.tensor("shape", (4,), "int32", ints(1, 8, 10, 6))
    b.tensor("w", (6, 3, 3, 3), value=floats(6, 3, 3, 3))
    b.tensor("b", (6,), value=floats(6))
    b.operator("TRANSPOSE_CONV", ["shape", "w", "x", "b"], ["y"], "TransposeConvOptions", version=3,
               padding=schema.Padding.SAME, strideH=2, strideW=2)  # fmt: skip
    assert_same(b.save(tmp_path / "t.tflite", ["x"], ["y"]), [floats(1, 4, 5, 3)])


@pytest.mark.parametrize("keeps", [True, False])
def test_a_dense_layer_keeps_its_axes_or_joins_them(keeps: bool, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (2, 3, 4))
    b.tensor("y", (2, 3, 5) if keeps else (6, 5))
    b.tensor("w", (5, 4), value=floats(5, 4))
    b.operator("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnectedOptions", keepNumDims=keeps)
    assert_same(b.save(tmp_path / "f.tflite", ["x"], ["y"]), [floats(2, 3, 4)])


@pytest.mark.parametrize("code", ["SPLIT", "SPLIT_V"])
def test_a_tensor_is_split_in_equal_parts_or_others(code: str, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", SHAPE)
    sizes = (2, 2) if code == "SPLIT" else (1, 3)
    names = [b.tensor(f"y{number}", (1, 3, size, 5)) for number, size in enumerate(sizes)]
    b.tensor("axis", (), "int32", np.array(2, np.int32))
    b.tensor("sizes", (2,), "int32", ints(*sizes))
    inputs = ["axis", "x"] if code == "SPLIT" else ["x", "sizes", "axis"]
    b.operator(code, inputs, names, "SplitOptions" if code == "SPLIT" else "SplitVOptions", numSplits=2)
    assert_same(b.save(tmp_path / "s.tflite", ["x"], names), [floats(*SHAPE)])


def whole(*shape: int) -> Array:
    return np.rint(floats(*shape))


@pytest.mark.parametrize("code", ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"])
@pytest.mark.parametrize("chooser", ["CAST", "SELECT_V2"])
def test_a_comparison_is_a_number_or_a_choice(code: str, chooser: str, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", SHAPE)
    b.tensor("y", SHAPE)
    b.tensor("m", SHAPE, "bool")
    b.tensor("b", SHAPE, value=whole(*SHAPE)[..., ::-1])
    b.operator(code, ["x", "b"], ["m"])
    b.operator(chooser, ["m", *(["x", "b"] if chooser != "CAST" else [])], ["y"])
    assert_same(b.save(tmp_path / "c.tflite", ["x"], ["y"]), [whole(*SHAPE)])


@pytest.mark.parametrize("code", ["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"])
def test_truth_values_are_joined(code: str, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", SHAPE)
    b.tensor("y", SHAPE)
    for name in ("m", "n", "o"):
        b.tensor(name, SHAPE, "bool")
    for name, value in (("b", 1.0), ("c", -1.0)):
        b.tensor(name, (1,), value=np.array([value], np.float32))
    b.operator("GREATER", ["x", "c"], ["m"])
    b.operator("LESS", ["x", "b"], ["n"])
    b.operator(code, ["m", *([] if code == "LOGICAL_NOT" else ["n"])], ["o"])
    b.operator("CAST", ["o"], ["y"])
    assert_same(b.save(tmp_path / "l.tflite", ["x"], ["y"]), [whole(*SHAPE)])


def test_a_shape_and_what_is_filled_follow_a_tensor(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", SHAPE)
    b.tensor("s", (4,), "int32")
    b.tensor("f", SHAPE)
    b.tensor("y", SHAPE)
    b.tensor("v", (), value=np.array(2.5, np.float32))
    b.operator("SHAPE", ["x"], ["s"], "ShapeOptions", outType=schema.TensorType.INT32)
    b.operator("FILL", ["s", "v"], ["f"])
    b.operator("ADD", ["x", "f"], ["y"], "AddOptions")
    assert_same(b.save(tmp_path / "f.tflite", ["x"], ["y"]), [floats(*SHAPE)])


def test_a_shape_that_is_an_output_has_its_type(tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", SHAPE)
    b.tensor("n", SHAPE)
    b.tensor("s", (4,), "int32")
    b.operator("NEG", ["x"], ["n"])
    b.operator("SHAPE", ["n"], ["s"], "ShapeOptions", outType=schema.TensorType.INT32)
    graph = assert_same(b.save(tmp_path / "s.tflite", ["x"], ["n", "s"]), [floats(*SHAPE)])
    assert graph.dtypes[graph.outputs[1]] == "int32"


@pytest.mark.parametrize("axis", [1, -1])
def test_the_place_of_the_largest_is_the_interpreters(axis: int, tmp_path: Path) -> None:
    b = TfliteBuilder()
    b.tensor("x", (2, 3, 4))
    b.tensor("y", (2, 4) if axis == 1 else (2, 3), "int32")
    b.tensor("a", (), "int32", np.array(axis, np.int32))
    b.operator("ARG_MAX", ["x", "a"], ["y"], "ArgMaxOptions", outputType=schema.TensorType.INT32)
    assert_same(b.save(tmp_path / "a.tflite", ["x"], ["y"]), [floats(2, 3, 4)])


REFUSED: dict[str, tuple[Case, str]] = {
    "symmetric": (
        ("MIRROR_PAD", {"kind": "MirrorPadOptions", "mode": 1}, (1, 4), (1, 6), {"p": ints([0, 0], [1, 1])}),
        "MIRROR_PAD in symmetric mode makes y; use reflect",
    ),
    "ellipsis": (
        (
            "STRIDED_SLICE",
            {"kind": "StridedSliceOptions", "ellipsisMask": 1},
            (1, 4),
            (1, 4),
            {"b": ints(0, 0), "e": ints(1, 4), "s": ints(1, 1)},
        ),
        "STRIDED_SLICE with an ellipsis or a new axis makes y",
    ),
    "new axis": (
        (
            "STRIDED_SLICE",
            {"kind": "StridedSliceOptions", "newAxisMask": 1},
            (1, 4),
            (1, 1, 4),
            {"b": ints(0, 0), "e": ints(1, 4), "s": ints(1, 1)},
        ),
        "STRIDED_SLICE with an ellipsis or a new axis makes y",
    ),
    "activation": (
        ("SUB", {"kind": "SubOptions", "fusedActivationFunction": 5}, SHAPE, SHAPE, {"b": floats(5)}),
        "y has the fused activation 5, unknown to hilt",
    ),
    "blocks of an open shape": (
        (
            "SPACE_TO_BATCH_ND",
            {},
            (1, -1, 4, 2),
            (4, -1, 2, 2),
            {"b": ints(2, 2), "p": np.zeros((2, 2), np.int32)},
        ),
        "SPACE_TO_BATCH_ND makes y from an open shape; fix the shapes first",
    ),
    "two open sizes": (
        ("SQUEEZE", {"kind": "SqueezeOptions"}, (1, -1, -1), (-1, -1), {}),
        "SQUEEZE makes y of an open shape; fix the shapes first",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_hilt_does_not_convert_is_named(name: str, tmp_path: Path) -> None:
    case, text = REFUSED[name]
    with pytest.raises(OnnxError, match=text):
        load_tflite(saved(case, tmp_path / "op.tflite"))
