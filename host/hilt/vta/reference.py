"""The numpy reference of a VTA's results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def conv2d(
    data: NDArray[np.int8],
    weights: NDArray[np.int8],
    bias: NDArray[np.int32] | None = None,
    *,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    shift: int = 0,
    clip: tuple[int, int] = (-128, 127),
    added: NDArray[np.int32] | None = None,
) -> NDArray[np.int8]:
    """int8 convolution of data (N, CI, H, W) with weights (CO, CI/groups, KH, KW): (N, CO, OH, OW).

    ((sum + bias + added) >> shift, arithmetic) clipped to `clip`, limits included; `added` is (N, CO, OH, OW). Sums
    are int32 and wrap as the accumulator does. Exact. Raises ValueError where the shapes do not fit each other.
    """
    sums = accumulate(data, weights, stride=stride, padding=padding, dilation=dilation, groups=groups)
    if bias is not None:
        if bias.shape != (weights.shape[0],):
            raise ValueError(f"a bias of shape {bias.shape} for {weights.shape[0]} output channels")
        sums = sums + bias.astype(np.int32)[:, None, None]
    if added is not None:
        sums = sums + added
    clipped: NDArray[np.int8] = np.clip(sums >> shift, clip[0], clip[1]).astype(np.int8)
    return clipped


def accumulate(
    data: NDArray[np.int8],
    weights: NDArray[np.int8],
    *,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> NDArray[np.int32]:
    """The int32 sums (N, CO, OH, OW) of conv2d, before bias, shift and clip."""
    images, in_channels, height, width = data.shape
    out_channels, group_channels, *kernel = weights.shape
    high, wide = ((taps - 1) * gap + 1 for taps, gap in zip(kernel, dilation, strict=True))
    if in_channels != group_channels * groups or out_channels % groups:
        raise ValueError(f"data {data.shape} and weights {weights.shape} do not make a convolution of {groups} groups")
    out_height = (height + 2 * padding[0] - high) // stride[0] + 1
    out_width = (width + 2 * padding[1] - wide) // stride[1] + 1
    if out_height < 1 or out_width < 1:
        raise ValueError(f"a kernel of {high}x{wide} is larger than the padded input of {data.shape}")

    padded = np.pad(data, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (high, wide), axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]][:, :, :out_height, :out_width]
    sums = np.empty((images, groups, out_channels // groups, out_height * out_width), dtype=np.int32)
    for group in range(groups):
        mine = windows[:, group * group_channels : (group + 1) * group_channels]
        columns = mine.transpose(0, 1, 4, 5, 2, 3).reshape(images, -1, out_height * out_width)
        kernels = weights.reshape(groups, out_channels // groups, -1)[group]
        sums[:, group] = _exact_product(kernels, columns)
    return sums.reshape(images, out_channels, out_height, out_width)


def _exact_product(kernels: NDArray[np.int8], columns: NDArray[np.int8]) -> NDArray[np.int32]:
    """(M, K) times (N, K, P) in int32.

    Floating-point products are BLAS-fast and exact while every sum stays below the mantissa, so K is cut into
    pieces: a product of int8 is at most 2^14, and float32 holds integers to 2^24.
    """
    depth = kernels.shape[1]
    shard = 1 << (24 - 14)
    total = np.zeros((columns.shape[0], kernels.shape[0], columns.shape[2]), dtype=np.int32)
    for start in range(0, depth, shard):
        taken = slice(start, start + shard)
        part = kernels[:, taken].astype(np.float32) @ columns[:, taken].astype(np.float32)
        total += part.astype(np.int32)
    return total
