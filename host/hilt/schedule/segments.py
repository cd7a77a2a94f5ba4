"""Arithmetic on arrays of different lengths that lie one after another in one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def ragged(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return for each element of the concatenation its array and its place there. `lengths` has shape (arrays,)."""
    which = np.arange(len(lengths)).repeat(lengths)
    return which, np.arange(len(which)) - starts(lengths).repeat(lengths)


def starts(lengths: IntArray) -> IntArray:
    """Return the start of each array, (arrays,)."""
    begin: IntArray = lengths.cumsum() - lengths
    return begin


def divided(number: IntArray, by: IntArray) -> tuple[IntArray, IntArray]:
    """Return quotient and remainder; faster than divmod."""
    quotient = number // by
    return quotient, number - quotient * by
