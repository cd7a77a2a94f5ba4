"""hilt's integer operators as steps of the native engine. Each function returns the outputs it will write."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime.fixed_point import MOST_DEPTH
from hilt_runtime.integer_norm import MOST_COUNTED, are_normal
from hilt_runtime.native.steps import Builder, NotNativeError, batches_of, broadcast, copy, merged, padded
from hilt_runtime.operators_integer import softmax_powers

_MOST_COPIES = 1024
Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _int8(*arrays: Any) -> None:
    if any(array.dtype != np.int8 for array in arrays):
        raise NotNativeError("a tensor that is not int8")


def _table(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, entries = inputs[0], inputs[1]
    _int8(data)
    if entries.shape != (256,) or entries.dtype not in (np.int8, np.float32):
        raise NotNativeError("a table of other than 256 int8 or float32")
    out = builder.new(data.shape, entries.dtype)
    builder.step("table" if entries.dtype == np.int8 else "table_float", [data, entries, out], [data.size])
    return [out]


def _pixel_table(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, entries, axis = inputs[0], inputs[1], attributes["axis"]
    if data.dtype not in (np.uint8, np.int8) or not data.size:
        raise NotNativeError("data that is not of bytes")
    if entries.ndim != 2 or entries.shape[1] != 256 or entries.dtype != np.int8:
        raise NotNativeError("a table of other than 256 int8 a channel")
    out, alike = builder.new(data.shape, np.int8), len(entries) == 1
    inner = 1 if alike else math.prod(data.shape[axis + 1 :])
    builder.step("pixel_table", [data, entries, out], [data.size // len(entries) // inner, len(entries), inner])
    return [out]


def _prelu(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, factors = inputs[0], inputs[1]
    _int8(data)
    if not builder.is_constant(factors):
        raise NotNativeError("factors that are computed")
    if data.ndim < 2 or factors.dtype != np.int16 or factors.ndim != 2 or len(factors) != 2 or not data.size:
        raise NotNativeError("factors other than two int16 a channel")
    outer, groups, *pixels = data.shape
    lanes = pixels.pop() if data.ndim == 6 else 1
    if not 0 <= groups * lanes - factors.shape[1] < lanes:
        raise NotNativeError("factors other than two int16 a channel")
    whole = np.zeros((2, groups * lanes), np.int16)
    whole[:, : factors.shape[1]] = factors
    grouped = builder.constant(np.ascontiguousarray(whole.reshape(2, groups, lanes).transpose(1, 0, 2)))
    out = builder.new(data.shape, np.int8)
    form = [outer, groups, math.prod(pixels), lanes, attributes["left"], attributes.get("offset", 0)]
    builder.step("prelu", [data, grouped, out], form)
    return [out]


def _normalization(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, factors, groups = inputs[0], inputs[1], attributes["groups"]
    _int8(data)
    shape = _blocks(data.shape, attributes["axis"], by_pixel=not groups)
    whole = _whole_factors(builder, factors, *shape[1::2], epsilon=attributes["epsilon"])
    counted = shape[2] * factors.shape[1] // groups if groups else factors.shape[1]
    if not 0 < counted <= MOST_COUNTED:
        raise NotNativeError("means of no element, or of too many")
    means = _means(builder, data, whole, shape, factors.shape[1], attributes)
    out = builder.new(data.shape, np.int8 if attributes["rounded"] else np.float32)
    form = [0 if groups else 1, attributes["rounded"], 0, shape[2]]
    builder.step("normalize", [data, means, whole, out], [*shape, *form], attributes["clip"])
    return [out]


def _whole_factors(builder: Builder, factors: Any, blocks: int, lanes: int, epsilon: float) -> Any:
    """Return the factors of all channels of whole blocks: those behind the last have 0."""
    if not builder.is_constant(factors):
        raise NotNativeError("factors that are computed")
    if factors.dtype != np.float32 or len(factors) != 2 or not 0 <= blocks * lanes - factors.shape[1] < lanes:
        raise NotNativeError("factors other than two float32 a channel")
    if not are_normal(factors, epsilon):
        raise NotNativeError("factors so small or large that NEON takes results for 0")
    whole = np.zeros((2, blocks * lanes), np.float32)
    whole[:, : factors.shape[1]] = factors
    return builder.constant(whole)


def _means(
    builder: Builder, data: Any, factors: Any, shape: Sequence[int], channels: int, attributes: Attributes
) -> Any:
    """Add the steps that make the means and the factors of a normalization's elements; return their tensor."""
    (outer, blocks, inner, lanes), groups, epsilon = shape, attributes["groups"], [attributes["epsilon"]]
    if not groups:
        means = builder.new((2, outer, inner), np.float32)
        builder.step("pixel_means", [data, means], [*shape, channels, 0, inner], epsilon)
        return means
    sums = builder.new((outer, blocks * lanes, 2), np.int64)
    means = builder.new((2, outer, blocks * lanes), np.float32)
    builder.step("channel_sums", [data, sums], shape)
    builder.step("group_means", [sums, factors, means], [outer, blocks * lanes, channels, groups, inner], epsilon)
    return means


