"""Normalizations of int8: whole numbers are summed exactly, each result is computed in float32."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

import numpy as np

MOST_COUNTED = 1 << 24
"""Elements of a mean at most: their sums, and the numerator of their variance, are exact in 64 bits."""


def normalization(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Normalize int8 (N, C, ...) or (..., C), or a packed tensor; see hilt.network.graph.

    Raises ValueError of data or factors that do not fit.
    """
    data, factors = np.asarray(inputs[0]), np.asarray(inputs[1], np.float32)
    channels, groups, (least, most) = factors.shape[1], attributes["groups"], attributes["clip"]
    order = _order(data.ndim, attributes["axis"])
    turned = data.transpose(order)
    first = 4 if data.ndim == 6 else 2
    images, room = turned.shape[: first // 2], turned.shape[first // 2 : first]
    rows = turned.reshape(math.prod(images), math.prod(room), math.prod(turned.shape[first:]))
    if data.dtype != np.int8 or not 0 < channels <= rows.shape[1] or channels % max(groups, 1):
        raise ValueError("a normalization needs int8 and two factors a channel")
    values = rows[:, :channels]
    means, inverses = _statistics(values.astype(np.int64), groups, attributes["epsilon"])
    made = (values.astype(np.float32) - means) * (inverses * factors[0][:, None]) + factors[1][:, None]
    limited = np.minimum(np.maximum(made, np.float32(least)), np.float32(most))
    whole = np.zeros(rows.shape, np.int8 if attributes["rounded"] else np.float32)
    whole[:, :channels] = np.rint(limited) if attributes["rounded"] else limited
    return np.ascontiguousarray(whole.reshape(turned.shape).transpose(np.argsort(order)))


def are_normal(factors: np.ndarray, epsilon: float) -> bool:
    """Tell whether no product and no sum is subnormal: NEON takes such floats for 0."""
    magnitudes = np.abs(factors[factors != 0])
    within = np.all((magnitudes >= 2.0**-40) & (magnitudes <= 2.0**40))
    return bool(within) and 2.0**-60 <= epsilon <= 2.0**60


def _order(rank: int, axis: int) -> Tuple[int, ...]:
    """Return the axes of a tensor in the order images, channels, pixels; a packed one has two of the first two."""
    if rank == 6:
        return (0, 4, 1, 5, 2, 3)
    axis %= rank
    return (0, axis, *(other for other in range(1, rank) if other != axis))


def _statistics(values: np.ndarray, groups: int, epsilon: float) -> Tuple[np.ndarray, np.ndarray]:
    """Return means of int64 (N, C, P), and one over the deviations, float32 (N, C, 1) or, of no groups, (N, 1, P)."""
    images, channels, pixels = values.shape
    if groups:
        over, count = values.reshape(images, groups, -1, 1), channels // groups * pixels
        sums, squares = over.sum(axis=2), np.square(over).sum(axis=2)
    else:
        count = channels
        sums, squares = values.sum(axis=1, keepdims=True), np.square(values).sum(axis=1, keepdims=True)
    variances = (count * squares - np.square(sums)) / (float(count) * float(count))
    means, inverses = (sums / count).astype(np.float32), (1 / np.sqrt(variances + epsilon)).astype(np.float32)
    if not groups:
        return means, inverses
    return np.repeat(means, channels // groups, axis=1), np.repeat(inverses, channels // groups, axis=1)


OPERATORS: Dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]] = {"normalization": normalization}
