"""One image as an image for each of its bands, and back; rows as channels: in steps of the native engine."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime.layout import bands, channels_first, four, rows_inside
from hilt_runtime.native.steps import Builder, NotNativeError, copy


def apart(builder: Builder, image: Any, band: int, lanes: int, last: bool) -> Any:
    """Add copies of an image's bands, and return them as images of `band` rows. Rows past the image are not written.

    Raises NotNativeError for a tensor that has no such bands. `last`: its channels are last, as those of the result.
    """
    _, channels, rows, columns = _image(channels_first(image).shape if last else image.shape, band, lanes)
    made = builder.new((lanes, band, columns, channels) if last else (lanes, channels, band, columns), np.int8)
    planes, across = (1, columns * channels) if last else (channels, columns)
    for lane in range(lanes):
        whole, part = _places(lane, planes, rows, band, across)
        copy(builder, image, made, _sizes(lane, planes, rows, band, across), whole, part)
    return made


def rows_as_channels(builder: Builder, image: Any, rows: Mapping[str, int], last: bool) -> Any:
    """Add copies of a tensor's rows, and return it with a kernel's rows as channels (hilt_runtime.layout).

    `last`: its channels are last, as those of the result.
    """
    images, channels, height, width = four(channels_first(image).shape if last else image.shape)
    kernel, stride, top, count = (rows[name] for name in ("kernel", "stride", "top", "count"))
    many = kernel * channels
    made = builder.new((images, count, width, many) if last else (images, many, count, width), np.int8)
    for offset in range(kernel):
        begin, end, first = rows_inside(height, offset - top, stride, count)
        there = max(0, end - begin)
        if last:
            line = width * channels
            sizes = (images, there, width, channels)
            reads = (first * line, (height * line, stride * line, channels, 1))
            writes = (begin * width * many + offset * channels, (count * width * many, width * many, many, 1))
        else:
            sizes = (images, channels, there, width)
            reads = (first * width, (channels * height * width, height * width, stride * width, 1))
            plane = count * width
            writes = (offset * channels * plane + begin * width, (many * plane, plane, width, 1))
        copy(builder, image, made, sizes, reads, writes)
    return made


def joined(builder: Builder, parts: Any, shape: Sequence[int]) -> Any:
    """Add copies of images, the bands of one image, to that image, and return it. Raises NotNativeError."""
    lanes, channels, band, columns = parts.shape
    rows = _image(shape, band, lanes)[2]
    out = builder.new(shape, np.int8)
    for lane in range(lanes):
        whole, part = _places(lane, channels, rows, band, columns)
        copy(builder, parts, out, _sizes(lane, channels, rows, band, columns), part, whole)
    return out


def _image(shape: Sequence[int], band: int, lanes: int) -> Tuple[int, int, int, int]:
    images, channels, rows, columns = four(shape)
    if images != 1 or bands(rows, lanes) != band:
        raise NotNativeError("a tensor of another size than its buffer")
    return images, channels, rows, columns


def _sizes(lane: int, planes: int, rows: int, band: int, across: int) -> Tuple[int, int]:
    """Return the planes of a lane's band, and the elements of each that the image has."""
    return planes, max(0, min(band, rows - lane * band)) * across


_Place = Tuple[int, Tuple[int, int]]


def _places(lane: int, planes: int, rows: int, band: int, across: int) -> Tuple[_Place, _Place]:
    """Return where a lane's band begins in the image and in the bands, and how far its planes are from each other."""
    return (lane * band * across, (rows * across, 1)), (lane * planes * band * across, (band * across, 1))
