"""Pads of window operators by ONNX's rules, and the steps of a recurrent layer's fixed point, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime.fixed_point import STEPS, exponent_of
from hilt_runtime.operators_window import pads_of, transposed_pads, window_geometry


@pytest.mark.parametrize(
    ("attributes", "pads"),
    [
        ({}, [0, 0, 0, 0]),
        ({"pads": [1, 2, 3, 4]}, [1, 2, 3, 4]),
        ({"auto_pad": "NOTSET", "pads": [0, 1, 0, 2]}, [0, 1, 0, 2]),
        ({"auto_pad": "VALID", "pads": [1, 2, 3, 4]}, [0, 0, 0, 0]),
        ({"auto_pad": "SAME_UPPER"}, [1, 1, 1, 2]),
        ({"auto_pad": "SAME_LOWER"}, [1, 2, 1, 1]),
    ],
)
def test_pads_are_all_begins_then_all_ends(attributes: dict[str, Any], pads: list[int]) -> None:
    """Five rows with stride 2 become three, six columns stay six."""
    assert pads_of(attributes, (5, 6), (3, 4), (2, 1), (1, 1)) == pads
    data = np.zeros((1, 2, 5, 6), np.float32)
    geometry = window_geometry(data, {**attributes, "strides": [2, 1]}, (3, 4))
    assert geometry == ([3, 4], [2, 1], [1, 1], pads)


def test_dilations_reach_further_and_strides_may_need_no_pads() -> None:
    assert pads_of({"auto_pad": "SAME_UPPER"}, (5, 8), (3, 1), (2, 3), (2, 1)) == [2, 0, 2, 0]
    assert pads_of({}, (9,), (3,), (1,), (1,)) == [0, 0]


def test_one_dimension_is_one_row() -> None:
    data = np.zeros((1, 2, 9), np.float32)
    assert window_geometry(data, {"pads": [2, 1], "dilations": [3]}, (4,)) == ([1, 4], [1, 1], [1, 3], [0, 2, 0, 1])
    assert window_geometry(data, {"auto_pad": "VALID"}, (4,)) == ([1, 4], [1, 1], [1, 1], [0, 0, 0, 0])
    assert window_geometry(data, {"auto_pad": "SAME_LOWER"}, (4,)) == ([1, 4], [1, 1], [1, 1], [0, 2, 0, 1])


@pytest.mark.parametrize(
    ("attributes", "pads"),
    [
        ({}, [0, 0, 0, 0]),
        ({"pads": [1, 0, 2, 1]}, [1, 0, 2, 1]),
        ({"auto_pad": "VALID", "pads": [1, 0, 2, 1]}, [0, 0, 0, 0]),
        ({"auto_pad": "SAME_UPPER"}, [0, 0, 1, 1]),
        ({"auto_pad": "SAME_LOWER"}, [1, 1, 0, 0]),
        ({"output_shape": [5, 9]}, [1, 2, 1, 2]),
        ({"output_shape": [1, 7, 4, 10], "auto_pad": "SAME_UPPER"}, [1, 1, 2, 2]),
        ({"output_shape": [4, 10]}, [2, 2, 1, 1]),
        ({"output_shape": [8, 13]}, [0, 0, -1, 0]),
        ({"output_shape": [9, 15]}, [0, 0, -2, -2]),
        ({"output_shape": [9, 14], "output_padding": [1, 2]}, [0, 1, -1, 0]),
        ({"output_shape": [9, 14], "dilations": [2, 1]}, [0, 0, 0, -1]),
    ],
)
def test_pads_of_a_transposed_convolution(attributes: dict[str, Any], pads: list[int]) -> None:
    """Three rows with stride 2 and a kernel of 3 reach 7 rows, four columns with stride 3 and one of 4 reach 13."""
    assert transposed_pads({"strides": [2, 3], **attributes}, (3, 4), (3, 4)) == pads


@pytest.mark.parametrize(
    ("values", "below"),
    [
        ([], 0),
        ([0.0], 0),
        ([np.nan, np.inf], 0),
        ([0.75, -0.5], 0),
        ([1.0], 1),
        ([-3.0, 2.5, -np.inf], 2),
        ([1e-3], -9),
    ],
)
def test_the_largest_value_is_less_than_the_steps(values: list[float], below: int) -> None:
    assert exponent_of(np.array(values, np.float32)) == STEPS - below
