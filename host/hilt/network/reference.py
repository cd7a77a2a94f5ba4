"""The reference that boards are held to: every tensor of a graph, by other code than the one that runs there.

Integer operators are computed here in int64 and float64 products that are exact, tap by tap, then wrapped to int32.
Operators of ONNX run by `hilt_runtime.operators`, which the tests hold against ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import PAD_VALUE, Graph, GraphError, Node
from hilt_runtime import operators

Array = NDArray[Any]
Inputs = Sequence[Array | None]


def evaluate(
    graph: Graph,
    feeds: Mapping[str, Array],
    board: Mapping[str, Any] | None = None,
    on_node: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Array]:
    """Return every tensor of a graph for given inputs.

    Args:
        graph: The graph.
        feeds: One array for each input, of its shape and type.
        board: A board's tensors, which nodes read in place of the reference's own. A difference is then seen in the
            node that makes it alone: two processors may sum floats in another order, and round them to other integers.
        on_node: Is called with the nodes that were computed, and all of them.

    Raises:
        ValueError: An input is missing or has another shape or type.
    """
    values: dict[str, Array] = dict(graph.constants)
    values.update(_checked_feeds(graph, feeds))
    read = dict(values)
    for done, node in enumerate(graph.nodes):
        on_node(done, len(graph.nodes))
        inputs = [read[name] if name else None for name in node.inputs]
        for name, made in zip(node.outputs, evaluate_node(node, inputs), strict=False):
            _require_declared(graph, node, name, made)
            values[name], read[name] = made, _as_seen(name, made, board or {})
    return {name: value for name, value in values.items() if name in graph.tensors}


def _checked_feeds(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the graph's inputs. Raises ValueError if one is missing or has another shape or type."""
    found = {}
    for name in graph.inputs:
        wanted = graph.tensors[name]
        if name not in feeds:
            raise ValueError(f"input {name} is missing; {graph.name} reads {', '.join(graph.inputs)}")
        given = feeds[name]
        if given.shape != wanted.shape or given.dtype != wanted.dtype:
            raise ValueError(
                f"input {name} is {given.dtype} {given.shape}, and {graph.name} reads {wanted.dtype} {wanted.shape}"
            )
        found[name] = given
    return found


def _as_seen(name: str, made: Array, board: Mapping[str, Any]) -> Array:
    """Return the board's tensor of a name where it has the shape and type of `made`, else `made`."""
    if name not in board:
        return made
    seen = np.asarray(board[name])
    return seen if seen.shape == made.shape and seen.dtype == made.dtype else made


def _require_declared(graph: Graph, node: Node, name: str, made: Array) -> None:
    declared = graph.tensors.get(name)
    if declared is not None and (made.shape != tuple(declared.shape) or made.dtype != declared.dtype):
        raise GraphError(
            f"node {node.name} ({node.op}) makes {name} as {made.dtype} {made.shape}, "
            f"and the model declares {declared.dtype} {tuple(declared.shape)}"
        )


def evaluate_node(node: Node, inputs: Inputs) -> list[Array]:
    """Return the outputs of one node. Raises GraphError if it has a form that hilt does not know."""
    function = _OPERATORS.get(node.op)
    if function is not None:
        return [function(inputs, node.attributes)]
    try:
        with np.errstate(all="ignore"):
            return operators.run(node.op, inputs, node.attributes)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise GraphError(f"node {node.name} ({node.op}) cannot be computed: {error}") from error


def rounded(sums: Array, shift: Any) -> Array:
    """Return int32 sums (as int64) plus half a step, wrapped, shifted right."""
    amount = np.asarray(shift, np.int64)
    half = np.where(amount > 0, 1 << np.maximum(amount - 1, 0), 0)
    shifted: Array = _wrapped(sums + half) >> amount
    return shifted


def _wrapped(sums: Array) -> Array:
    """Return int64 as VTA's int32 accumulators hold it."""
    wrapped: Array = sums.astype(np.int64).astype(np.int32).astype(np.int64)
    return wrapped


def _clipped(sums: Array, attributes: Mapping[str, Any]) -> Array:
    low, high = attributes["clip"]
    return np.asarray(np.minimum(np.maximum(sums, low), high), np.int8)


def _given(inputs: Inputs, place: int) -> Array | None:
    return inputs[place] if len(inputs) > place else None


def _data(inputs: Inputs, place: int = 0) -> Array:
    value = inputs[place]
    assert value is not None
    return value


