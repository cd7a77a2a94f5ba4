"""exp, log, tanh and sums, defined step by step: the same bits with every numpy and on every processor.

numpy's own exp differs by its build, and its sums and products by their order. Here each step is one IEEE operation,
sums add up in order in float64, and the result is rounded to float32 once. native/functions.h has the same in C. The
powers of a softmax are of float32 throughout, as native/softmax.c has them.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Callable, Sequence

import numpy as np

_LOG2_E = 1.4426950408889634
_ROUNDS = 6755399441055744.0
"""1.5 * 2^52: added and taken away, it rounds half to even."""
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_EXP = [1.0 / math.factorial(power) for power in range(8, -1, -1)]
_EXPM1 = [1.0 / math.factorial(power) for power in range(9, 0, -1)]
_TANH = (-1382.0 / 155925.0, 62.0 / 2835.0, -17.0 / 315.0, 2.0 / 15.0, -1.0 / 3.0, 1.0)
_ATANH = [1.0 / power for power in range(27, 0, -2)]
_ATANH_OF_LOG = _ATANH[-7:]
"""The series of log, for arguments up to 0.172."""
_ERF = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807),
    *(-0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223),
)
"""The rational approximation of Numerical Recipes (erfc, Chebyshev): to 1.2e-7."""


def exp(x: Any) -> Any:
    """Return e**x of float32 or float64, in float64: 3e-10 exact, and e**120 above 120."""
    wide = np.minimum(np.maximum(np.asarray(x, np.float64), -120.0), 120.0)
    k = (wide * _LOG2_E + _ROUNDS) - _ROUNDS
    rest = (wide - k * _LN2_HIGH) - k * _LN2_LOW
    real = np.where(np.isnan(k), 0.0, k)
    return _horner(rest, _EXP) * np.ldexp(1.0, real.astype(np.int32))


def expm1(x: Any) -> Any:
    """Return e**x - 1, in float64."""
    wide = np.asarray(x, np.float64)
    return np.where(np.abs(wide) < 0.25, _horner(wide, _EXPM1) * wide, exp(wide) - 1.0)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent, in float64."""
    wide = np.asarray(x, np.float64)
    large = np.copysign(1.0 - 2.0 / (exp(2.0 * np.abs(wide)) + 1.0), wide)
    return np.where(np.abs(wide) < 0.25, _horner(wide * wide, _TANH) * wide, large)


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + e**-x), in float64."""
    wide = np.asarray(x, np.float64)
    small = exp(-np.abs(wide))
    return np.where(wide >= 0, 1.0 / (1.0 + small), small / (1.0 + small))


def log(x: Any) -> Any:
    """Return the natural logarithm, in float64: 2e-12 exact."""
    wide = np.asarray(x, np.float64)
    positive = np.where((wide > 0) & (wide < np.inf), wide, 1.0)
    part, exponent = np.frexp(positive)
    low = part < 0.7071067811865476
    part, exponent = np.where(low, part * 2.0, part), np.where(low, exponent - 1, exponent)
    s = (part - 1.0) / (part + 1.0)
    result = exponent.astype(np.float64) * 0.6931471805599453 + 2.0 * s * _horner(s * s, _ATANH_OF_LOG)
    result = np.where(wide == 0, -np.inf, np.where(wide == np.inf, np.inf, result))
    return np.where((wide < 0) | np.isnan(wide), np.nan, result)


def softplus(x: Any) -> Any:
    """Return log(1 + e**x), in float64."""
    wide = np.asarray(x, np.float64)
    power = exp(-np.abs(wide))
    s = power / (2.0 + power)
    return np.maximum(wide, 0.0) + 2.0 * s * _horner(s * s, _ATANH)


def erf(x: Any) -> Any:
    """Return the error function, in float64."""
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    t = 1.0 / (1.0 + 0.5 * size)
    complement = t * exp(-size * size + _horner(t, _ERF))
    return np.sign(wide) * (1.0 - complement)


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return numpy's function with float32 computed in float64 and rounded once; a test's result stays boolean.

    The bits are IEEE's of float32: extremes, tests and roundings are exact, a root or reciprocal has bits to spare.
    """

    def apply(*arrays: np.ndarray, **settings: Any) -> Any:
        if any(array.dtype != np.float32 for array in arrays):
            return function(*arrays, **settings)
        result = function(*(array.astype(np.float64) for array in arrays), **settings)
        return result.astype(np.float32) if result.dtype == np.float64 else result

    return apply


