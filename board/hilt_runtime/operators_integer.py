"""hilt's integer operators in numpy: exact, with VTA's rounding, wrap and clip."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime import functions
from hilt_runtime.operators_lanes import concat_lanes, depth_to_space_lanes, pad_lanes

_EXACT_PRODUCTS = 1 << 10
"""int8 products (at most 2^14 each) whose sum float32 holds exactly (2^24)."""

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def conv2d(inputs: Inputs, attributes: Attributes) -> Any:
    """Convolve int8 data (N, C, H, W); see hilt.network.graph."""
    data, weights = _required(inputs, 0), _required(inputs, 1)
    data = _dilate(data, attributes.get("input_dilation", [1, 1]))
    top, left, bottom, right = attributes["pads"]
    if top or left or bottom or right:
        data = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)), mode="constant")
    sums = _convolve(data, weights, attributes["strides"], attributes.get("dilations", [1, 1]), attributes["groups"])
    return _epilogue(sums, inputs, attributes, (1, -1, 1, 1))


def dense(inputs: Inputs, attributes: Attributes) -> Any:
    """Multiply int8 data (M, K) by int8 weights (N, K)."""
    data, weights = _required(inputs, 0), _required(inputs, 1)
    sums = _product(data, weights.T)
    return _epilogue(sums, inputs, attributes, (1, -1))


def add(inputs: Inputs, attributes: Attributes) -> Any:
    """Add two int8 tensors after their left shifts."""
    shifts = attributes["left_shifts"]
    sums = np.left_shift(_required(inputs, 0).astype(np.int32), shifts[0])
    sums = sums + np.left_shift(_required(inputs, 1).astype(np.int32), shifts[1])
    return _narrow(sums, attributes["shift"], attributes["clip"])


def multiply(inputs: Inputs, attributes: Attributes) -> Any:
    """Multiply two int8 tensors, element by element, with constants added to the first and to the result.

    Packed tensors have the values of one of them, of one channel, in the first lane.
    """
    front, behind = attributes.get("offsets", (0, 0))
    factors = [_required(inputs, 0), _required(inputs, 1)]
    if "by_pixel" in attributes:
        factors[attributes["by_pixel"]] = factors[attributes["by_pixel"]][..., :1]
    product = (factors[0].astype(np.int32) + front) * factors[1].astype(np.int32)
    return _narrow(product, attributes["shift"], attributes["clip"], behind)


def max_pool(inputs: Inputs, attributes: Attributes) -> Any:
    """Return the largest int8 of each window."""
    data = np.pad(_required(inputs, 0), _around(inputs, attributes), mode="constant", constant_values=-128)
    taps = _taps(data, attributes["kernel"], attributes["strides"])
    largest = taps[0].copy()
    for tap in taps[1:]:
        np.maximum(largest, tap, out=largest)
    return largest


def average_pool(inputs: Inputs, attributes: Attributes) -> Any:
    """Return the rounded mean of each window; padding counts as zeros, and not at all where the divisor is 0."""
    sums, divisor = _sums(_required(inputs, 0), inputs, attributes), attributes["divisor"]
    if not divisor:
        one = np.ones_like(_required(inputs, 0)[(slice(1), slice(1), ..., *[slice(1)] * (sums.ndim - 4))])
        divisor = np.maximum(_sums(one, inputs, attributes), 1)
    return _mean(sums, attributes, divisor)


def _sums(data: np.ndarray, inputs: Inputs, attributes: Attributes) -> Any:
    """Return the int32 sums of each window of data with zeros around it."""
    padded = np.pad(data, _around(inputs, attributes), mode="constant")
    taps = _taps(padded, attributes["kernel"], attributes["strides"])
    sums = taps[0].astype(np.int32)
    for tap in taps[1:]:
        sums += tap
    return sums


def _around(inputs: Inputs, attributes: Attributes) -> List[Tuple[int, int]]:
    """Return the pads of each axis of (N, C, H, W), or of a packed tensor, whose first four axes are these."""
    top, left, bottom, right = attributes["pads"]
    return [(0, 0), (0, 0), (top, bottom), (left, right), *[(0, 0)] * (_required(inputs, 0).ndim - 4)]


def global_average_pool(inputs: Inputs, attributes: Attributes) -> Any:
    """Return the rounded mean of each channel: (N, C, 1, 1)."""
    sums = _required(inputs, 0).sum(axis=(2, 3), keepdims=True, dtype=np.int32)
    return _mean(sums, attributes, attributes["divisor"])


def _mean(sums: np.ndarray, attributes: Attributes, divisor: Any) -> Any:
    """Return int8 of int32 sums by divisor * 2^shift, rounded half up: float64 divides exactly where that matters."""
    clip, offset = attributes["clip"], attributes.get("offset", 0)
    if attributes["divisor"] == 1 and attributes["shift"] >= 0:
        return _narrow(sums, attributes["shift"], clip, offset)
    means = np.ldexp(sums.astype(np.float64), -attributes["shift"]) / divisor
    return np.clip(np.floor(means + 0.5) + offset, clip[0], clip[1]).astype(np.int8)


def table(inputs: Inputs, attributes: Attributes) -> Any:
    """Look each int8 up in a table of 256 entries, -128 first."""
    entries = np.roll(_required(inputs, 1), -128)  # by the bits of an int8, read as uint8
    return entries.take(_required(inputs, 0).view(np.uint8))


def pixel_table(inputs: Inputs, attributes: Attributes) -> Any:
    """Look each byte up in its channel's table of 256 entries: (C, 256), or (1, 256) for all channels."""
    data, entries = _required(inputs, 0).view(np.uint8), _required(inputs, 1)
    if len(entries) == 1:
        return entries[0].take(data)
    along = [1] * data.ndim
    along[attributes["axis"]] = len(entries)
    return entries.reshape(-1).take(data + 256 * np.arange(len(entries)).reshape(along))