def _conv2d(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data, weights = _data(inputs), _data(inputs, 1)
    images, channels, height, width = data.shape
    spread_height, spread_width = attributes.get("input_dilation", [1, 1])
    top, left, bottom, right = attributes["pads"]
    rows, columns = (height - 1) * spread_height + 1, (width - 1) * spread_width + 1
    whole_image = (images, channels, top + rows + bottom, left + columns + right)
    padded = np.full(whole_image, attributes.get(PAD_VALUE, 0), np.float64)
    padded[:, :, top : top + rows : spread_height, left : left + columns : spread_width] = data
    stride, dilation, groups = attributes["strides"], attributes.get("dilations", [1, 1]), attributes["groups"]
    out_channels, depth, kernel_height, kernel_width = weights.shape
    out_height = (padded.shape[2] - (kernel_height - 1) * dilation[0] - 1) // stride[0] + 1
    out_width = (padded.shape[3] - (kernel_width - 1) * dilation[1] - 1) // stride[1] + 1
    sums = np.zeros((images, groups, out_channels // groups, out_height * out_width), np.float64)
    kernels = weights.reshape(groups, out_channels // groups, depth, kernel_height, kernel_width).astype(np.float64)
    for row in range(kernel_height):
        for column in range(kernel_width):
            first, second = row * dilation[0], column * dilation[1]
            tap = padded[
                :, :,
                first : first + (out_height - 1) * stride[0] + 1 : stride[0],
                second : second + (out_width - 1) * stride[1] + 1 : stride[1],
            ]  # fmt: skip
            grouped = tap.reshape(images, groups, depth, out_height * out_width)
            sums += np.matmul(kernels[:, :, :, row, column], grouped)
    whole = sums.reshape(images, out_channels, out_height, out_width).astype(np.int64)
    return _finish(whole, inputs, attributes, (1, -1, 1, 1))


def _dense(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    product = _data(inputs).astype(np.float64) @ _data(inputs, 1).astype(np.float64).T
    return _finish(product.astype(np.int64), inputs, attributes, (1, -1))


def _finish(sums: Array, inputs: Inputs, attributes: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    """Add bias and residual, shift and clip."""
    bias, residual = _given(inputs, 2), _given(inputs, 3)
    if bias is not None:
        sums = sums + bias.astype(np.int64).reshape(shape)
    if residual is not None:
        given = np.zeros(sums.shape, np.int64)
        given[:, : residual.shape[1]] = residual
        sums = sums + (given << np.asarray(attributes["residual_shift"]).reshape(shape))
    return _clipped(rounded(sums, np.asarray(attributes["shift"]).reshape(shape)), attributes)


def _add(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    left, right = attributes["left_shifts"]
    sums = (_data(inputs).astype(np.int64) << left) + (_data(inputs, 1).astype(np.int64) << right)
    return _clipped(rounded(sums, attributes["shift"]), attributes)


def _multiply(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    front, behind = attributes.get("offsets", (0, 0))
    product = (_data(inputs).astype(np.int64) + front) * _data(inputs, 1).astype(np.int64)
    return _clipped(rounded(product, attributes["shift"]) + behind, attributes)


def _windows(inputs: Inputs, attributes: Mapping[str, Any], fill: int) -> Array:
    """Return the windows (N, C, OH, OW, KH, KW) of padded data."""
    top, left, bottom, right = attributes["pads"]
    padded = np.pad(
        _data(inputs).astype(np.int64), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill
    )
    kernel, strides = tuple(attributes["kernel"]), attributes["strides"]
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
    return view[:, :, :: strides[0], :: strides[1]]


def _max_pool(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    largest: Array = _windows(inputs, attributes, -128).max(axis=(4, 5)).astype(np.int8)
    return largest


def _average_pool(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    sums, divisor = _windows(inputs, attributes, 0).sum(axis=(4, 5)), np.int64(attributes["divisor"])
    if not divisor:
        divisor = _windows([np.ones_like(_data(inputs))], attributes, 0).sum(axis=(4, 5)).clip(1)
    return _mean(sums, attributes, divisor)


def _global_average_pool(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    return _mean(_data(inputs).astype(np.int64).sum(axis=(2, 3), keepdims=True), attributes, attributes["divisor"])


def _mean(sums: Array, attributes: Mapping[str, Any], divisor: Any) -> Array:
    """Divide int64 sums by divisor * 2^shift, rounded half up, and add the offset."""
    numerator = sums << max(1 - attributes["shift"], 0)
    denominator = divisor << max(attributes["shift"] - 1, 0)
    return _clipped(((numerator // denominator + 1) >> 1) + attributes.get("offset", 0), attributes)


def _table(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    return _data(inputs, 1)[_data(inputs).astype(np.int64) + 128]


def _pixel_table(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data, table = _data(inputs), _data(inputs, 1)
    along = [-1 if axis == attributes["axis"] else 1 for axis in range(data.ndim)]
    found: Array = table[np.arange(len(table)).reshape(along), data.astype(np.int64) & 255]
    return found


def _prelu(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data, factors = _data(inputs).astype(np.int64), _data(inputs, 1).astype(np.int64)
    made = np.empty(data.shape, np.int8)
    for channel in range(data.shape[1]):
        values = data[:, channel] << attributes["left"]
        products = values * factors[(values < 0).astype(np.int64), channel]
        made[:, channel] = np.clip(np.floor(products / 2**15 + 0.5) + attributes.get("offset", 0), -128, 127)
    return made


def _concat(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    axis = attributes["axis"]
    parts = [part for part in inputs if part is not None]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    whole = np.zeros(shape, parts[0].dtype)
    start = 0
    for part in parts:
        index: list[slice] = [slice(None)] * whole.ndim
        index[axis] = slice(start, start + part.shape[axis])
        whole[tuple(index)] = part
        start += part.shape[axis]
    return whole


def _reshape(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    return np.array(_data(inputs).reshape(-1)).reshape(attributes["shape"])


def _transpose(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data, perm = _data(inputs), attributes["perm"]
    whole = np.empty([data.shape[axis] for axis in perm], data.dtype)
    whole[...] = np.moveaxis(data, perm, range(data.ndim))
    return whole


def _pad(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data, pads = _data(inputs), attributes["pads"]
    begins, ends = pads[: data.ndim], pads[data.ndim :]
    if "mode" in attributes:
        return _repeated(data, begins, ends, attributes["mode"])
    shape = [begin + size + end for begin, size, end in zip(begins, data.shape, ends, strict=True)]
    whole = np.full(shape, attributes["value"], data.dtype)
    whole[tuple(slice(begin, begin + size) for begin, size in zip(begins, data.shape, strict=True))] = data
    return whole


def _repeated(data: Array, begins: Sequence[int], ends: Sequence[int], mode: str) -> Array:
    """Return data padded with its own elements: those before the first are the first, or its neighbours in turn."""
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        last = data.shape[axis] - 1
        places = np.arange(-begin, last + 1 + end)
        if mode == "edge" or last == 0:
            places = np.clip(places, 0, last)
        else:
            places = last - np.abs(last - np.abs(places) % (2 * last))
        data = data.take(places, axis=axis)
    return data


def _slice(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data = _data(inputs)
    for start, end, axis, step in zip(*(attributes[key] for key in ("starts", "ends", "axes", "steps")), strict=True):
        size = data.shape[axis]
        first = max(min(start + size if start < 0 else start, size if step > 0 else size - 1), 0)
        last = max(min(end + size if end < 0 else end, size), 0 if step > 0 else -1)
        data = np.take(data, range(first, last, step), axis=axis)
    return data


def _depth_to_space(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data = _data(inputs)
    rows, columns = attributes["block"]
    depth = data.shape[1] // (rows * columns)
    whole = np.empty((data.shape[0], depth, data.shape[2] * rows, data.shape[3] * columns), data.dtype)
    for row in range(rows):
        for column in range(columns):
            phase = row * columns + column
            deep = attributes["mode"] == "DCR"
            part = data[:, phase * depth : (phase + 1) * depth] if deep else data[:, phase :: rows * columns]
            whole[:, :, row::rows, column::columns] = part
    return whole


def _softmax(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    real = _data(inputs).astype(np.float64) * attributes["scale"]
    centred = real - real.max(axis=attributes["axis"], keepdims=True)
    sums = np.exp(centred).sum(axis=attributes["axis"], keepdims=True)
    result: Array = (centred - np.log(sums) if attributes["logarithm"] else np.exp(centred) / sums).astype(np.float32)
    return result.reshape(attributes["shape"])


def _counted_sum(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    places, table = (np.asarray(each) for each in inputs[:2])
    taken = table.astype(np.float64)[places.reshape(attributes["rows"], -1)]
    result: Array = taken.sum(axis=0).astype(np.float32)
    return result.reshape(attributes["shape"])


def _fixed_matmul(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data, lines = _data(inputs).astype(np.float64), _data(inputs, 1).astype(np.float64) + attributes.get("offset", 0)
    largest = np.abs(np.where(np.isfinite(data), data, 0)).max(axis=-1, keepdims=True, initial=0)
    step = np.exp2(np.frexp(largest)[1] - 14.0)
    rounded_data = np.rint(np.minimum(np.maximum(np.where(np.isnan(data), 0, data / step), -(2.0**14)), 2.0**14))
    sums = np.einsum("...mk,...nk->...mn", rounded_data, lines).astype(np.float32)
    factors = step * np.float32(attributes["scale"])
    made = sums * np.where(np.abs(factors) < 2.0**-100, 0, factors).astype(np.float32)
    made = np.moveaxis(made, -1, -2).copy() if attributes["turned"] else made
    return _quantize([made], {"scale": attributes["step"]}) if "step" in attributes else made


def _normalization(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    images, factors = np.moveaxis(_data(inputs), attributes["axis"], 1), _data(inputs, 1).astype(np.float32)
    made = np.empty(images.shape, np.float32)
    over = 0 if attributes["groups"] == 0 else None
    for image, normal in zip(images, made, strict=True):
        for channels in np.split(np.arange(image.shape[0]), attributes["groups"] or 1):
            part = image[channels].astype(np.float64)
            count = part.size if over is None else len(part)
            spread = count * np.square(part).sum(axis=over) - np.square(part.sum(axis=over))
            mean, inverse = part.mean(axis=over), 1 / np.sqrt(spread / count**2 + attributes["epsilon"])
            along = (2, -1, *[1] * (part.ndim - 1))
            factor, added = factors[:, channels].reshape(along)
            slope = np.float32(inverse) * factor
            normal[channels] = (image[channels].astype(np.float32) - np.float32(mean)) * slope + added
    least, most = (np.float32(each) for each in attributes["clip"])
    limited = np.clip(np.moveaxis(made, 1, attributes["axis"]), least, most)
    return np.ascontiguousarray(np.rint(limited).astype(np.int8) if attributes["rounded"] else limited)


def _upsample(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    high, wide = attributes["factors"]
    data = _data(inputs)
    rows, columns = np.arange(data.shape[2] * high) // high, np.arange(data.shape[3] * wide) // wide
    return data[:, :, rows][:, :, :, columns]


def _interpolate(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    """Sum each output's pixels by their distances, counted in halves of an output pixel's size."""
    sums, whole = _data(inputs).astype(np.int64), 1
    for axis, factor in zip((2, 3), attributes["factors"], strict=True):
        size, begin = sums.shape[axis], (1 - factor) if attributes["centred"] else 0
        places = 2 * np.arange(size * factor) + begin
        pixels, parts = np.divmod(places, 2 * factor)
        near, far = (np.clip(pixels + offset, 0, size - 1) for offset in (0, 1))
        parts = parts.reshape([-1 if each == axis else 1 for each in range(4)])
        sums = sums.take(near, axis) * (2 * factor - parts) + sums.take(far, axis) * parts
        whole *= 2 * factor
    return np.asarray(rounded(sums, whole.bit_length() - 1), np.int8)


def _quantize(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    data = _data(inputs).astype(np.float32)
    with np.errstate(over="ignore"):
        scaled = data * np.float32(attributes.get("factor", 1)) / np.float32(attributes["scale"])
    scaled = np.where(np.isnan(scaled), np.float32(0), scaled)
    return np.asarray(np.minimum(np.maximum(np.rint(scaled), -128), 127), np.int8)


def _dequantize(inputs: Inputs, attributes: Mapping[str, Any]) -> Array:
    real: Array = np.ldexp(_data(inputs).astype(np.float32), round(math.log2(attributes["scale"])))
    return real.astype(np.float32)


_OPERATORS: dict[str, Callable[[Inputs, Mapping[str, Any]], Array]] = {
    "add": _add,
    "average_pool": _average_pool,
    "concat": _concat,
    "conv2d": _conv2d,
    "counted_sum": _counted_sum,
    "dense": _dense,
    "depth_to_space": _depth_to_space,
    "dequantize": _dequantize,
    "fixed_matmul": _fixed_matmul,
    "global_average_pool": _global_average_pool,
    "max_pool": _max_pool,
    "multiply": _multiply,
    "pad": _pad,
    "quantize": _quantize,
    "reshape": _reshape,
    "slice": _slice,
    "softmax": _softmax,
    "pixel_table": _pixel_table,
    "normalization": _normalization,
    "prelu": _prelu,
    "table": _table,
    "transpose": _transpose,
    "upsample": _upsample,
    "interpolate": _interpolate,
}