def ieee(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return numpy's function with IEEE's bits for float32: on 32 bits, numpy's vectors of NEON are others.

    They take subnormal numbers for zero, and estimate roots and reciprocals. 64 bits have IEEE's.
    """
    return function if sys.maxsize > 1 << 32 else in_float64(function)


sqrt = ieee(np.sqrt)
"""The square root, float32 of float32: IEEE's bits."""


def sum_along(data: np.ndarray, axes: Sequence[int]) -> Any:
    """Return the sums over axes in float64, in the order of the elements; the axes stay, of size 1."""
    rest = [axis for axis in range(data.ndim) if axis not in axes]
    shape = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
    moved = data.transpose([*axes, *rest]).reshape(-1, *(data.shape[axis] for axis in rest))
    sums = np.zeros(moved.shape[1:], np.float64)
    if len(moved) > sums.size:
        sums = sums + np.add.accumulate(moved, axis=0, dtype=np.float64)[-1]
    else:
        for part in moved:
            sums = sums + part
    return sums.reshape(shape)


def product(left: np.ndarray, right: np.ndarray) -> Any:
    """Return the matrix product of float32, batches too: products and sums in float64, depth by depth."""
    if left.dtype != np.float32 or right.dtype != np.float32:
        return np.matmul(left, right)
    one, other = left[None] if left.ndim == 1 else left, right[:, None] if right.ndim == 1 else right
    if one.shape[-1] != other.shape[-2]:
        return np.matmul(left, right)  # numpy's message
    wide, second = one.astype(np.float64), other.astype(np.float64)
    batch = np.broadcast(np.empty(one.shape[:-2]), np.empty(other.shape[:-2])).shape
    total = np.zeros((*batch, one.shape[-2], other.shape[-1]), np.float64)
    for depth in range(one.shape[-1]):
        total += wide[..., depth : depth + 1] * second[..., depth : depth + 1, :]
    result = total.astype(np.float32)
    result = result[..., 0] if right.ndim == 1 else result
    return (
        result.reshape(result.shape[:-1] if right.ndim == 1 else (*batch, other.shape[-1]))
        if left.ndim == 1
        else result
    )


def _horner(x: Any, coefficients: Sequence[Any]) -> Any:
    total: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


POWER_OF_0 = 256.0
"""The power of 0 in a softmax. None is subnormal, then: NEON of 32-bit ARM takes those for zeros."""
_LANES, _BLOCK = 4, 64
_TURNS, _ROUND = np.float32(1.44269504), np.float32(12583047)
"""log2(e), and 1.5 * 2^23 + 127 + 8: the lowest bits of a number that it rounds are the exponent's."""
_LN2_PARTS = np.float32(0.693359375), np.float32(-2.12194440e-4)
_POWERS = [np.float32(each) for each in (0.0013814602, 0.0083687156, 0.041668389, 0.16666521, 0.49999994, 1, 1)]


def powers(x: np.ndarray) -> Any:
    """Return 256 * e**x of x up to 0, in float32: to 1.2 units of the last place; of less than -90, of -90."""
    clipped = np.maximum(x.astype(np.float32), np.float32(-90))
    turns = clipped * _TURNS + _ROUND
    k = turns - _ROUND
    rest = (clipped - k * _LN2_PARTS[0]) - k * _LN2_PARTS[1]
    return _horner(rest, _POWERS) * (turns.view(np.int32) << 23).view(np.float32)


def sum_of_powers(values: np.ndarray, axis: int) -> Any:
    """Return sums of float32 along an axis, which stays, of size 1.

    Of 64 every fourth adds up in float32, then the first and third of these sums and the second and fourth, then both.
    These add up in float64, in order.
    """
    moved = np.moveaxis(values, axis, 0)
    blocks = -(-len(moved) // _BLOCK)
    padded = np.zeros((blocks * _BLOCK, *moved.shape[1:]), np.float32)
    padded[: len(moved)] = moved
    steps = padded.reshape(blocks, _BLOCK // _LANES, _LANES, *moved.shape[1:])
    lanes = steps[:, 0]
    for step in range(1, _BLOCK // _LANES):
        lanes = lanes + steps[:, step]
    sums = (lanes[:, 0] + lanes[:, 2]) + (lanes[:, 1] + lanes[:, 3])
    return np.moveaxis(sum_along(sums, [0]), 0, axis)


TABLE_END, TABLE_STEPS = 12, 64
"""The table of sigmoids is from -12 to 12, with 64 steps a unit."""


def _sigmoid_table() -> np.ndarray:
    """Return the sigmoid at each step, and one more: float32."""
    values: np.ndarray = sigmoid(np.arange(-TABLE_END * TABLE_STEPS, TABLE_END * TABLE_STEPS + 2) / TABLE_STEPS)
    return values.astype(np.float32)


SIGMOIDS = _sigmoid_table()


def sigmoid_by_table(x: np.ndarray) -> Any:
    """Return the sigmoid, in float32, by lines between the table's steps: 3e-6 exact, besides rounding."""
    return _by_table(x, 1)


def tanh_by_table(x: np.ndarray) -> Any:
    """Return tanh(x) = 2 * sigmoid(2 * x) - 1, in float32, by the same table: 6e-6 exact, besides rounding."""
    return _by_table(x, 2) * np.float32(2) - np.float32(1)


def _by_table(x: np.ndarray, factor: int) -> Any:
    """Return the sigmoid of x times 1 or 2, by lines: each operation is one of float32."""
    end, steps, middle = (
        np.float32(value) for value in (TABLE_END / factor, TABLE_STEPS * factor, TABLE_END * TABLE_STEPS)
    )
    place = np.minimum(np.maximum(x.astype(np.float32), -end), end) * steps + middle
    whole = np.where(np.isnan(place), np.float32(0), place).astype(np.int32)
    low = SIGMOIDS[whole]
    return low + (place - whole.astype(np.float32)) * (SIGMOIDS[whole + 1] - low)
