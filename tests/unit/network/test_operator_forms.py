"""Further forms of the processor's operators against ONNX Runtime: other axes, modes, and optional inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime import operators
from tests.unit.network.processor_cases import whole
from tests.unit.network.test_processor_operators import by_onnx_runtime

RANDOM = np.random.default_rng(23)


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(0, 2, shape).astype(np.float32)


def real(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def number(value: int) -> np.ndarray[Any, Any]:
    return np.array(value, np.int64)


X = normal(2, 4, 6, 5)
SIZES = whole(2, 4, 9, 8)
FORMS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "cumulated": ("CumSum", [X, number(-1)], {}),
    "cumulated from behind": ("CumSum", [X, number(2)], {"reverse": 1}),
    "cumulated before itself": ("CumSum", [X, number(0)], {"exclusive": 1}),
    "gathered whole": ("GatherND", [X, np.array([[1], [-1]])], {}),
    "elements of the first axis": ("GatherElements", [normal(3, 4), RANDOM.integers(-3, 3, (2, 4))], {"axis": 0}),
    "elements of the last axis": ("GatherElements", [normal(3, 4), RANDOM.integers(-4, 4, (3, 7))], {"axis": -1}),
    "scattered largest": ("ScatterND", [normal(4, 2), np.array([[1], [3]]), normal(2, 2)], {"reduction": "max"}),
    "scattered products": ("ScatterND", [normal(4, 2), np.array([[1], [-1]]), normal(2, 2)], {"reduction": "mul"}),
    "scattered elements": (
        "ScatterElements", [normal(3, 4), RANDOM.integers(-4, 4, (3, 1)), normal(3, 1)], {"axis": 1},
    ),
    "one of many in front": ("OneHot", [whole(1, -1, 9), number(4), real(2, 7)], {"axis": 0}),
    "one of many, far outside": ("OneHot", [whole(-4, -5, 3, 4), number(4), real(2, 7)], {}),
    "one of many in the middle": ("OneHot", [np.array([[1, 3], [0, 2]]), number(5), real(0, 1)], {"axis": 1}),
    "triangle above": ("Trilu", [normal(3, 5), number(1)], {}),
    "triangle below": ("Trilu", [normal(2, 5, 3), number(-1)], {"upper": 0}),
    "triangle with more": ("Trilu", [normal(3, 5), number(2)], {"upper": 0}),
    "range of floats": ("Range", [np.float32(0.5), np.float32(3), np.float32(0.75)], {}),
    "range back": ("Range", [number(9), number(1), number(-3)], {}),
    "tiled in front": ("Tile", [normal(3), whole(4)], {}),
    "equation of batches": ("Einsum", [normal(2, 3, 4), normal(2, 5, 4)], {"equation": "bik,bjk->bij"}),
    "equation of a diagonal": ("Einsum", [normal(4, 4)], {"equation": "ii->i"}),
    "equation of a sum": ("Einsum", [normal(2, 3), normal(3)], {"equation": "ij,j->i"}),
    "remainder of negative": ("Mod", [whole(-7, 7, -6), whole(4, -4, 3)], {"fmod": 1}),
    "mean over the first axes": ("ReduceMean", [X], {"axes": [0, 1], "keepdims": 0}),
    "mean over negative axes": ("ReduceMean", [X], {"axes": [-1], "keepdims": 1}),
    "product over axes": ("ReduceProd", [normal(2, 3, 2)], {"axes": [0, 2], "keepdims": 0}),
    "length over an axis": ("ReduceL2", [X], {"axes": [1], "keepdims": 0}),
    "absolutes over an axis": ("ReduceL1", [X], {"axes": [-2], "keepdims": 1}),
    "largest over apart axes": ("ReduceMax", [X], {"axes": [1, 3], "keepdims": 0}),
    "sum over apart axes": ("ReduceSum", [X, whole(0, 2)], {"keepdims": 0}),
    "sum over none": ("ReduceSum", [X, whole()], {"noop_with_empty_axes": 1}),
    "last place of the largest": ("ArgMax", [np.round(X)], {"axis": -1, "select_last_index": 1}),
    "last place of the least": ("ArgMin", [np.round(X)], {"axis": 1, "select_last_index": 1, "keepdims": 0}),
    "norm of two": ("LpNormalization", [normal(3, 4, 5)], {"axis": -1}),
    "norm of the first axis": ("LpNormalization", [normal(3, 4, 5)], {"axis": 0, "p": 2}),
    "norms of windows": ("LpPool", [X], {"kernel_shape": [2, 2], "strides": [2, 3]}),
    "hard choice of the first axis": ("Hardmax", [normal(3, 4)], {"axis": 0}),
    "transposed convolution": ("ConvTranspose", [X, normal(4, 3, 3, 2)], {}),
    "transposed convolution in groups": (
        "ConvTranspose", [X, normal(4, 2, 3, 2), normal(4)],
        {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]},
    ),
    "transposed convolution, dilated": (
        "ConvTranspose", [X, normal(4, 2, 2, 3)], {"dilations": [2, 3], "strides": [3, 2]},
    ),
    "transposed convolution to a size": (
        "ConvTranspose", [X, normal(4, 2, 3, 3)], {"strides": [2, 2], "output_shape": [12, 10]},
    ),
    "convolution, padded alike": ("Conv", [X, normal(3, 4, 3, 2)], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "convolution, not padded": ("Conv", [X, normal(3, 4, 3, 2)], {"auto_pad": "VALID"}),
    "means, rounded up": (
        "AveragePool", [X], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 0, 0]},
    ),
    "means of a line": ("AveragePool", [normal(1, 3, 9)], {"kernel_shape": [4], "strides": [3], "pads": [2, 1]}),
    "largest, padded alike": ("MaxPool", [X], {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "largest, dilated": ("MaxPool", [X], {"kernel_shape": [2, 2], "dilations": [3, 2]}),
    "nearest by sizes": (
        "Resize", [X, None, None, SIZES],
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "nearest at corners": (
        "Resize", [X, None, None, SIZES],
        {"mode": "nearest", "coordinate_transformation_mode": "align_corners", "nearest_mode": "ceil"},
    ),
    "nearest, halves down": (
        "Resize", [X, None, real(1, 1, 1.5, 2)], {"mode": "nearest", "nearest_mode": "round_prefer_floor"},
    ),
    "nearest, halves up": (
        "Resize", [X, None, real(1, 1, 0.5, 0.6)], {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
    ),
    "linear at corners": (
        "Resize", [X, None, None, SIZES], {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    "linear, smaller": ("Resize", [X, None, real(1, 1, 0.5, 0.6)], {"mode": "linear"}),
    "linear to one pixel": (
        "Resize", [X, None, None, whole(2, 4, 1, 1)],
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
    "cubic, larger": (
        "Resize", [X, None, None, SIZES],
        {"mode": "cubic", "cubic_coeff_a": -0.5, "coordinate_transformation_mode": "asymmetric"},
    ),
    "flat from behind": ("Flatten", [X], {"axis": -2}),
    "sizes between": ("Shape", [X], {"start": -3, "end": 3}),
    "cast to integers": ("Cast", [X], {"to": 6}),
    "cast to truth": ("Cast", [np.round(X)], {"to": 9}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_computes_as_onnx_runtime_does(name: str) -> None:
    op, inputs, attributes = FORMS[name]
    wanted = by_onnx_runtime(op, inputs, attributes)
    arrays = [None if value is None else np.asarray(value) for value in inputs]
    given = operators.run(op, arrays, attributes)
    for one, other in zip(wanted, given, strict=False):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
