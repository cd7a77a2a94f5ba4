"""Factors of channels, of data from 0 on and of data below 0, as VTA's int8 weights, or why they are none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.lower_slopes import BOUND, Slopes
from hilt.vta.layout import blocks

BOUND_INPUT = 127
"""The input of all lanes whose products are the bounds of differences."""
_STEPS_SHIFT = 15
"""The factors of a prelu node are in steps of 2^(left - 15)."""
_SHIFTS = np.arange(16)[:, None, None]
_LARGEST = 127
_WEIGHTS = np.arange(-_LARGEST, _LARGEST + 1)[:, None]


class NoWeightsError(ValueError):
    """Factors that int8 weights do not hold; the message says why in one line."""


@dataclass(frozen=True, eq=False)
class ChannelFactors:
    """The two factors of each channel by which a function multiplies int8, rounding half up.

    Attributes:
        weights: int64 (2, C), within int8: the upper factors, of data from 0 on, then the lower ones.
        shifts: By how much the products of both are shifted right.
        offset: The number that is added to all results.
    """

    weights: NDArray[np.int64]
    shifts: tuple[int, int]
    offset: int = 0

    @property
    def rising(self) -> NDArray[np.bool_]:
        """Return which channels (C,) have the larger lower factor."""
        upper, lower = _of_one_shift(self.weights, self.shifts)
        chosen: NDArray[np.bool_] = upper < lower
        return chosen

    def work(self, images: int, pixels: int, block: int) -> Slopes:
        """Return the layer of so many blocks of images, of planes of so many elements, in blocks of channels."""
        shift = np.array(self.shifts)[:, None]
        ends = ((self.weights * np.array([[127], [-128]]) + (1 << shift >> 1)) >> shift) + self.offset
        chosen = (self.rising, (ends < -128).any(axis=0), (ends > 127).any(axis=0))
        mixed, below, above = (tuple(np.unique(np.flatnonzero(each) // block).tolist()) for each in chosen)
        deep = blocks(self.weights.shape[1], block)
        return Slopes(images * deep, pixels, deep, self.shifts, mixed, below, above, self.offset)

    def weight_blocks(self, block: int) -> NDArray[np.int8]:
        """Return the weight blocks (2 or 3 * channel blocks, block, block) of the layer: see Slopes."""
        channels = self.weights.shape[1]
        count, mixed = blocks(channels, block), bool(self.rising.any())
        lanes = np.zeros((2, count * block), np.int8)
        lanes[:, :channels] = self.weights
        lanes[0] -= lanes[1] * mixed
        made = np.zeros((2 * count, block, block), np.int8)
        made[:, np.arange(block), np.arange(block)] = lanes.reshape(2 * count, block)
        if not mixed:
            return made
        bounds = np.zeros(count * block, np.int8)
        bounds[:channels] = -(BOUND // BOUND_INPUT // block) * self.rising
        return np.concatenate((made, np.tile(bounds.reshape(count, block, 1), block)))


def factors_of_steps(steps: NDArray[np.int16], left: int, offset: int) -> ChannelFactors:
    """Return the factors of a prelu node. Raises NoWeightsError.

    Args:
        steps: int16 (2, C) in steps of 2^(left - 15), those of data from 0 on first.
        left: The shift.
        offset: The number that the node adds.
    """
    weights, shifts = steps.astype(np.int64), []
    for line in weights:
        twos = int(np.bitwise_or.reduce(line))
        spare = min((twos & -twos).bit_length() - 1 if twos else _STEPS_SHIFT, _STEPS_SHIFT - left)
        shifts.append(_STEPS_SHIFT - left - spare)
        line >>= spare
    return _as_weights(weights, (shifts[0], shifts[1]), offset)


def factors_of_table(entries: NDArray[np.int8], channels: int) -> ChannelFactors:
    """Return the factors that a table (256,), the entry of -128 first, stands for. Raises NoWeightsError."""
    values, offset = np.arange(-128, 128), int(entries[128])
    lines, shifts = [], []
    for chosen in (values >= 0, values < 0):
        made = (values[chosen] * _WEIGHTS + (1 << _SHIFTS >> 1)) >> _SHIFTS
        right = (np.clip(made + offset, -128, 127) == entries[chosen]).all(axis=2)
        if not right.any():
            raise NoWeightsError("its entries are no multiples of its data, and no constant more")
        shift, weight = np.argwhere(right)[0].tolist()
        lines.append(np.full(channels, weight - _LARGEST))
        shifts.append(shift)
    return _as_weights(np.stack(lines), (shifts[0], shifts[1]), offset)


def _as_weights(weights: NDArray[np.int64], shifts: tuple[int, int], offset: int) -> ChannelFactors:
    """Return factors as weights: of one shift where int8 holds them, which saves an addition, and may save a shift."""
    same = _of_one_shift(weights, shifts)
    if (same[0] < same[1]).any() or ((shifts[0] or offset) and np.abs(same).max() <= _LARGEST):
        weights, shifts = same, (max(shifts), max(shifts))
    if np.abs(weights).max() > _LARGEST:
        raise NoWeightsError("its factors have more than 7 bits, and VTA's weights are int8")
    if (same[0] < same[1]).any() and np.abs(same[0] - same[1]).max() > _LARGEST:
        raise NoWeightsError("its factors lie further apart than an int8 weight reaches")
    return ChannelFactors(weights, shifts, offset)


def _of_one_shift(weights: NDArray[np.int64], shifts: tuple[int, int]) -> NDArray[np.int64]:
    """Return weights (2, C) in the steps of the larger shift."""
    same: NDArray[np.int64] = weights << (max(shifts) - np.array(shifts))[:, None]
    return same
