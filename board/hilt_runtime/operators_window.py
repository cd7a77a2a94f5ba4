"""ONNX's convolutions and pooling in numpy, on floats or, for MaxPool, any type."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from hilt_runtime import functions
from hilt_runtime.operators_integer import windows
from hilt_runtime.operators_reduce import largest, mean

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _first(inputs: Inputs) -> Any:
    tensor = inputs[0]
    assert tensor is not None
    return tensor


def pads_of(
    attributes: Attributes, size: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> List[int]:
    """Return the pads of a window operator, all begins then all ends, with auto_pad resolved."""
    mode = attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return list(attributes.get("pads", [0] * (2 * len(kernel))))
    if mode == "VALID":
        return [0] * (2 * len(kernel))
    begins, ends = [], []
    for length, taps, stride, dilation in zip(size, kernel, strides, dilations):
        total = max((-(-length // stride) - 1) * stride + (taps - 1) * dilation + 1 - length, 0)
        begins.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
        ends.append(total - begins[-1])
    return begins + ends


def _planar(data: np.ndarray) -> Any:
    """Return data (N, C, H, W); one-dimensional data gets a height of 1."""
    return data[:, :, None, :] if data.ndim == 3 else data


def _pairs(values: Sequence[int], fill: int) -> List[int]:
    return [fill, *values] if len(values) == 1 else list(values)


def window_geometry(
    data: np.ndarray, attributes: Attributes, kernel: Sequence[int]
) -> Tuple[List[int], List[int], List[int], List[int]]:
    """Return kernel, strides, dilations (height, width) and pads (top, left, bottom, right)."""
    rank = len(kernel)
    strides = list(attributes.get("strides", [1] * rank))
    dilations = list(attributes.get("dilations", [1] * rank))
    pads = pads_of(attributes, data.shape[2:], kernel, strides, dilations)
    if rank == 1:
        pads = [0, pads[0], 0, pads[1]]
    return _pairs(kernel, 1), _pairs(strides, 1), _pairs(dilations, 1), pads


def _conv(inputs: Inputs, attributes: Attributes) -> Any:
    data, weights = _first(inputs), np.asarray(inputs[1])
    kernel, strides, dilations, pads = window_geometry(data, attributes, weights.shape[2:])
    flat = data.ndim == 3
    groups = attributes.get("group", 1)
    out_channels, depth = weights.shape[:2]
    padded = np.pad(_planar(data), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), mode="constant")
    view = windows(padded, kernel, strides, dilations)
    images, _, height, width = view.shape[:4]
    kernels = weights.reshape(groups, out_channels // groups, -1)
    result = np.empty((images, groups, out_channels // groups, height * width), data.dtype)
    for group in range(groups):
        part = view[:, group * depth : (group + 1) * depth].transpose(0, 1, 4, 5, 2, 3)
        result[:, group] = functions.product(kernels[group], part.reshape(images, -1, height * width))
    result = result.reshape(images, out_channels, height, width)
    if len(inputs) > 2 and inputs[2] is not None:
        result = result + inputs[2].reshape(1, -1, 1, 1)
    return result[:, :, 0] if flat else result


def _conv_transpose(inputs: Inputs, attributes: Attributes) -> Any:
    data, weights = _first(inputs), np.asarray(inputs[1])
    if data.ndim != 4:
        raise ValueError("ConvTranspose of {} dimensions is not known; hilt computes images".format(data.ndim - 2))
    groups = attributes.get("group", 1)
    kernel = weights.shape[2:]
    strides = attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    top, left, bottom, right = transposed_pads(attributes, data.shape[2:], kernel)
    depth, outputs = data.shape[1] // groups, weights.shape[1]
    height = (data.shape[2] - 1) * strides[0] + (kernel[0] - 1) * dilations[0] + 1
    width = (data.shape[3] - 1) * strides[1] + (kernel[1] - 1) * dilations[1] + 1
    extra = attributes.get("output_padding", [0, 0])
    behind = [extra[0] + max(-bottom, 0), extra[1] + max(-right, 0)]
    result = np.zeros((data.shape[0], groups * outputs, height + behind[0], width + behind[1]), data.dtype)
    for group in range(groups):
        part = data[:, group * depth : (group + 1) * depth]
        kernels = weights[group * depth : (group + 1) * depth]
        for row in range(kernel[0]):
            for column in range(kernel[1]):
                product = _mixed(part, kernels[:, :, row, column])
                first, second = row * dilations[0], column * dilations[1]
                result[
                    :,
                    group * outputs : (group + 1) * outputs,
                    first : first + (data.shape[2] - 1) * strides[0] + 1 : strides[0],
                    second : second + (data.shape[3] - 1) * strides[1] + 1 : strides[1],
                ] += product
    result = result[:, :, top : result.shape[2] - max(bottom, 0), left : result.shape[3] - max(right, 0)]
    if len(inputs) > 2 and inputs[2] is not None:
        result = result + inputs[2].reshape(1, -1, 1, 1)
    return np.ascontiguousarray(result)


def _mixed(data: np.ndarray, weights: np.ndarray) -> Any:
    """Return channels (N, O, H, W) that are sums of data (N, C, H, W) by weights (C, O)."""
    images, channels, height, width = data.shape
    return functions.product(weights.T, data.reshape(images, channels, -1)).reshape(images, -1, height, width)


def transposed_pads(attributes: Attributes, size: Sequence[int], kernel: Sequence[int]) -> List[int]:
    """Return top, left, bottom, right of a ConvTranspose, from pads, auto_pad or output_shape.

    Bottom and right are negative where output_shape asks for more rows and columns than the kernel reaches.
    """
    rank = len(kernel)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    extra = attributes.get("output_padding", [0] * rank)
    mode = attributes.get("auto_pad", "NOTSET")
    wanted = list(attributes.get("output_shape", []))[-rank:]
    if not wanted and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [length * stride for length, stride in zip(size, strides)]
    if not wanted:
        return [0] * (2 * rank) if mode == "VALID" else list(attributes.get("pads", [0] * (2 * rank)))
    begins, ends = [], []
    for axis in range(rank):
        full = strides[axis] * (size[axis] - 1) + extra[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        if full < wanted[axis]:
            begins.append(0)
            ends.append(full - wanted[axis])
            continue
        total = full - wanted[axis]
        # An odd one is in front, except with SAME_UPPER.
        begins.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
        ends.append(total - begins[-1])
    return begins + ends


def _output_size(length: int, taps: int, stride: int, ceil: bool) -> int:
    """Return the windows of an axis; one that would start in the padding behind the data is left out."""
    return (-(-(length - taps) // stride) if ceil else (length - taps) // stride) + 1


class PoolGeometry(NamedTuple):
    """A pool's window, each (height, width); pads are top, left, bottom, right, and `behind` the pads of ceil."""

    kernel: List[int]
    strides: List[int]
    dilations: List[int]
    pads: List[int]
    behind: List[int]
    outputs: List[int]


