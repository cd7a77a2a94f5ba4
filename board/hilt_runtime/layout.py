"""Tensors in VTA's packed layout, [N/batch][C/block][H][W][batch][block], and back."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Tuple

import numpy as np


def four(shape: Sequence[int]) -> Tuple[int, int, int, int]:
    """Return (N, C, H, W) of a shape; (M, K) is M images of one pixel."""
    images, channels, height, width = (*shape, 1, 1)[:4]
    return int(images), int(channels), int(height), int(width)


def channels_first(data: Any) -> Any:
    """Return a view (N, C, H, W) of a tensor (N, H, W, C)."""
    return data.transpose(0, 3, 1, 2)


def bands(height: int, lanes: int) -> int:
    """Return the rows of each band of one image, the last one perhaps in part."""
    return -(-height // lanes)


def pack(data: Any, packed: Any) -> None:
    """Write an int8 tensor in VTA's layout.

    (N, C, H, W) or (M, K) goes into `packed` (N/batch, C/block, H, W, batch, block), with zeros after the tensor's
    channels and images. One image goes into a lower `packed` in bands: lane k has the rows from k * height on.
    """
    data = _in_bands(data, packed)
    images, channels, height, width = four(data.shape)
    outer, inner, _, _, batch, block = packed.shape
    if (outer * batch, inner * block) != (images, channels):
        whole = np.zeros((outer * batch, inner * block, height, width), dtype=data.dtype)
        whole[:images, :channels] = data.reshape(images, channels, height, width)
    else:
        whole = data
    split = whole.reshape(outer, batch, inner, block, height, width)
    packed[...] = split.transpose(0, 2, 4, 5, 1, 3)


def fold(data: Any, packed: Any, kernel: int, stride: int, left: int, rows: Optional[Mapping[str, int]] = None) -> None:
    """Write an int8 tensor (N, C, H, W) into `packed` with a kernel's columns as channels.

    Channel k * C + c of column j is channel c of column j * stride + k - left, zero outside of the tensor. With `rows`
    the tensor is `rows_as_channels` of it.
    """
    data = _in_bands(data if rows is None else rows_as_channels(data, **rows), packed)
    images, channels, _, width = data.shape
    batch, block = packed.shape[4:]
    columns = packed.shape[3]
    packed[...] = 0
    for offset in range(kernel):
        begin = max(0, -((offset - left) // stride))
        end = min(columns, (width - 1 + left - offset) // stride + 1)
        if end <= begin:  # in padding alone
            continue
        first = begin * stride + offset - left
        for image in range(images):
            outer, inner = divmod(image, batch)
            for channel in range(channels):
                place, lane = divmod(offset * channels + channel, block)
                source = data[image, channel, :, first : first + (end - begin) * stride : stride]
                packed[outer, place, :, begin:end, inner, lane] = source[:, : end - begin]


def rows_as_channels(data: Any, kernel: int, stride: int, top: int, count: int) -> Any:
    """Return a tensor (N, C, H, W) with a kernel's rows as channels: (N, kernel * C, count, W).

    Channel r * C + c of row i is channel c of row i * stride + r - top, zero outside of the tensor.
    """
    images, channels, height, width = four(data.shape)
    made = np.zeros((images, kernel, channels, count, width), dtype=data.dtype)
    for offset in range(kernel):
        begin, end, first = rows_inside(height, offset - top, stride, count)
        if begin < end:
            made[:, offset, :, begin:end] = data[:, :, first : first + (end - begin - 1) * stride + 1 : stride]
    return made.reshape(images, kernel * channels, count, width)


def rows_inside(height: int, shift: int, stride: int, count: int) -> Tuple[int, int, int]:
    """Return the first of `count` rows i whose row i * stride + shift is one of `height`, their end, and that row."""
    begin = max(0, -(shift // stride))
    return begin, min(count, (height - 1 - shift) // stride + 1), begin * stride + shift


def _in_bands(data: Any, packed: Any) -> Any:
    """Return one image as an image for each of its bands, if `packed` is lower than it; else the tensor itself."""
    images, channels, height, width = four(data.shape)
    band, lanes = packed.shape[2], packed.shape[4]
    if height == band:
        return data
    whole = np.zeros((images * channels, lanes * band, width), dtype=data.dtype)
    whole[:, :height] = data.reshape(images * channels, height, width)
    return whole.reshape(channels, lanes, band, width).transpose(1, 0, 2, 3)


def unpack(packed: Any, shape: Sequence[int]) -> Any:
    """Return the tensor of `shape` that lies in `packed`."""
    images, channels, height, width = four(shape)
    outer, inner, band, _, batch, block = packed.shape
    if height != band:
        image = packed[0].transpose(0, 4, 3, 1, 2).reshape(inner * block, batch * band, width)
        return np.array(image[:channels, :height], order="C").reshape(tuple(shape))
    whole = packed.transpose(0, 4, 1, 5, 2, 3).reshape(outer * batch, inner * block, height, width)
    return np.array(whole[:images, :channels], order="C").reshape(tuple(shape))  # no view of the memory
