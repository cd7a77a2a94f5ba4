"""Two factors of int8 stand for each channel of a PRelu, if its values are such products."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.network.onnx_pixels import Factors, factors_of

BYTES = np.arange(256).astype(np.uint8).view(np.int8).astype(np.float32)


def values(positive: list[float], negative: list[float]) -> np.ndarray:
    """Return the values of int8 in steps, in the order of uint8, of channels with such slopes."""
    slopes = np.where(BYTES < 0, np.array(negative)[:, None], np.array(positive)[:, None])
    return (slopes * BYTES).astype(np.float32)


@pytest.mark.parametrize(
    ("positive", "negative", "left"),
    [
        ([1, 1, 1], [0.25, 0.0, -0.3], 1),
        ([0.5, 0.25], [0.99, 0.1], 0),
        ([2, 2], [0.3, -3.7], 2),
        ([15.9, 1], [0.001, 1], 4),
    ],
)
def test_factors_are_right_to_a_thirtieth_of_a_step(positive: list[float], negative: list[float], left: int) -> None:
    wanted = values(positive, negative)
    found = factors_of(wanted)
    assert found is not None and found.left == left and found.steps.dtype == np.int16
    both = found.steps.astype(np.float64) * 2.0 ** (left - 15)
    made = np.where(BYTES < 0, both[1, :, None], both[0, :, None]) * BYTES
    assert np.abs(made - wanted).max() < 1 / 30


@pytest.mark.parametrize("offset", [-255, -37, 1, 124])
def test_a_whole_number_may_be_added_to_all_channels(offset: int) -> None:
    wanted = values([1, 0.5], [0.25, -0.3])
    found, plain = factors_of(wanted + np.float32(offset)), factors_of(wanted)
    assert found is not None and plain is not None
    assert (found.offset, found.left, plain.offset) == (offset, plain.left, 0)
    np.testing.assert_array_equal(found.steps, plain.steps)


OTHERS = {
    "a large factor": values([17], [1]),
    "half a step more": values([1], [1]) + np.float32(0.5),
    "more than VTA adds": values([1], [1]) + 256,
    "other numbers of other channels": values([1, 1], [1, 1]) + np.float32([[1], [2]]),
    "no line": np.tanh(values([0.02], [0.02])) * 100,
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_other_values_have_none(changed: np.ndarray) -> None:
    assert factors_of(changed) is None
    for value in (np.nan, np.inf):
        broken = values([1, 1], [1, 1])
        broken[1, 127] = value
        assert factors_of(broken) is None


def test_zeros_have_factors_of_zero() -> None:
    assert factors_of(values([0.0], [0.0])) == Factors(pytest.approx(np.zeros((2, 1))), 0, 0)