def pool_geometry(data: np.ndarray, attributes: Attributes) -> PoolGeometry:
    """Return the windows of a pool over data (N, C, W) or (N, C, H, W)."""
    kernel, strides, dilations, pads = window_geometry(data, attributes, attributes["kernel_shape"])
    size = _planar(data).shape[2:]
    ceil = bool(attributes.get("ceil_mode", 0))
    behind, outputs = [], []
    for axis in (0, 1):
        taps = (kernel[axis] - 1) * dilations[axis] + 1
        length = size[axis] + pads[axis] + pads[2 + axis]
        count = _output_size(length, taps, strides[axis], ceil)
        if ceil and (count - 1) * strides[axis] >= size[axis] + pads[axis]:
            count -= 1
        behind.append(max((count - 1) * strides[axis] + taps - length, 0))
        outputs.append(count)
    return PoolGeometry(kernel, strides, dilations, pads, behind, outputs)


def pool_windows(inputs: Inputs, attributes: Attributes, fill: Any) -> Tuple[np.ndarray, np.ndarray]:
    """Return the windows (N, C, OH, OW, KH, KW) and how many elements of each are the data's, ONNX's way."""
    planar = _planar(_first(inputs))
    kernel, strides, dilations, pads, behind, outputs = pool_geometry(_first(inputs), attributes)
    widths = ((0, 0), (0, 0), (pads[0], pads[2] + behind[0]), (pads[1], pads[3] + behind[1]))
    padded = np.pad(planar, widths, mode="constant", constant_values=fill)
    real = np.pad(np.ones((1, 1, *planar.shape[2:]), np.float32), widths, mode="constant")
    if attributes.get("count_include_pad", 0):
        real[:, :, : planar.shape[2] + pads[0] + pads[2], : planar.shape[3] + pads[1] + pads[3]] = 1
    rows, columns = outputs
    view = windows(padded, kernel, strides, dilations)[:, :, :rows, :columns]
    return view, windows(real, kernel, strides, dilations)[:, :, :rows, :columns].sum(axis=(4, 5))


def _max_pool(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    lowest = np.iinfo(data.dtype).min if np.issubdtype(data.dtype, np.integer) else -np.inf
    view, _ = pool_windows(inputs, attributes, lowest)
    result = largest(view, (4, 5), False)
    return result[:, :, 0] if data.ndim == 3 else result


def _average_pool(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    view, counts = pool_windows(inputs, attributes, 0)
    result = (functions.sum_along(view, [4, 5])[..., 0, 0] / counts).astype(data.dtype)
    return result[:, :, 0] if data.ndim == 3 else result


def _over_image(function: Callable[..., Any]) -> Callable[[Inputs, Attributes], Any]:
    return lambda inputs, attributes: function(_first(inputs), axis=tuple(range(2, _first(inputs).ndim)), keepdims=True)


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _over_image(mean),
    "GlobalMaxPool": _over_image(largest),
    "MaxPool": _max_pool,
}
