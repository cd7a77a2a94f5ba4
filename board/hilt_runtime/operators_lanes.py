"""Concat, Pad and DepthToSpace in VTA's layout (N, C, H, W, batch, block), of channels that are no whole blocks.

`channels` names the channels of each input; lanes behind the last channel become zero.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np


def channels_of(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Sequence[int]:
    """Return the channels of each input. Raises ValueError if they are not as many as its blocks hold."""
    channels = [int(each) for each in attributes["channels"]]
    if len(channels) != len(inputs) or any(
        data.ndim != 6 or not 0 <= data.shape[1] * data.shape[5] - count < data.shape[5]
        for data, count in zip(inputs, channels)
    ):
        raise ValueError("channels that its inputs do not have")
    return channels


def _plain(data: Any, channels: int) -> Any:
    """Return a packed tensor as (N, C, H, W, batch)."""
    outer, inner, height, width, batch, block = data.shape
    return data.transpose(0, 1, 5, 2, 3, 4).reshape(outer, inner * block, height, width, batch)[:, :channels]


def _packed(data: Any, block: int) -> Any:
    """Return (N, C, H, W, batch) in blocks of channels."""
    outer, channels, height, width, batch = data.shape
    inner = -(-channels // block)
    whole = np.zeros((outer, inner * block, height, width, batch), data.dtype)
    whole[:, :channels] = data
    blocks = whole.reshape(outer, inner, block, height, width, batch)
    return np.ascontiguousarray(blocks.transpose(0, 1, 3, 4, 5, 2))


def concat_lanes(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Join packed tensors along the channels."""
    parts = [_plain(data, count) for data, count in zip(inputs, channels_of(inputs, attributes))]
    return _packed(np.concatenate(parts, axis=1), inputs[0].shape[5])


def pad_lanes(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Add channels of zeros behind a packed tensor's own: `pads` are those of (N, C, H, W), all others 0."""
    (channels,) = channels_of(inputs, attributes)
    data = _plain(inputs[0], channels)
    return _packed(np.pad(data, [(0, 0), (0, attributes["pads"][5]), *[(0, 0)] * 3]), inputs[0].shape[5])


def depth_to_space_lanes(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
    """Move blocks of a packed tensor's channels to rows and columns, the blocks outermost (DCR)."""
    (channels,), (rows, columns) = channels_of(inputs, attributes), attributes["block"]
    data = _plain(inputs[0], channels)
    outer, _, height, width, batch = data.shape
    depth = channels // (rows * columns)
    split = data.reshape(outer, rows, columns, depth, height, width, batch).transpose(0, 3, 4, 1, 5, 2, 6)
    return _packed(split.reshape(outer, depth, height * rows, width * columns, batch), inputs[0].shape[5])
