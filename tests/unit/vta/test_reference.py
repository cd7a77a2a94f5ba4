"""The fast reference against loops that follow the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hilt.vta.reference import accumulate, conv2d


def naive(
    data: NDArray[np.int8],
    weights: NDArray[np.int8],
    stride: tuple[int, int],
    padding: tuple[int, int],
    groups: int,
) -> NDArray[np.int64]:
    n, _, h, w = data.shape
    co, group_channels, kh, kw = weights.shape
    oh, ow = (h + 2 * padding[0] - kh) // stride[0] + 1, (w + 2 * padding[1] - kw) // stride[1] + 1
    sums = np.zeros((n, co, oh, ow), dtype=np.int64)
    for image, out, y, x in np.ndindex(sums.shape):
        for channel, ky, kx in np.ndindex(group_channels, kh, kw):
            row, column = y * stride[0] + ky - padding[0], x * stride[1] + kx - padding[1]
            if 0 <= row < h and 0 <= column < w:
                into = out // (co // groups) * group_channels + channel
                sums[image, out, y, x] += int(data[image, into, row, column]) * int(weights[out, channel, ky, kx])
    return sums


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(3, 6), st.integers(3, 6), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.integers(1, 2),
)
def test_sums_equal_the_definition(
    seed: int,
    shape: tuple[int, int, int, int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    groups: int,
) -> None:
    n, ci, h, w, co = shape
    generator = np.random.default_rng(seed)
    data = generator.integers(-128, 128, (n, ci * groups, h, w)).astype(np.int8)
    weights = generator.integers(-128, 128, (co * groups, ci, *kernel)).astype(np.int8)
    sums = accumulate(data, weights, stride=stride, padding=padding, groups=groups)
    assert np.array_equal(sums, naive(data, weights, stride, padding, groups))


def test_sums_are_exact_where_float32_would_not_be() -> None:
    data = np.full((1, 2048, 2, 2), -128, dtype=np.int8)
    weights = np.full((1, 2048, 1, 1), -128, dtype=np.int8)
    data[0, -1], weights[0, -1] = 1, 1
    assert accumulate(data, weights)[0, 0, 0, 0] == 2047 * 16384 + 1


def test_shift_is_arithmetic_and_comes_after_the_bias_and_before_the_clip() -> None:
    data = np.array([[[[3]]]], dtype=np.int8)
    weights = np.array([[[[-5]]], [[[5]]]], dtype=np.int8)
    bias = np.array([-2, 1000], dtype=np.int32)
    out = conv2d(data, weights, bias, shift=2, clip=(-100, 100))
    assert out.ravel().tolist() == [-5, 100]  # (-15 - 2) >> 2 rounds down; (15 + 1000) >> 2 is clipped


def test_shapes_that_do_not_fit_are_refused() -> None:
    data, weights = np.zeros((1, 4, 3, 3), np.int8), np.zeros((2, 3, 1, 1), np.int8)
    with pytest.raises(ValueError, match="do not make a convolution of 1 groups"):
        conv2d(data, weights)
    with pytest.raises(ValueError, match="larger than the padded input"):
        conv2d(data, np.zeros((1, 4, 5, 5), np.int8))
    with pytest.raises(ValueError, match=r"bias of shape \(3,\)"):
        conv2d(data, np.zeros((2, 4, 1, 1), np.int8), np.zeros(3, np.int32))
