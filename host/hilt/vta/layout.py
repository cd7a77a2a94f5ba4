"""Tensors as they lie in the accelerator's memory (HARDWARE.md section 5), and back.

Channels and batch are padded with zeros up to whole blocks.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hilt.vta.parameters import VTAParameters

_Scalar = TypeVar("_Scalar", bound=np.generic)


def blocks(size: int, block: int) -> int:
    """Blocks that `size` channels or images fill, the last one perhaps in part."""
    return -(-size // block)


def _padded(array: NDArray[_Scalar], multiples: dict[int, int]) -> NDArray[_Scalar]:
    """`array` with zeros behind, so that each axis named is a whole multiple."""
    widths = [(0, -size % multiples.get(axis, 1)) for axis, size in enumerate(array.shape)]
    return np.pad(array, widths) if any(after for _, after in widths) else array


def pack_data(data: NDArray[_Scalar], parameters: VTAParameters) -> NDArray[_Scalar]:
    """(N, C, H, W) to (N/batch, C/block, H, W, batch, block), of any dtype."""
    batch, block = parameters.batch, parameters.block
    whole = _padded(data, {0: batch, 1: block})
    images, channels, height, width = whole.shape
    split = whole.reshape(images // batch, batch, channels // block, block, height, width)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def unpack_data(packed: NDArray[_Scalar], images: int, channels: int) -> NDArray[_Scalar]:
    """Return the first `images` and `channels` of pack_data's result: (N, C, H, W)."""
    outer, channel_blocks, height, width, batch, block = packed.shape
    whole = packed.transpose(0, 4, 1, 5, 2, 3).reshape(outer * batch, channel_blocks * block, height, width)
    return np.ascontiguousarray(whole[:images, :channels])


def pack_weights(weights: NDArray[_Scalar], parameters: VTAParameters) -> NDArray[_Scalar]:
    """(CO, CI, KH, KW) to (CO/block, CI/block, KH, KW, block out, block in)."""
    block = parameters.block
    whole = _padded(weights, {0: block, 1: block})
    out, into, height, width = whole.shape
    split = whole.reshape(out // block, block, into // block, block, height, width)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def unpack_weights(packed: NDArray[_Scalar], out_channels: int, in_channels: int) -> NDArray[_Scalar]:
    """Return the first `out_channels` and `in_channels` of pack_weights' result: (CO, CI, KH, KW)."""
    out, into, height, width, block, _ = packed.shape
    whole = packed.transpose(0, 4, 1, 5, 2, 3).reshape(out * block, into * block, height, width)
    return np.ascontiguousarray(whole[:out_channels, :in_channels])


def pack_bias(bias: NDArray[_Scalar], parameters: VTAParameters) -> NDArray[_Scalar]:
    """(CO,) to (CO/block, batch, block): one accumulator element per channel block, the same for every image."""
    whole = _padded(bias, {0: parameters.block}).reshape(-1, 1, parameters.block)
    return np.ascontiguousarray(np.repeat(whole, parameters.batch, axis=1))
