"""Tensors in VTA's packed layout, against its definition element by element."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hilt_runtime.layout import fold, pack, unpack


@pytest.mark.parametrize(
    ("width", "kernel", "stride", "left", "right"),
    [(5, 3, 1, 1, 1), (7, 4, 2, 0, 2), (2, 7, 1, 3, 3), (1, 5, 3, 4, 4), (2, 3, 4, 0, 9)],
)
def test_a_fold_puts_each_column_of_the_kernel_into_channels(
    width: int, kernel: int, stride: int, left: int, right: int
) -> None:
    columns = (width + left + right - kernel) // stride + 1
    data = np.random.default_rng(3).integers(-128, 128, (2, 3, 4, width)).astype(np.int8)
    packed = np.full((2, -(-3 * kernel // 8), 4, columns, 1, 8), 99, np.int8)
    fold(data, packed, kernel, stride, left)
    for image, row, column, channel in itertools.product(
        range(2), range(4), range(columns), range(packed.shape[1] * 8)
    ):
        offset, source = divmod(channel, 3)
        place = column * stride + offset - left
        inside = offset < kernel and 0 <= place < width
        expected = data[image, source, row, place] if inside else 0
        assert packed[image, channel // 8, row, column, 0, channel % 8] == expected


@pytest.mark.parametrize(("height", "lanes"), [(8, 2), (7, 2), (3, 4), (5, 4)])
def test_a_lane_has_a_band_of_one_image(height: int, lanes: int) -> None:
    data = np.random.default_rng(3).integers(-128, 128, (1, 11, height, 3)).astype(np.int8)
    band = -(-height // lanes)
    packed = np.full((1, 2, band, 3, lanes, 8), 99, np.int8)
    pack(data, packed)
    for channel, row, column, lane in itertools.product(range(16), range(band), range(3), range(lanes)):
        image = lane * band + row
        expected = data[0, channel, image, column] if channel < 11 and image < height else 0
        assert packed[0, channel // 8, row, column, lane, channel % 8] == expected
    assert np.array_equal(unpack(packed, data.shape), data)
