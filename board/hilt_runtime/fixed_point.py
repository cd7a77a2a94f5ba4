"""Floats in fixed point: whole steps of a power of two, whose products with int8 have exact sums."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence

import numpy as np

from hilt_runtime.operators_integer import quantize

STEPS = 14
"""Bits of the steps that the largest value has, beside the sign."""
MOST_DEPTH = 1 << 20
"""Products of a sum of int8 at most: it is exact in float64."""
MOST_OFFSET = 255


def exponent_of(data: np.ndarray) -> int:
    """Return k of the steps 2^-k of data: its largest finite value is less than 2^14 of them."""
    return int(exponents_of(data.reshape(-1)))


def exponents_of(data: np.ndarray) -> Any:
    """Return `exponent_of` each line of data (..., length), as an array (...)."""
    magnitudes = np.abs(np.where(np.isfinite(data), data, 0))
    return STEPS - np.frexp(magnitudes.max(axis=-1, initial=0.0).astype(np.float64))[1]


def fixed_point(values: np.ndarray, exponent: Any) -> Any:
    """Return values in steps of 2^-exponent, clipped, rounded half to even, of NaN 0: whole numbers in float64."""
    scaled = np.ldexp(values.astype(np.float64), exponent)
    clipped = np.minimum(np.maximum(scaled, -(1 << STEPS)), 1 << STEPS)
    return np.rint(np.where(np.isnan(clipped), 0.0, clipped))


def factors_of(scales: np.ndarray, exponent: Any) -> Any:
    """Return the factor of the sums of rows of these scales, in float32: of less than 2^-100 it is 0.

    So no product is subnormal, which NEON would take for 0.
    """
    factors = np.ldexp(scales.astype(np.float64), -exponent)
    with np.errstate(over="ignore"):
        return np.where(np.abs(factors) < 2.0**-100, 0.0, factors).astype(np.float32)


def fixed_matmul(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Multiply float32 data (..., M, K) by lines of int8 (..., N, K); see hilt.network.graph.

    Raises ValueError of lines that do not fit.
    """
    data, lines = np.asarray(inputs[0]), np.asarray(inputs[1])
    if lines.dtype != np.int8 or lines.shape[-1] != data.shape[-1] or data.shape[-1] > MOST_DEPTH:
        raise ValueError("a matrix product in fixed point needs lines of int8 of the data's depth")
    exponents = exponents_of(data)[..., None]
    whole = np.swapaxes(lines, -1, -2).astype(np.float64) + attributes.get("offset", 0)
    sums = np.matmul(fixed_point(data, exponents), whole).astype(np.float32)
    made = sums * factors_of(np.asarray(attributes["scale"], np.float32), exponents)
    if attributes["turned"]:
        made = np.ascontiguousarray(np.swapaxes(made, -1, -2))
    return quantize([made], {"scale": attributes["step"]}) if "step" in attributes else made


OPERATORS: Dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]] = {"fixed_matmul": fixed_matmul}