def _blocks(shape: Sequence[int], axis: int, by_pixel: bool) -> Tuple[int, int, int, int]:
    """Return images, blocks of channels, pixels, and channels that lie beside each other, of a tensor or a packed one.

    Raises NotNativeError of a packed tensor of several images beside each other that have means of their own.
    """
    if len(shape) == 6:
        images, blocks, height, width, batch, lanes = shape
        if batch > 1 and not by_pixel:
            raise NotNativeError("images beside each other")
        return images, blocks, height * width * batch, lanes
    axis %= len(shape)
    if by_pixel and axis == len(shape) - 1:
        return 1, 1, math.prod(shape[:-1]), shape[-1]
    if axis != 1:
        raise NotNativeError("channels of an image that do not lie first")
    return shape[0], shape[1], math.prod(shape[2:]), 1


def _quantize(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    scale, inverse, is_exact = quantising_factors(attributes)
    if data.dtype != np.float32 or not scale > 0 or not (is_exact or "factor" not in attributes):
        raise NotNativeError("data that is not float32, or a factor that no scale takes up exactly")
    out = builder.new(data.shape, np.int8)
    builder.step("quantize", [data, out], [data.size, is_exact], [scale, inverse])
    return [out]


def quantising_factors(attributes: Attributes) -> Tuple[float, float, bool]:
    """Return the scale of a quantisation, the number by which it multiplies, and if one product is exact.

    It is for a scale that is a power of two, far from the ends of float32: the bits of the factor stay.
    """
    scale, factor = (float(np.float32(attributes.get(name, 1))) for name in ("scale", "factor"))
    inverse = factor / scale if scale > 0 else 0.0
    is_exact = math.frexp(scale)[0] == 0.5 and all(
        2.0**-100 <= abs(each) <= 2.0**100 for each in (scale, factor, inverse)
    )
    return scale, inverse, is_exact


def _dequantize(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    _int8(inputs[0])
    out = builder.new(inputs[0].shape, np.float32)
    builder.step("dequantize", [inputs[0], out], [out.size], [float(np.float32(attributes["scale"]))])
    return [out]


def _pair(kernel: str) -> Callable[[Builder, Inputs, Attributes], List[Any]]:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        _int8(inputs[0], inputs[1])
        shape, strides = broadcast(inputs[:2])
        out = builder.new(shape, np.int8)
        if not out.size:
            raise NotNativeError("an empty tensor")
        if "by_pixel" in attributes:
            strides[attributes["by_pixel"]][-1] = 0
        sizes, (left, right) = merged(shape, *strides)
        front, behind = attributes.get("offsets", [0, 0])
        changes = attributes["left_shifts"] if kernel == "add" else [front, 0]
        numbers = [len(sizes), *padded(sizes), *padded(left), *padded(right), *changes]
        arrays = [inputs[0], inputs[1], out]
        if left[-1] == 0 and right[-1] == 1:  # the kernel is quicker with a lone right
            numbers = [len(sizes), *padded(sizes), *padded(right), *padded(left), *changes[::-1]]
            arrays = [inputs[1], inputs[0], out]
        builder.step(kernel, arrays, [*numbers, attributes["shift"], *attributes["clip"], behind])
        return [out]

    return plan


def _pool(kernel: str) -> Callable[[Builder, Inputs, Attributes], List[Any]]:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        data = inputs[0]
        _int8(data)
        images, channels, height, width, *lanes = data.shape
        whole = kernel == "global_average_pool"
        taps = [height, width] if whole else list(attributes["kernel"])
        strides = [1, 1] if whole else list(attributes["strides"])
        top, left, bottom, right = [0] * 4 if whole else attributes["pads"]
        rows = (height + top + bottom - taps[0]) // strides[0] + 1
        columns = (width + left + right - taps[1]) // strides[1] + 1
        if min(rows, columns) < 1:
            raise NotNativeError("a window that is larger than the data")
        out = builder.new((images, channels, rows, columns, *lanes), np.int8)
        mean = [attributes.get("divisor", 1), attributes.get("shift", 0), *attributes.get("clip", [-128, 127])]
        mean.append(attributes.get("offset", 0))
        shape = [images * channels, height, width, rows, columns]
        if lanes:
            numbers = [*shape, *taps, *strides, top, left, *mean, lanes[0] * lanes[1], kernel == "max_pool"]
            builder.step("pool_packed", [data, out], numbers)
            return [out]
        builder.step(kernel, [data, out], [*shape, *taps, *strides, top, left, *mean])
        return [out]

    return plan


def _channel(builder: Builder, values: Any, channels: int) -> Any:
    """Return one int32 a channel of a list of one or of all."""
    return builder.constant(np.ascontiguousarray(np.broadcast_to(np.asarray(values, np.int32), (channels,))))


def _epilogue(builder: Builder, inputs: Inputs, attributes: Attributes, channels: int, out: Any) -> List[Any]:
    """Return the buffers behind data and weights: bias, residual, shift, residual shift, target."""
    bias = inputs[2] if len(inputs) > 2 else None
    residual = inputs[3] if len(inputs) > 3 else None
    if bias is None:
        bias = _channel(builder, [0], channels)
    elif bias.dtype != np.int32:
        raise NotNativeError("a bias that is not int32")
    if residual is not None and (residual.shape != out.shape or residual.dtype != np.int8):
        raise NotNativeError("a residual of another shape")
    shift = _channel(builder, attributes["shift"], channels)
    left = _channel(builder, attributes.get("residual_shift", [0]), channels)
    return [bias, bias if residual is None else residual, shift, left, out]


def _conv2d(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, weights = inputs[0], inputs[1]
    _int8(data, weights)
    images, _, height, width = data.shape
    channels, depth, *kernel = weights.shape
    spread = list(attributes.get("input_dilation", [1, 1]))
    strides, dilations = list(attributes["strides"]), list(attributes.get("dilations", [1, 1]))
    top, left, bottom, right = attributes["pads"]
    rows = ((height - 1) * spread[0] + top + bottom - (kernel[0] - 1) * dilations[0]) // strides[0] + 1
    columns = ((width - 1) * spread[1] + left + right - (kernel[1] - 1) * dilations[1]) // strides[1] + 1
    if min(rows, columns, *data.shape) < 1:
        raise NotNativeError("a window that is larger than the data")
    out = builder.new((images, channels, rows, columns), np.int8)
    numbers = [*data.shape, channels, depth, *kernel, rows, columns, *strides, *dilations, top, left]
    residual = len(inputs) > 3 and inputs[3] is not None
    numbers += [attributes["groups"], *attributes["clip"], residual, *spread]
    builder.step("conv2d", [data, weights, *_epilogue(builder, inputs, attributes, channels, out)], numbers)
    return [out]


def _dense(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, weights = inputs[0], inputs[1]
    _int8(data, weights)
    if data.shape[1] != weights.shape[1]:
        raise NotNativeError("weights of another depth")
    out = builder.new((data.shape[0], weights.shape[0]), np.int8)
    residual = len(inputs) > 3 and inputs[3] is not None
    numbers = [*data.shape, weights.shape[0], *attributes["clip"], residual]
    builder.step("dense", [data, weights, *_epilogue(builder, inputs, attributes, weights.shape[0], out)], numbers)
    return [out]


def _softmax(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, axis = inputs[0], attributes["axis"] % inputs[0].ndim
    _int8(data)
    outer, inner = (int(np.prod(part, dtype=np.int64)) for part in (data.shape[:axis], data.shape[axis + 1 :]))
    if not data.size:
        raise NotNativeError("an empty tensor")
    out, powers = builder.new(data.shape, np.float32), builder.constant(softmax_powers(attributes["scale"]))
    if not data.flags.c_contiguous:
        data = _whole_rows(data)
    numbers = [attributes["logarithm"], outer, out.shape[axis], inner, 0, inner, data.size // outer]
    builder.step("softmax_int8", [data, powers, out], numbers, [attributes["scale"]])
    return [out.reshape(attributes["shape"])]


def _whole_rows(data: Any) -> Any:
    """Return rows of int8 with the bytes between them, of a view of their first elements. Raises NotNativeError."""
    if data.ndim != 2 or data.strides[1] != 1 or data.strides[0] < data.shape[1]:
        raise NotNativeError("a tensor is not contiguous")
    return np.lib.stride_tricks.as_strided(data, (len(data), data.strides[0]))


def _fixed_matmul(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, lines = inputs[0], inputs[1]
    _require_matrices(data, lines)
    (rows, depth), columns = data.shape[-2:], lines.shape[-2]
    batch, sizes, strides = batches_of(data, lines)
    turned = attributes["turned"]
    step, inverse, is_exact = quantising_factors({"scale": attributes.get("step", 0.0)})
    offset, shape = attributes.get("offset", 0), (columns, rows) if turned else (rows, columns)
    out = builder.new([*batch, *shape], np.int8 if step else np.float32)
    rooms = [
        builder.new((builder.threads, 2, width), kind) for width, kind in ((depth, np.int16), (columns, np.float32))
    ]
    numbers = [*sizes, rows, depth, columns, *strides[0], *strides[1], turned, bool(step), is_exact, offset]
    reals = [attributes["scale"], step, inverse]
    builder.step("fixed_matmul", [data, lines, *rooms, out], [*numbers, 0, math.prod(sizes) * rows], reals)
    return [out]


def _require_matrices(data: Any, lines: Any) -> None:
    """Raise NotNativeError unless data are matrices of floats, and lines of int8 as deep, with elements in both."""
    _int8(lines)
    if data.dtype != np.float32 or min(data.ndim, lines.ndim) < 2 or data.shape[-1] != lines.shape[-1]:
        raise NotNativeError("data that is not float32, or of another depth")
    if not data.size or not lines.size or data.shape[-1] > MOST_DEPTH:
        raise NotNativeError("an empty tensor, or too deep a one")


def _upsample(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    """Copy each row with its columns repeated; further rows are copies of the first."""
    data = inputs[0]
    images, channels, height, width, *lanes = data.shape
    high, wide = attributes["factors"]
    if not 1 <= high * wide <= _MOST_COPIES:
        raise NotNativeError("more than {} copies of an element".format(_MOST_COPIES))
    out = builder.new((images, channels, height * high, width * wide, *lanes), data.dtype)
    inner = int(np.prod(lanes, dtype=np.int64))
    planes, line = images * channels, width * wide * inner
    rows, made = [height * width * inner, width * inner], [height * high * line, high * line]
    pairs = inner == 1 and wide == 2
    if pairs:  # both are read from one place
        copy(builder, data, out, [planes, height, width, 2], (0, [*rows, 1, 0]), (0, [*made, 2, 1]))
    for column in range(0 if pairs else wide):
        places = (0, [*rows, inner, 1]), (column * inner, [*made, wide * inner, 1])
        copy(builder, data, out, [planes, height, width, inner], *places)
    for row in range(1, high):
        copy(builder, out, out, [planes, height, line], (0, [*made, 1]), (row * line, [*made, 1]))
    return [out]


def _interpolate(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    _int8(data)
    images, channels, height, width = data.shape
    high, wide = attributes["factors"]
    out = builder.new((images, channels, height * high, width * wide), np.int8)
    shift = int(4 * high * wide).bit_length() - 1
    numbers = [images * channels, height, width, high, wide, attributes["centred"], shift]
    builder.step("interpolate", [data, out], numbers)
    return [out]


PLANS: Dict[str, Callable[[Builder, Inputs, Attributes], List[Any]]] = {
    "add": _pair("add"),
    "average_pool": _pool("average_pool"),
    "conv2d": _conv2d,
    "dense": _dense,
    "dequantize": _dequantize,
    "fixed_matmul": _fixed_matmul,
    "global_average_pool": _pool("global_average_pool"),
    "max_pool": _pool("max_pool"),
    "multiply": _pair("multiply"),
    "pixel_table": _pixel_table,
    "normalization": _normalization,
    "prelu": _prelu,
    "quantize": _quantize,
    "softmax": _softmax,
    "table": _table,
    "upsample": _upsample,
    "interpolate": _interpolate,
}
