"""Concat, Pad and DepthToSpace in VTA's layout (hilt_runtime.operators_lanes) as copies of some lanes of each pixel."""

from __future__ import annotations

import math
from typing import Any, Iterator, List, Mapping, Sequence, Tuple

from hilt_runtime.native.steps import Builder, NotNativeError, copy, strides_of
from hilt_runtime.operators_lanes import channels_of

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]
_ITEMS = {4: "i4", 8: "i8", 16: "i8", 32: "i8"}
"""The type of an item by the lanes that every run is a multiple of."""


def concat_lanes(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    """Add the copies of a Concat along channels."""
    channels = channels_of(inputs, attributes)
    outer, _, *pixels, block = inputs[0].shape
    if any((data.shape[0], *data.shape[2:], data.dtype) != (outer, *pixels, block, inputs[0].dtype) for data in inputs):
        raise NotNativeError("parts of different types")
    out = _zeros(builder, (outer, -(-sum(channels) // block), *pixels, block), inputs[0].dtype, sum(channels))
    item = _item(block, channels)
    with builder.at_once():
        start = 0
        for data, count in zip(inputs, channels):
            _copy_pixels(builder, data, out, item, (0, start, count))
            start += count
    return [out]


def pad_lanes(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    """Add the copies of a tensor whose last channels are zeros."""
    (channels,), (data,) = channels_of(inputs, attributes), inputs
    outer, inner, *pixels, block = data.shape
    blocks = -(-(channels + attributes["pads"][5]) // block)
    out = _zeros(builder, (outer, blocks, *pixels, block), data.dtype, channels if blocks == inner else 1)
    with builder.at_once():
        _copy_pixels(builder, data, out, _item(block, [channels]), (0, 0, channels))
    return [out]


def depth_to_space_lanes(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    """Add the copies of a DepthToSpace, its blocks outermost."""
    (channels,), (rows, columns) = channels_of(inputs, attributes), attributes["block"]
    (data,) = inputs
    outer, _, height, width, batch, block = data.shape
    depth, rest = divmod(channels, rows * columns)
    if rest:
        raise NotNativeError("channels that are no whole blocks")
    made = (height * rows, width * columns, batch)
    out = _zeros(builder, (outer, -(-depth // block), *made, block), data.dtype, depth)
    item = _item(block, [depth])
    with builder.at_once():
        for part in range(rows * columns):
            places = _Places((height, width, batch), made, (rows, columns), divmod(part, columns))
            for run in _runs(part * depth, 0, depth, block):
                _copy_lanes(builder, data, out, item, run, places)
    return [out]


class _Places:
    """The places of a source's pixels (H, W, batch) among those of a target."""

    def __init__(
        self, source: Sequence[int], target: Sequence[int], steps: Sequence[int], first: Sequence[int]
    ) -> None:
        self.source = tuple(source)
        self.count = math.prod(source), math.prod(target)
        row, column, _ = strides_of(target)
        self.strides = (row * steps[0], column * steps[1], 1)
        self.offset = row * first[0] + column * first[1]


def _zeros(builder: Builder, shape: Sequence[int], dtype: Any, channels: int) -> Any:
    out = builder.new(shape, dtype)
    if channels % shape[-1]:
        builder.step("fill", [out], [1, out.size, 0])
    return out


def _item(block: int, channels: Sequence[int]) -> int:
    """Return the lanes that are moved at once."""
    lanes = math.gcd(block, *channels) if len(channels) > 1 else math.gcd(block, channels[0])
    if lanes not in _ITEMS:
        raise NotNativeError("channels that are no multiples of four")
    return min(lanes, 8)


def _runs(source: int, target: int, count: int, block: int) -> Iterator[Tuple[int, int, int]]:
    """Yield first channels of source and target, and how many lie in one block of both."""
    end = source + count
    while source < end:
        lanes = min(end - source, block - source % block, block - target % block)
        yield source, target, lanes
        source, target = source + lanes, target + lanes


def _copy_pixels(builder: Builder, data: Any, out: Any, item: int, run: Tuple[int, int, int]) -> None:
    """Add the copies of channels to the same pixels: from the first of `data`, to the first of `out`, how many."""
    pixels, block = data.shape[2:5], data.shape[5]
    for each in _runs(*run, block):
        _copy_lanes(builder, data, out, item, each, _Places(pixels, pixels, (1, 1), (0, 0)))


def _copy_lanes(builder: Builder, data: Any, out: Any, item: int, run: Tuple[int, int, int], places: _Places) -> None:
    """Add the copy of a run of channels of all pixels."""
    source, target, lanes = run
    block = data.shape[5]
    one, other = (array.reshape(-1).view(_ITEMS[item]) for array in (data, out))
    line = block // item
    sizes = (data.shape[0], *places.source, lanes // item)
    whole = [array.shape[1] * count * line for array, count in zip((data, out), places.count)]
    first = (source // block * places.count[0] * block + source % block) // item
    second = (target // block * places.count[1] + places.offset) * line + target % block // item
    read = (whole[0], *(step * line for step in strides_of(places.source)), 1)
    write = (whole[1], *(step * line for step in places.strides), 1)
    copy(builder, one, other, sizes, (first, read), (second, write))
