"""The float Softmax: the same bits by both engines, infinities, and how exact it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilt_runtime import functions, operators
from tests.unit.network.engines import assert_native_equals_numpy

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(11)
NAN, INF = np.nan, np.inf
LINES = {
    "equal": [3.5] * 9,
    "zeros": [0.0, -0.0, 0.0],
    "a hundred apart": [100.0, -100.0, 13.0, 12.5],
    "at the end of the powers": [0.0, -86.5, -86.9, -87.5, -88.0, -89.9, -90.0, -90.1, -104.0],
    "subnormal": [1e-40, -1e-40, 3e-39, 1.2e-38],
    "one, subnormal": [-1e-40],
    "subnormal differences": [1e-38, 1.1e-38, 1.2e-38, -1e-38],
    "a subnormal best": [-200.0, 1e-40, -3e38],
    "the largest": [3e38, -3e38, 2.9e38],
    "masked": [1.0, -INF, 2.0, -INF, -INF, 0.5],
    "infinity": [1.0, INF, 2.0, -INF, 0.0],
    "nothing but masked": [-INF] * 5,
    "NaN": [1.0, 2.0, 3.0, 4.0, NAN, -INF],
    "NaN first": [NAN, 2.0],
}


def softmax(data: Array, op: str = "Softmax", axis: int = -1) -> Array:
    with np.errstate(all="ignore"):
        (result,) = operators.run(op, [data], {"axis": axis})
    return np.asarray(result)


def exact(data: Array, op: str) -> Array:
    """Return the result in float64; differences are those of float32."""
    centred = (data - data.max(-1, keepdims=True)).astype(np.float64)
    sums = np.exp(centred).sum(-1, keepdims=True)
    return np.asarray(np.exp(centred) / sums if op == "Softmax" else centred - np.log(sums))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("size", range(1, 71))
def test_lines_of_each_length_have_numpys_bits(size: int, op: str) -> None:
    for inner in (1, 2, 5, 8):
        data = np.random.default_rng(size).normal(0, 8, (3, size, inner)).astype(np.float32)
        assert assert_native_equals_numpy(op, [data], {"axis": 1})


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(("size", "inner"), [(197, 1), (64, 1), (128, 70), (129, 9), (1000, 3), (1, 200)])
def test_long_lines_have_numpys_bits(size: int, inner: int, op: str) -> None:
    data = RANDOM.normal(0, 20, (2, size, inner)).astype(np.float32)
    assert assert_native_equals_numpy(op, [data], {"axis": 1})


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("line", LINES)
def test_odd_lines_have_numpys_bits(line: str, op: str) -> None:
    values = np.array(LINES[line], np.float32)
    for repeats in (1, 4, 15):
        data = np.tile(values, repeats)
        columns = np.stack([data, RANDOM.permutation(data), *RANDOM.normal(0, 2, (3, len(data)))], 1)
        assert assert_native_equals_numpy(op, [data], {})
        assert assert_native_equals_numpy(op, [columns.astype(np.float32)], {"axis": 0})


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_a_line_of_infinity_or_nan_is_nan(op: str) -> None:
    for name in ("infinity", "nothing but masked", "NaN", "NaN first"):
        assert np.isnan(softmax(np.array(LINES[name], np.float32), op)).all(), name


def test_what_is_masked_is_nothing() -> None:
    masked = np.array(LINES["masked"], np.float32)
    finite = np.isfinite(masked)
    np.testing.assert_array_equal(softmax(masked)[~finite], 0)
    np.testing.assert_array_equal(softmax(masked, "LogSoftmax")[~finite], -INF)
    np.testing.assert_allclose(softmax(masked)[finite], softmax(masked[finite]), rtol=1e-6)


def test_a_power_is_exact_to_1_2_units_of_the_last_place() -> None:
    x = np.concatenate([-np.linspace(0, 90, 200_000), -np.logspace(-9, 0, 50_000)]).astype(np.float32)
    wanted = functions.POWER_OF_0 * np.exp(x.astype(np.float64))
    made = functions.powers(x)
    assert made.dtype == np.float32 and functions.powers(np.zeros(1, np.float32))[0] == functions.POWER_OF_0
    assert (np.abs(made - wanted) / np.spacing(wanted.astype(np.float32))).max() < 1.2
    assert made.min() > 10 * np.finfo(np.float32).tiny, "none is subnormal"


@pytest.mark.parametrize("deviation", [0.1, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("size", [2, 10, 50, 197, 1000, 6625])
def test_a_softmax_is_exact_to_four_ten_millionths(size: int, deviation: float) -> None:
    data = RANDOM.normal(0, deviation, (20, size)).astype(np.float32)
    wanted, made = exact(data, "Softmax"), softmax(data)
    normal = wanted > 2.0**-124
    np.testing.assert_allclose(made[normal], wanted[normal], rtol=4e-7)
    assert (made[~normal] < 2.0**-123).all()
    np.testing.assert_allclose(made.astype(np.float64).sum(-1), 1, rtol=3e-7)
    np.testing.assert_allclose(softmax(data, "LogSoftmax"), exact(data, "LogSoftmax"), rtol=2.5e-7, atol=1e-11)


def test_the_result_is_that_of_each_axis() -> None:
    data = RANDOM.normal(0, 3, (6, 75, 7)).astype(np.float32)
    for axis in range(3):
        turned = softmax(np.moveaxis(data, axis, -1))
        np.testing.assert_array_equal(softmax(data, axis=axis), np.moveaxis(turned, -1, axis))