def prelu(inputs: Inputs, attributes: Attributes) -> Any:
    """Multiply by a channel's factor of 2^-15: that of data from 0 on, or that of others; add the offset.

    Packed tensors too.
    """
    data, factors = _required(inputs, 0), _required(inputs, 1)
    along = [2, data.shape[1], *[1] * (data.ndim - 2)]
    if data.ndim == 6:
        along[5] = data.shape[5]
    whole = np.zeros((2, math.prod(along[1:])), np.int32)
    whole[:, : factors.shape[1]] = factors
    positive, negative = whole.reshape(along)
    products = (data.astype(np.int32) << attributes["left"]) * np.where(data < 0, negative, positive)
    return np.clip(((products + (1 << 14)) >> 15) + attributes.get("offset", 0), -128, 127).astype(np.int8)


def upsample(inputs: Inputs, attributes: Attributes) -> Any:
    """Repeat each row and column (N, C, H, W, ...)."""
    high, wide = attributes["factors"]
    return np.repeat(np.repeat(_required(inputs, 0), high, axis=2), wide, axis=3)


def interpolate(inputs: Inputs, attributes: Attributes) -> Any:
    """Resize (N, C, H, W) linearly by powers of two: each output lies between two neighbours of each axis."""
    sums, shift = _required(inputs, 0).astype(np.int32), 0
    for axis, factor in zip((2, 3), attributes["factors"]):
        if factor == 1:
            continue
        edges = [(0, 0)] * 4
        edges[axis] = (1, 1)
        around = np.pad(sums, edges, mode="edge")
        size = sums.shape[axis]
        below, here, above = (around.take(np.arange(first, first + size), axis) for first in range(3))
        made = []
        for place in range(factor):
            doubled = 2 * place + 1 - factor if attributes["centred"] else 2 * place
            made.append(here * (2 * factor - abs(doubled)) + (above if doubled > 0 else below) * abs(doubled))
        shape = list(sums.shape)
        shape[axis] *= factor
        sums, shift = np.stack(made, axis + 1).reshape(shape), shift + int(2 * factor).bit_length() - 1
    return ((sums + (1 << shift >> 1)) >> shift).astype(np.int8)


def concat(inputs: Inputs, attributes: Attributes) -> Any:
    """Join tensors along an axis; packed ones along channels that are no whole blocks."""
    if "channels" in attributes:
        return concat_lanes(inputs, attributes)
    return np.concatenate([tensor for tensor in inputs if tensor is not None], axis=attributes["axis"])


def reshape(inputs: Inputs, attributes: Attributes) -> Any:
    """Return the same elements in another shape."""
    return _required(inputs, 0).reshape(attributes["shape"])


def transpose(inputs: Inputs, attributes: Attributes) -> Any:
    """Permute the axes."""
    return np.array(_required(inputs, 0).transpose(attributes["perm"]), order="C")


def pad(inputs: Inputs, attributes: Attributes) -> Any:
    """Pad with one value or own elements; a packed tensor with channels that are no whole blocks, with zeros."""
    if "channels" in attributes:
        return pad_lanes(inputs, attributes)
    pads: List[int] = attributes["pads"]
    half = len(pads) // 2
    widths = list(zip(pads[:half], pads[half:]))
    if "mode" in attributes:
        return np.pad(_required(inputs, 0), widths, mode=attributes["mode"])
    return np.pad(_required(inputs, 0), widths, mode="constant", constant_values=attributes["value"])


