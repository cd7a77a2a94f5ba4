"""Forms of operators that the native engine computes as numpy does, and why it leaves others to numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime.native.plan_shape import _runs
from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.steps import Builder, NotNativeError
from tests.unit.network.engines import assert_native_equals_numpy

RANDOM = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(0, 2, shape).astype(np.float32)


def bytes_of(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.integers(-128, 128, shape).astype(np.int8)


def whole(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def real(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


X = normal(2, 4, 6, 5)
B = bytes_of(2, 4, 6, 5)
STATISTICS = [normal(4), normal(4), normal(4), np.abs(normal(4)) + np.float32(0.1)]
WIDE = whole(-9, -2, 0, 3, 7)
POOL = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 1, 1, 0]}
POOL_INT8 = {"kernel": [3, 2], "strides": [2, 1], "pads": [0, 1, 1, 0]}
NORMAL: dict[str, Any] = {"axis": 1, "epsilon": 0.02, "rounded": 1, "clip": [-128.0, 127.0]}
WINDOW_INT8 = {"strides": [2, 1], "pads": [1, 0, 2, 1], "groups": 2, "shift": [3, 4, 5, 6, 7, 8], "clip": [-100, 90]}
ONE = {"shift": [1], "clip": [0, 1]}
BIAS = RANDOM.integers(-900, 900, 6).astype(np.int32)

FORMS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "clip of int64": ("Clip", [WIDE, whole(-3), whole(4)], {}),
    "clip of int64 from below": ("Clip", [WIDE, whole(-3)], {}),
    "clip of int64 from above": ("Clip", [WIDE, None, whole(4)], {}),
    "clip of int64 without bounds": ("Clip", [WIDE], {}),
    "clip without bounds": ("Clip", [X], {}),
    "clip from below": ("Clip", [X, real(0.25)], {}),
    "the largest of three": ("Max", [X, normal(4, 1, 5), normal(1)], {}),
    "sum of three": ("Sum", [X, normal(6, 5), normal(4, 1, 1)], {}),
    "square": ("Pow", [X, real(2)], {}),
    "root": ("Pow", [np.abs(X), real(0.5)], {}),
    "equal": ("Equal", [np.round(X), np.round(normal(5))], {}),
    "Elu": ("Elu", [X], {"alpha": 0.3}),
    "Selu": ("Selu", [X], {"alpha": 1.5, "gamma": 0.7}),
    "LeakyRelu": ("LeakyRelu", [X], {"alpha": 0.3}),
    "HardSigmoid": ("HardSigmoid", [X], {"alpha": 0.3, "beta": 0.4}),
    "Shrink": ("Shrink", [X], {"lambd": 1.0, "bias": 0.25}),
    "ThresholdedRelu": ("ThresholdedRelu", [X], {"alpha": 0.5}),
    "sum over all": ("ReduceSum", [X], {}),
    "sum over the last axes without them": ("ReduceSum", [X, whole(-1, 2)], {"keepdims": 0}),
    "least over the first axes": ("ReduceMin", [X, whole(0, 1)], {}),
    "largest over one axis": ("ReduceMax", [X, whole(2)], {"keepdims": 0}),
    "mean over two axes": ("ReduceMean", [X, whole(1, 2)], {"keepdims": 1}),
    "mean over a line": ("GlobalAveragePool", [normal(2, 3, 7)], {}),
    "softmax over the first axis": ("Softmax", [X], {"axis": 0}),
    "logarithm of softmax over rows": ("LogSoftmax", [X], {"axis": -2}),
    "place of the largest, kept": ("ArgMax", [X], {"axis": 2}),
    "place of the least, without its axis": ("ArgMin", [X], {"axis": -1, "keepdims": 0}),
    "layer normalization over three axes": ("LayerNormalization", [X, normal(4, 6, 5)], {"axis": 1, "epsilon": 0.25}),
    "layer normalization with a shift": ("LayerNormalization", [X, normal(6, 5), normal(6, 5)], {"axis": -2}),
    "instance normalization": ("InstanceNormalization", [X, normal(4), normal(4)], {"epsilon": 0.25}),
    "instance normalization of lines": ("InstanceNormalization", [normal(2, 4, 9), normal(4), normal(4)], {}),
    "batch normalization": ("BatchNormalization", [X, *STATISTICS], {"epsilon": 0.25}),
    "batch normalization of rows": ("BatchNormalization", [normal(3, 4), *STATISTICS], {}),
    "batches of products": ("MatMul", [normal(2, 3, 4), normal(2, 4, 5)], {}),
    "rows and columns beside whole pairs": ("MatMul", [normal(5, 33), normal(33, 91)], {}),
    "two rows of whole columns": ("MatMul", [normal(2, 7), normal(7, 64)], {}),
    "products with batches of two axes": ("MatMul", [normal(3, 1, 2, 4), normal(6, 4, 5)], {}),
    "a product with one matrix on the left": ("MatMul", [normal(3, 4), normal(2, 4, 5)], {}),
    "a dense layer": ("Gemm", [normal(3, 4), normal(4, 5)], {}),
    "a dense layer of a transposed input": ("Gemm", [normal(4, 3), normal(4, 5), normal(5)], {"transA": 1}),
    "a dense layer with factors": ("Gemm", [normal(3, 4), normal(5, 4), normal(3, 1)], {"transB": 1, "alpha": 2.5}),
    "a dense layer with a factor of its bias": ("Gemm", [normal(3, 4), normal(4, 5), normal(5)], {"beta": 0.25}),
    "convolution of a line": (
        "Conv", [normal(2, 4, 9), normal(6, 2, 3), normal(6)],
        {"group": 2, "pads": [2, 0], "strides": [2], "dilations": [2]},
    ),
    "convolution without a bias": ("Conv", [X, normal(3, 4, 3, 2)], {"pads": [2, 0, 1, 1], "strides": [1, 3]}),
    "largest of windows": ("MaxPool", [X], {**POOL, "dilations": [1, 2]}),
    "largest of windows of a line": ("MaxPool", [normal(2, 3, 9)], {"kernel_shape": [3], "pads": [1, 0]}),
    "mean of windows": ("AveragePool", [X], POOL),
    "mean of windows with their pads": ("AveragePool", [X], {**POOL, "count_include_pad": 1, "ceil_mode": 1}),
    "shape by the input's and the rest": ("Reshape", [X, whole(0, -1, 5)], {}),
    "an empty shape allowed": ("Reshape", [np.zeros((0, 3), np.float32), whole(3, 0)], {"allowzero": 1}),
    "flat from the third axis": ("Flatten", [X], {"axis": 2}),
    "flat from the last axis": ("Flatten", [X], {"axis": -1}),
    "flat from the first axis": ("Flatten", [X], {"axis": 0}),
    "without all axes of one": ("Squeeze", [normal(1, 3, 1, 2)], {}),
    "without one axis of one": ("Squeeze", [normal(1, 3, 1, 2), whole(-2)], {}),
    "with axes of one": ("Unsqueeze", [X, whole(-1, 2, 0)], {}),
    "axes turned round": ("Transpose", [X], {}),
    "axes in another order": ("Transpose", [X], {"perm": [0, 2, 3, 1]}),
    "an axis of one moved": ("Transpose", [normal(3, 1, 4)], {"perm": [1, 0, 2]}),
    "joined along channels": ("Concat", [X, normal(2, 1, 6, 5), normal(2, 3, 6, 5)], {"axis": 1}),
    "joined along the first axis": ("Concat", [X, normal(1, 4, 6, 5)], {"axis": 0}),
    "cut along the first axes": ("Slice", [X, whole(1, 1), whole(2, 3)], {}),
    "cut with steps back": ("Slice", [X, whole(-1, 4), whole(-100, 0), whole(2, 3), whole(-2, -1)], {}),
    "cut along a named axis": ("Slice", [X, whole(2), whole(4), whole(-2)], {}),
    "nothing left": ("Slice", [X, whole(3), whole(3), whole(1)], {}),
    "rows that lie together": ("Slice", [X, whole(0), whole(1), whole(0)], {}),
    "padded along one axis": ("Pad", [X, whole(1, 2), real(0.5), whole(2)], {}),
    "padded with zeros": ("Pad", [X, whole(0, 0, 1, 0, 0, 0, 0, 2)], {}),
    "padded with int64": ("Pad", [WIDE, whole(1, 2), whole(-1)], {}),
    "padded by reflection far": ("Pad", [normal(2, 9), whole(0, 8, 0, 8)], {"mode": "reflect"}),
    "padded around": ("Pad", [normal(3, 5), whole(2, 1, 0, 3)], {"mode": "wrap"}),
    "edges repeated": ("Pad", [normal(3, 5), whole(0, 2, 1, 3)], {"mode": "edge"}),
    "blocks to rows": ("DepthToSpace", [normal(2, 12, 3, 5)], {"blocksize": 2}),
    "columns then rows": ("DepthToSpace", [normal(2, 12, 3, 5)], {"blocksize": 2, "mode": "CRD"}),
    "rows to blocks": ("SpaceToDepth", [normal(2, 3, 4, 6)], {"blocksize": 2}),
    "taken by int32": ("Gather", [X, np.array([[5, 0], [-1, 2]], np.int32)], {"axis": 2}),
    "taken by one number": ("Gather", [X, np.array(1, np.int64)], {}),
    "expanded to a larger rank": ("Expand", [normal(6, 1), whole(3, 1, 5)], {}),
    "expanded to nothing": ("Expand", [normal(6, 1), np.empty(0, np.int64)], {}),
    "sizes of some axes": ("Shape", [X], {"start": 1, "end": -1}),
    "sizes of the last axes": ("Shape", [X], {"start": -2}),
    "one or the other of int64": ("Where", [np.array([[True], [False]]), whole(1, 2, 3), whole(7)], {}),
    "one or the other of bytes": ("Where", [X > 0, B, bytes_of(5)], {}),
    "int32 to int64": ("Cast", [np.array([5, -7], np.int32)], {"to": 7}),
    "float32 to float32": ("Cast", [X], {"to": 1}),
    "sum of int8": (
        "add", [B, bytes_of(4, 1, 5)], {"left_shifts": [2, 0], "shift": 1, "clip": [-90, 100]},
    ),
    "sum of int8 and one for each channel": (
        "add", [bytes_of(4, 1, 1), B], {"left_shifts": [1, 1], "shift": 1, "clip": [-90, 100]},
    ),
    "product of int8": ("multiply", [B, bytes_of(5)], {"shift": 6, "clip": [-90, 100]}),
    "largest of int8 windows": ("max_pool", [B], POOL_INT8),
    "mean of int8 windows": ("average_pool", [B], {**POOL_INT8, "divisor": 11, "shift": 6, "clip": [-90, 100]}),
    "mean of int8 images, moved": (
        "global_average_pool", [B], {"divisor": 1, "shift": 3, "clip": [-90, 100], "offset": -4000}
    ),
    "by two factors a channel, moved": (
        "prelu", [B, np.arange(8, dtype=np.int16).reshape(2, 4) * 4000], {"left": 2, "offset": -90}
    ),
    "mean of int8 images": ("global_average_pool", [B], {"divisor": 9, "shift": 8, "clip": [-90, 100]}),
    "int8 convolution": ("conv2d", [B, bytes_of(6, 2, 3, 2), BIAS], {**WINDOW_INT8, "dilations": [1, 2]}),
    "int8 convolution without a bias": ("conv2d", [B, bytes_of(6, 2, 3, 2)], WINDOW_INT8),
    "int8 transposed convolution": (
        "conv2d", [B, bytes_of(6, 2, 3, 2), BIAS], {**WINDOW_INT8, "strides": [1, 1], "input_dilation": [2, 3]},
    ),
    "int8 dense layer": ("dense", [bytes_of(3, 8), bytes_of(6, 8), BIAS], {"shift": [7], "clip": [-90, 100]}),
    "int8 dense layer with a sum": (
        "dense", [bytes_of(3, 8), bytes_of(6, 8), BIAS, bytes_of(3, 6)],
        {"shift": [7], "clip": [-90, 100], "residual_shift": [4]},
    ),
    "to int8 by a power of two": ("quantize", [X], {"scale": 0.0625}),
    "to int8 by another scale": ("quantize", [X], {"scale": 0.07}),
    "to float32": ("dequantize", [B], {"scale": 0.07}),
    "by a table": ("table", [B, bytes_of(256)], {}),
    "by a table of float32": ("table", [B, normal(256)], {}),
    "by a table a channel": ("pixel_table", [B.view(np.uint8), bytes_of(4, 256)], {"axis": 1}),
    "by two factors a channel": ("prelu", [B, np.arange(8, dtype=np.int16).reshape(2, 4) * 4000], {"left": 2}),
    "less a mean, over a deviation": ("normalization", [B, normal(2, 4)], {**NORMAL, "groups": 2}),
    "less a pixel's mean": ("normalization", [B, normal(2, 4)], {**NORMAL, "groups": 0}),
    "by one table for all": ("pixel_table", [B, bytes_of(1, 256)], {"axis": 1}),
    "by own elements in turn": ("pad", [B], {"pads": [0, 0, 2, 1, 0, 0, 0, 3], "mode": "reflect"}),
    "by the outermost elements": ("pad", [B], {"pads": [0, 0, 2, 1, 0, 0, 0, 3], "mode": "edge"}),
    "between pixels": ("interpolate", [B], {"factors": [2, 4], "centred": 1}),
    "between the begins of pixels": ("interpolate", [bytes_of(1, 2, 2, 700)], {"factors": [8, 1], "centred": 0}),
    "between pixels of long rows": ("interpolate", [bytes_of(1, 2, 2, 1025)], {"factors": [1, 2], "centred": 1}),
    "repeated rows and columns": ("upsample", [B], {"factors": [2, 3]}),
    "repeated as often as can be": ("upsample", [bytes_of(1, 1, 1, 2)], {"factors": [1, 1024]}),
}  # fmt: skip

REFUSED: dict[str, tuple[str, list[Any], dict[str, Any], tuple[int, ...]]] = {
    "a tensor that is not float32": ("Relu", [B], {}, ()),
    "a tensor that is not float32 (sum)": ("Softmax", [B], {}, ()),
    "a tensor that is not float32 (place)": ("ArgMax", [B], {}, ()),
    "a tensor that is not float32 (pool)": ("MaxPool", [B], POOL, ()),
    "a tensor that is not float32 (window)": ("Conv", [X, normal(6, 4, 3, 3), BIAS], {}, ()),
    "a tensor that is not float32 (product)": ("MatMul", [normal(3, 4), bytes_of(4, 5)], {}, ()),
    "a bound that is computed": ("Clip", [X, real(0)], {}, (1,)),
    "a bound that is computed (two)": ("Clip", [X, None, real(0, 1)], {}, ()),
    "a bound that is computed (int64)": ("Clip", [WIDE, whole(0)], {}, (1,)),
    "a bound that is computed (int64, above)": ("Clip", [WIDE, whole(0), whole(1)], {}, (2,)),
    "a bound that is computed (int64, two)": ("Clip", [WIDE, whole(0, 1)], {}, ()),
    "a bound that is computed (int64 by float)": ("Clip", [WIDE, real(0)], {}, ()),
    "an empty tensor": ("Add", [X[:, :0], X[:, :0]], {}, ()),
    "an empty tensor (product)": ("MatMul", [X[..., :0], normal(0, 3)], {}, ()),
    "an empty tensor (choice)": ("Where", [X[:0] > 0, X[:0], X[:0]], {}, ()),
    "an empty tensor (int8)": ("add", [B[:0], B[:0]], {"shift": 0, "clip": [-128, 127]}, ()),
    "an empty tensor (softmax)": ("softmax", [B[:0]], {"axis": 1, "scale": 0.1, "logarithm": 0, "shape": [0]}, ()),
    "one tensor alone": ("Max", [X], {}, ()),
    "a power of other than 2 and 1/2": ("Pow", [X, real(3)], {}, ()),
    "a power of other than 2 and 1/2 (rank)": ("Pow", [real(3), np.full((1, 1), 2, np.float32)], {}, ()),
    "axes that are apart": ("ReduceSum", [X, whole(1, 3)], {}, ()),
    "axes that are apart (nothing)": ("ReduceSum", [X[:0], whole(1)], {}, ()),
    "its axes is computed": ("ReduceSum", [X, whole(1)], {}, (1,)),
    "no axis": ("ReduceSum", [X, whole()], {"noop_with_empty_axes": 1}, ()),
    "statistics that are computed": ("BatchNormalization", [X, *STATISTICS], {}, (4,)),
    "a vector": ("MatMul", [normal(4), normal(4, 5)], {}, ()),
    "a vector (right)": ("MatMul", [normal(5, 4), normal(4)], {}, ()),
    "more than two axes of batches": ("MatMul", [normal(2, 1, 2, 3, 4), normal(1, 2, 1, 4, 5)], {}, ()),
    "weights that are computed": ("Conv", [X, normal(6, 4, 3, 3)], {}, (1,)),
    "weights that are computed (infinite)": ("Conv", [X, np.full((6, 4, 1, 1), np.inf, np.float32)], {}, ()),
    "a window that is larger than the data": ("Conv", [X, normal(6, 4, 7, 1)], {}, ()),
    "a window that is larger than the data (columns)": ("Conv", [X, normal(6, 4, 1, 6)], {}, ()),
    "a window that is larger than the data (negative)": ("Conv", [X, normal(6, 4, 1, 1)], {"pads": [-1, 0, 0, 0]}, ()),
    "a window that is larger than the data (pool)": ("MaxPool", [X], {"kernel_shape": [7, 1]}, ()),
    "a window that is larger than the data (int8)": ("max_pool", [B], {**POOL_INT8, "kernel": [8, 1]}, ()),
    "a window that is larger than the data (int8 columns)": ("max_pool", [B], {**POOL_INT8, "kernel": [1, 7]}, ()),
    "a window that is larger than the data (int8 window)": ("conv2d", [B, bytes_of(6, 2, 10, 2)], WINDOW_INT8, ()),
    "sizes that are computed": ("Resize", [X, None, real(1, 1, 2, 2)], {"mode": "nearest"}, (2,)),
    "sizes that are computed (whole)": ("Resize", [X, None, None, whole(2, 4, 9, 9)], {"mode": "nearest"}, (3,)),
    "its shape is computed": ("Reshape", [X, whole(-1)], {}, (1,)),
    "an axis of more than one element": ("Squeeze", [X, whole(1)], {}, ()),
    "parts of different types": ("Concat", [X, B], {"axis": 0}, ()),
    "parts of different types (rank)": ("Concat", [X, normal(3)], {"axis": 0}, ()),
    "its range is computed": ("Slice", [X, whole(0), whole(1)], {}, (2,)),
    "sizes that are not those of the axis": ("Split", [X, whole(1, 2)], {"axis": 1}, ()),
    "sizes that are not those of the axis (none)": ("Split", [X, whole(4, 0)], {"axis": 1}, ()),
    "pads below 0": ("Pad", [X, whole(0, 0, 0, -1, 0, 0, 0, 0)], {}, ()),
    "a value that is computed": ("Pad", [X, whole(*[1] * 8), real(3)], {}, (2,)),
    "indices that are not int64": ("Gather", [X, np.array([1], np.int32)], {}, (1,)),
    "types that are mixed": ("Where", [X > 0, X, B], {}, ()),
    "types that are mixed (condition)": ("Where", [B, X, X], {}, ()),
    "types that are mixed (halves)": ("Where", [X > 0, X.astype(np.float16), X.astype(np.float16)], {}, ()),
    "a change of type other than int32 to int64": ("Cast", [X], {"to": 7}, ()),
    "a tensor that is not int8": ("table", [X, bytes_of(256)], {}, ()),
    "a tensor that is not int8 (pair)": ("add", [B, X], {"shift": 0, "clip": [-128, 127]}, ()),
    "a tensor that is not int8 (window)": ("max_pool", [X], POOL_INT8, ()),
    "a table of other than 256 int8 or float32": ("table", [B, bytes_of(255)], {}, ()),
    "a table of other than 256 int8 or float32 (type)": ("table", [B, np.arange(256)], {}, ()),
    "data that is not of bytes": ("pixel_table", [X, bytes_of(4, 256)], {"axis": 1}, ()),
    "data that is not of bytes (nothing)": ("pixel_table", [B[:0], bytes_of(4, 256)], {"axis": 1}, ()),
    "a table of other than 256 int8 a channel": ("pixel_table", [B, bytes_of(4, 255)], {"axis": 1}, ()),
    "a table of other than 256 int8 a channel (flat)": ("pixel_table", [B, bytes_of(256)], {"axis": 1}, ()),
    "a table of other than 256 int8 a channel (type)": ("pixel_table", [B, normal(4, 256)], {"axis": 1}, ()),
    "a tensor that is not int8 (factors)": ("prelu", [X, np.ones((2, 4), np.int16)], {"left": 0}, ()),
    "factors that are computed": ("prelu", [B, np.ones((2, 4), np.int16)], {"left": 0}, (1,)),
    "factors other than two int16 a channel": ("prelu", [B, np.ones((2, 4), np.int32)], {"left": 0}, ()),
    "factors other than two int16 a channel (more)": ("prelu", [B, np.ones((2, 5), np.int16)], {"left": 0}, ()),
    "factors other than two int16 a channel (one)": ("prelu", [B, np.ones((1, 4), np.int16)], {"left": 0}, ()),
    "a tensor that is not int8 (mean)": ("normalization", [X, normal(2, 4)], {**NORMAL, "groups": 2}, ()),
    "factors that are computed (mean)": ("normalization", [B, normal(2, 4)], {**NORMAL, "groups": 2}, (1,)),
    "factors other than two float32 a channel": ("normalization", [B, normal(2, 5)], {**NORMAL, "groups": 2}, ()),
    "factors of another shape": ("LayerNormalization", [X, normal(6, 5), normal(5)], {"axis": 2}, ()),
    "factors of another shape (one)": ("LayerNormalization", [X, normal(1)], {}, ()),
    "factors of another shape (channels)": ("InstanceNormalization", [X, normal(3), normal(3)], {}, ()),
    "data that is not float32": ("quantize", [B], {"scale": 0.5}, ()),
    "data that is not float32 (scale)": ("quantize", [X], {"scale": 0.0}, ()),
    "a bias that is not int32": ("conv2d", [B, bytes_of(6, 2, 3, 2), normal(6)], WINDOW_INT8, ()),
    "a residual of another shape": ("dense", [B[0, 0], B[0, 1], None, bytes_of(6, 5)], ONE, ()),
    "weights of another depth": ("dense", [bytes_of(3, 8), bytes_of(6, 7)], ONE, ()),
    "more than 1024 copies of an element": ("upsample", [B], {"factors": [25, 41]}, ()),
    "more than 1024 copies of an element (none)": ("upsample", [B], {"factors": [0, 2]}, ()),
    "places that are not int64, or no table": ("counted_sum", [whole(0), normal(4)], {"rows": 1, "shape": [1]}, ()),
    "places that are not int64, or no table (empty)": (
        "counted_sum", [whole(0), normal(0, 4)], {"rows": 1, "shape": [1, 4]}, (),
    ),
    "places that are not int64, or no table (int32)": (
        "counted_sum", [np.zeros(1, np.int32), normal(2, 4)], {"rows": 1, "shape": [1, 4]}, (),
    ),
    "the last of several places": ("ArgMax", [X], {"select_last_index": 1}, ()),
    "there is no native Bernoulli": ("Bernoulli", [X], {}, ()),
    "its form is not known: ": ("Transpose", [X], {"perm": [7.5]}, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_computed_natively_as_by_numpy(name: str) -> None:
    assert assert_native_equals_numpy(*FORMS[name])


@pytest.mark.parametrize("name", REFUSED)
def test_a_form_that_is_left_to_numpy_says_why_and_leaves_no_step(name: str) -> None:
    op, inputs, attributes, computed = REFUSED[name]
    builder = Builder()
    for place, array in enumerate(inputs[1:], 1):
        if array is not None and place not in computed:
            builder.constant(array)
    with pytest.raises(NotNativeError, match=name.partition(" (")[0]):
        plan_operator(builder, op, inputs, attributes)
    assert not builder.records


@pytest.mark.parametrize(
    ("places", "runs"),
    [
        ([], []),
        ([4], [(0, 1, 1)]),
        ([0, 1, 2], [(0, 3, 1)]),
        ([5, 3, 1, 2], [(0, 3, -2), (3, 1, 1)]),
        ([2, 2, 2, 7, 9, 11, 0], [(0, 3, 0), (3, 3, 2), (6, 1, 1)]),
    ],
)
def test_places_with_one_step_between_them_are_copied_at_once(
    places: list[int], runs: list[tuple[int, int, int]]
) -> None:
    assert _runs(places) == runs
