"""A PRelu's factors of channels as int8 weights of two products, one of which is its result, or why not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.lower_slopes import FARTHEST
from hilt.vta.layout import blocks

_STEPS_SHIFT = 15
"""The factors of a prelu node are in steps of 2^(left - 15)."""
_SHIFTS = np.arange(16)[:, None, None]
_WEIGHTS = np.arange(-127, 128)[:, None]


LOWERING_INPUT = 127
"""The input that lowers products of some channels by `FARTHEST`, from all lanes alike."""


class NoProductsError(ValueError):
    """Factors that int8 weights do not hold; the message says why in one line."""


@dataclass(frozen=True, eq=False)
class Products:
    """Two products of int8 data, one of which is a function of it: the larger one where its factor is of data above 0.

    Attributes:
        weights: int8 (2, C): the factors of data from 0 on, then those of data below 0.
        shifts: By how much both products are shifted right, rounded half up.
    """

    weights: NDArray[np.int8]
    shifts: tuple[int, int]

    @property
    def smaller(self) -> NDArray[np.bool_]:
        """Return in which channels (C,) the smaller product is the result."""
        upper, lower = _of_one_shift(self.weights.astype(np.int64), self.shifts)
        chosen: NDArray[np.bool_] = upper < lower
        return chosen

    def mixed(self, block: int) -> tuple[int, ...]:
        """Return the blocks of channels of which some take the smaller product."""
        return tuple(np.unique(np.flatnonzero(self.smaller) // block).tolist())

    @property
    def clips(self) -> bool:
        """Return whether a result leaves int8."""
        ends = self.weights.astype(np.int64) * np.array([[127], [-128]])
        shift = np.array(self.shifts)[:, None]
        results = (ends + (1 << shift >> 1)) >> shift
        return bool(results.min() < -128 or results.max() > 127)

    def weight_blocks(self, block: int) -> NDArray[np.int8]:
        """Return the weight blocks (2 or 3 * channel blocks, block, block): those of the upper factors first.

        The last third is there if a channel takes the smaller product.
        """
        channels = self.weights.shape[1]
        count = blocks(channels, block)
        whole, lowering = np.zeros((2, count * block), np.int8), np.zeros(count * block, np.int8)
        whole[:, :channels] = self.weights
        lowering[:channels] = -(FARTHEST // LOWERING_INPUT // block) * self.smaller
        made = np.zeros((2 * count, block, block), np.int8)
        made[:, np.arange(block), np.arange(block)] = whole.reshape(2 * count, block)
        if not lowering.any():
            return made
        return np.concatenate((made, np.tile(lowering.reshape(count, block, 1), block)))


def products_of_factors(factors: NDArray[np.int16], left: int) -> Products:
    """Return the products of a prelu node. Raises NoProductsError.

    Args:
        factors: int16 (2, C) in steps of 2^(left - 15), those of data from 0 on first.
        left: The shift.
    """
    steps = factors.astype(np.int64)
    shifts = []
    for line in steps:
        twos = int(np.bitwise_or.reduce(line))
        spare = min((twos & -twos).bit_length() - 1 if twos else _STEPS_SHIFT, _STEPS_SHIFT - left)
        shifts.append(_STEPS_SHIFT - left - spare)
        line >>= spare
    return _joined(steps, (shifts[0], shifts[1]))


def products_of_table(entries: NDArray[np.int8], channels: int) -> Products:
    """Return the products of a table (256,), the entry of -128 first, for so many channels. Raises NoProductsError."""
    values = np.arange(-128, 128)
    lines, shifts = [], []
    for chosen in (values >= 0, values < 0):
        made = (values[chosen] * _WEIGHTS + (1 << _SHIFTS >> 1)) >> _SHIFTS
        right = (np.clip(made, -128, 127) == entries[chosen]).all(axis=2)
        if not right.any():
            raise NoProductsError("its entries are no multiples of its data")
        shift, weight = np.argwhere(right)[0].tolist()
        lines.append(np.full(channels, weight - 127))
        shifts.append(shift)
    return _joined(np.stack(lines), (shifts[0], shifts[1]))


def _joined(weights: NDArray[np.int64], shifts: tuple[int, int]) -> Products:
    """Return products of one shift where int8 holds both, which saves an addition and a shift."""
    same = _of_one_shift(weights, shifts)
    if shifts[0] and np.abs(same).max() < 128:
        weights, shifts = same, (max(shifts), max(shifts))
    if np.abs(weights).max() > 127:
        raise NoProductsError("its factors have more than 7 bits, and VTA's weights are int8")
    return Products(weights.astype(np.int8), shifts)


def _of_one_shift(weights: NDArray[np.int64], shifts: tuple[int, int]) -> NDArray[np.int64]:
    """Return weights (2, C) in the steps of the larger shift."""
    same: NDArray[np.int64] = weights << (max(shifts) - np.array(shifts))[:, None]
    return same