def cut(inputs: Inputs, attributes: Attributes) -> Any:
    """Return a slice of a tensor."""
    data = _required(inputs, 0)
    index: List[slice] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(
        attributes["starts"], attributes["ends"], attributes["axes"], attributes["steps"]
    ):
        index[axis] = slice_of(start, end, step, data.shape[axis])
    return np.ascontiguousarray(data[tuple(index)])


def slice_of(start: int, end: int, step: int, size: int) -> slice:
    """Return ONNX's slice of an axis as numpy's: clamped, and going past the front when it runs backwards."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    last = min(max(end, -1), size - 1)
    return slice(min(max(start, 0), size - 1), None if last < 0 else last, step)


def depth_to_space(inputs: Inputs, attributes: Attributes) -> Any:
    """Move blocks of channels to rows and columns, of packed tensors too."""
    if "channels" in attributes:
        return depth_to_space_lanes(inputs, attributes)
    data = _required(inputs, 0)
    images, channels, height, width = data.shape
    rows, columns = attributes["block"]
    depth = channels // (rows * columns)
    if attributes["mode"] == "DCR":
        blocks = data.reshape(images, rows, columns, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = data.reshape(images, depth, rows, columns, height, width).transpose(0, 1, 4, 2, 5, 3)
    return np.ascontiguousarray(blocks).reshape(images, depth, height * rows, width * columns)


def softmax(inputs: Inputs, attributes: Attributes) -> Any:
    """Return float32 softmax of int8 data * scale: of 256 powers, counted."""
    data, axis = _required(inputs, 0), attributes["axis"]
    # intp: bincount of a processor of 32 bits counts no int64
    lines = np.moveaxis(data.max(axis=axis, keepdims=True).astype(np.intp) - data, axis, -1)
    powers, flat = softmax_powers(attributes["scale"]), lines.reshape(-1, data.shape[axis])
    results = np.empty(flat.shape, np.float32)
    for line, result in zip(flat, results):
        total = 0.0
        for count, power in zip(np.bincount(line, minlength=256).tolist(), powers.tolist()):
            total += count * power
        if attributes["logarithm"]:
            values = -np.arange(256) * np.float64(attributes["scale"]) - functions.log(total)
        else:
            values = powers.astype(np.float64) / total
        result[...] = values.astype(np.float32)[line]
    whole = np.moveaxis(results.reshape(lines.shape), -1, axis)
    return np.ascontiguousarray(whole).reshape(attributes["shape"])


def softmax_powers(scale: float) -> Any:
    """Return e ** (-k * scale) for k from 0 to 255, float32."""
    return functions.exp(-np.arange(256) * np.float64(scale)).astype(np.float32)


def quantize(inputs: Inputs, attributes: Attributes) -> Any:
    """Return int8 of float32 times a factor, rounded half to even; of NaN 0."""
    data = _required(inputs, 0)
    with np.errstate(over="ignore"):
        if "factor" in attributes:
            data = data * np.float32(attributes["factor"])
        steps = np.rint(data / np.float32(attributes["scale"]))
    np.clip(steps, -128, 127, out=steps)
    if np.isnan(steps.sum()):  # the bits of a cast NaN are the processor's choice
        steps[np.isnan(steps)] = 0
    return steps.astype(np.int8)


def dequantize(inputs: Inputs, attributes: Attributes) -> Any:
    """Return the float32 that int8 stands for."""
    return _required(inputs, 0).astype(np.float32) * np.float32(attributes["scale"])


def _required(inputs: Inputs, place: int) -> Any:
    tensor = inputs[place]
    assert tensor is not None
    return tensor


def _dilate(data: np.ndarray, dilation: Sequence[int]) -> Any:
    if max(dilation) == 1:
        return data
    images, channels, height, width = data.shape
    spread = np.zeros((images, channels, (height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1), data.dtype)
    spread[:, :, :: dilation[0], :: dilation[1]] = data
    return spread


def _taps(data: np.ndarray, kernel: Sequence[int], strides: Sequence[int]) -> Any:
    """Return for each position in the window the elements that all windows have there: views (N, C, OH, OW)."""
    height = (data.shape[2] - kernel[0]) // strides[0] + 1
    width = (data.shape[3] - kernel[1]) // strides[1] + 1
    return [
        data[
            :,
            :,
            row : row + (height - 1) * strides[0] + 1 : strides[0],
            column : column + (width - 1) * strides[1] + 1 : strides[1],
        ]
        for row in range(kernel[0])
        for column in range(kernel[1])
    ]


def windows(data: np.ndarray, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Any:
    """Return a view (N, C, OH, OW, KH, KW) of the windows of padded data (N, C, H, W)."""
    images, channels, height, width = data.shape
    out_height = (height - (kernel[0] - 1) * dilations[0] - 1) // strides[0] + 1
    out_width = (width - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
    image, channel, row, column = data.strides
    return np.lib.stride_tricks.as_strided(
        data,
        (images, channels, out_height, out_width, kernel[0], kernel[1]),
        (image, channel, row * strides[0], column * strides[1], row * dilations[0], column * dilations[1]),
        writeable=False,
    )


def _convolve(
    data: np.ndarray, weights: np.ndarray, strides: Sequence[int], dilations: Sequence[int], groups: int
) -> Any:
    """Return the int32 sums (N, CO, OH, OW)."""
    out_channels, depth = weights.shape[0], weights.shape[1]
    view = windows(data, weights.shape[2:], strides, dilations)
    images, _, height, width = view.shape[:4]
    if depth == 1 and out_channels == groups:  # depthwise: one product a tap, and no matrices
        sums = np.zeros((images, out_channels, height, width), np.int32)
        wide = data.astype(np.int32)
        view = windows(wide, weights.shape[2:], strides, dilations)
        for row in range(weights.shape[2]):
            for column in range(weights.shape[3]):
                sums += view[..., row, column] * weights[None, :, 0, row, column, None, None].astype(np.int32)
        return sums
    kernels = weights.reshape(groups, out_channels // groups, -1)
    sums = np.empty((images, groups, out_channels // groups, height * width), np.int32)
    for group in range(groups):
        part = view[:, group * depth : (group + 1) * depth].transpose(0, 1, 4, 5, 2, 3)
        columns = part.reshape(images, -1, height * width)
        for image in range(images):
            sums[image, group] = _product(kernels[group], columns[image])
    return sums.reshape(images, out_channels, height, width)


def _product(left: np.ndarray, right: np.ndarray) -> Any:
    """Multiply int8 matrices into int32, by float32 products that are exact."""
    total = np.zeros((left.shape[0], right.shape[1]), np.int32)
    for start in range(0, left.shape[1], _EXACT_PRODUCTS):
        part = slice(start, start + _EXACT_PRODUCTS)
        total += np.matmul(left[:, part].astype(np.float32), right[part].astype(np.float32)).astype(np.int32)
    return total


def _epilogue(sums: np.ndarray, inputs: Inputs, attributes: Attributes, shape: Sequence[int]) -> Any:
    """Add bias and residual, shift, clip; `shape` makes a list of one value a channel fit the sums."""
    bias = inputs[2] if len(inputs) > 2 else None
    residual = inputs[3] if len(inputs) > 3 else None
    if bias is not None:
        sums = sums + bias.astype(np.int32).reshape(shape)
    if residual is not None:
        shifts = np.asarray(attributes["residual_shift"], np.int32).reshape(shape)
        sums = sums + np.left_shift(residual.astype(np.int32), shifts)
    shift = np.asarray(attributes["shift"], np.int32)
    return _narrow(sums, shift.reshape(shape) if shift.size > 1 else int(shift[0]), attributes["clip"])


def _narrow(sums: np.ndarray, shift: Any, clip: Sequence[int], behind: int = 0) -> Any:
    """Return int8: half a step added, shifted right, a constant added behind, clipped."""
    amount = np.asarray(shift, np.int32)
    half = np.where(amount > 0, np.left_shift(np.int32(1), np.maximum(amount - 1, 0)), 0).astype(np.int32)
    shifted = np.right_shift(sums + half, amount)
    return np.clip(shifted + np.int32(behind), clip[0], clip[1]).astype(np.int8)


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "add": add,
    "average_pool": average_pool,
    "concat": concat,
    "conv2d": conv2d,
    "dense": dense,
    "depth_to_space": depth_to_space,
    "dequantize": dequantize,
    "global_average_pool": global_average_pool,
    "max_pool": max_pool,
    "multiply": multiply,
    "pad": pad,
    "quantize": quantize,
    "reshape": reshape,
    "slice": cut,
    "softmax": softmax,
    "pixel_table": pixel_table,
    "prelu": prelu,
    "table": table,
    "transpose": transpose,
    "upsample": upsample,
    "interpolate": interpolate,
}
