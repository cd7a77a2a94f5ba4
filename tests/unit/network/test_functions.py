"""Functions that are defined step by step: as exact as their text says, and at the ends of their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hilt_runtime import functions

RANDOM = np.random.default_rng(3)
WIDE = np.concatenate([np.linspace(-119.0, 119.0, 999), np.linspace(-0.6, 0.6, 999), [0.25, -0.25]])


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@pytest.mark.parametrize(
    ("function", "exact", "error"),
    [
        (functions.exp, math.exp, 3e-10),
        (functions.expm1, math.expm1, 2e-9),
        (functions.tanh, math.tanh, 2e-9),
        (functions.sigmoid, lambda x: 1.0 / (1.0 + math.exp(-x)), 3e-10),
        (functions.softplus, softplus, 3e-10),
    ],
    ids=["exp", "expm1", "tanh", "sigmoid", "softplus"],
)
def test_a_function_is_as_exact_as_it_says(
    function: Callable[[Any], Any], exact: Callable[[float], float], error: float
) -> None:
    np.testing.assert_allclose(function(WIDE), [exact(x) for x in WIDE], rtol=error, atol=1e-60)


def test_a_logarithm_is_exact_to_2e_12() -> None:
    positive = np.concatenate([np.exp(WIDE), np.linspace(0.5, 2.0, 999), [1.0, 5e-324, 1.7e308]])
    np.testing.assert_allclose(functions.log(positive), [math.log(x) for x in positive], rtol=2e-12, atol=1e-15)


def test_an_error_function_is_exact_to_1_2e_7() -> None:
    assert np.abs(functions.erf(WIDE) - [math.erf(x) for x in WIDE]).max() < 1.2e-7
    assert functions.erf(np.float64(0)) == 0


def test_functions_have_values_at_the_ends_of_their_ranges() -> None:
    ends = np.array([-np.inf, -121.0, -120.0, 120.0, 121.0, np.inf])
    np.testing.assert_allclose(functions.exp(ends), np.exp(ends.clip(-120, 120)), rtol=3e-10)
    np.testing.assert_array_equal(functions.tanh(ends), [-1, -1, -1, 1, 1, 1])
    np.testing.assert_allclose(functions.sigmoid(ends), [0, 0, 0, 1, 1, 1], atol=1e-51)
    np.testing.assert_allclose(functions.softplus(ends), [0, 0, 0, 120, 121, np.inf], atol=1e-51)
    np.testing.assert_array_equal(functions.log(np.array([0.0, np.inf])), [-np.inf, np.inf])
    assert np.isnan(functions.log(np.array([-1.0, -np.inf, np.nan]))).all()
    assert np.isnan(functions.exp(np.nan))


def test_powers_of_a_softmax_are_256_times_e_to_x_to_1_2_units() -> None:
    x = np.linspace(-90.0, 0.0, 5001).astype(np.float32)
    exact = 256.0 * np.exp(x.astype(np.float64))
    assert (np.abs(functions.powers(x) - exact) / np.spacing(exact.astype(np.float32))).max() < 1.2
    assert functions.powers(np.zeros(1, np.float32)) == functions.POWER_OF_0
    np.testing.assert_array_equal(functions.powers(np.float32([-91, -1e30])), functions.powers(np.float32([-90] * 2)))


@pytest.mark.parametrize("size", [1, 3, 4, 5, 63, 64, 65, 130])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_powers_are_summed_by_four_lanes_of_64(size: int, axis: int) -> None:
    shape = [2, 2, 2]
    shape[axis] = size
    values = RANDOM.normal(0, 1, shape).astype(np.float32)
    sums = functions.sum_of_powers(values, axis)
    assert sums.shape == tuple(1 if place == axis % 3 else length for place, length in enumerate(shape))
    line = np.moveaxis(values, axis, 0)[:, 0, 0]
    total = 0.0
    for begin in range(0, size, 64):
        lanes = [np.float32(0)] * 4
        for place, value in enumerate(line[begin : begin + 64]):
            lanes[place % 4] = lanes[place % 4] + value
        total += float((lanes[0] + lanes[2]) + (lanes[1] + lanes[3]))
    assert np.float64(sums.ravel()[0]) == total


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [1, 2], [0, 1, 2]])
def test_sums_add_up_in_order_in_float64(axes: list[int]) -> None:
    data = RANDOM.normal(0, 1e8, (3, 40, 2)).astype(np.float32)
    sums = functions.sum_along(data, axes)
    expected = np.zeros([1 if axis in axes else size for axis, size in enumerate(data.shape)])
    for place in np.ndindex(data.shape):
        expected[tuple(0 if axis in axes else at for axis, at in enumerate(place))] += float(data[place])
    assert sums.dtype == np.float64
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 5), (5, 3)),
        ((5,), (5, 3)),
        ((2, 5), (5,)),
        ((5,), (5,)),
        ((4, 2, 5), (5, 3)),
        ((4, 1, 2, 5), (6, 5, 3)),
        ((5,), (6, 5, 3)),
        ((4, 6, 2, 5), (5,)),
        ((2, 0), (0, 3)),
    ],
)
def test_a_product_has_numpys_shape_and_sums_in_float64(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    one, other = (RANDOM.integers(-(2**12), 2**12, shape).astype(np.float32) for shape in (left, right))
    product = functions.product(one, other)
    exact = np.matmul(one.astype(np.int64), other.astype(np.int64))
    assert product.dtype == np.float32 and product.shape == exact.shape
    np.testing.assert_array_equal(product, exact.astype(np.float32))


def test_a_product_of_integers_or_of_sizes_that_differ_is_numpys() -> None:
    ones = np.ones((2, 3), np.int32)
    assert functions.product(ones, ones.T).dtype == np.int32
    mixed = functions.product(ones.astype(np.float32), ones.T.astype(np.float64))
    assert mixed.dtype == np.float64
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        functions.product(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
