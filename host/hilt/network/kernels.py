"""Kernels of convolutions with and without the zeros of their dilation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def spread(weights: NDArray[Any], dilation: Sequence[int]) -> NDArray[Any]:
    """Return weights (CO, CI, KH, KW) with the zeros of a dilation between their taps."""
    if max(dilation) == 1:
        return weights
    high, wide = ((taps - 1) * gap + 1 for taps, gap in zip(weights.shape[2:], dilation, strict=True))
    whole = np.zeros((*weights.shape[:2], high, wide), dtype=weights.dtype)
    whole[:, :, :: dilation[0], :: dilation[1]] = weights
    return whole


def gathered(weights: NDArray[Any]) -> tuple[NDArray[Any], tuple[int, int]]:
    """Return weights (CO, CI, KH, KW) without rows and columns of zeros at equal distances, and the dilation left."""
    down, across = _gap(weights.any(axis=(0, 1, 3))), _gap(weights.any(axis=(0, 1, 2)))
    return weights[:, :, ::down, ::across], (down, across)


def _gap(taken: Any) -> int:
    """Return the widest distance of taps that meets all taken places of an axis and both its ends."""
    return max(math.gcd(len(taken) - 1, *np.flatnonzero(taken).tolist()), 1) if taken.any() else 1
