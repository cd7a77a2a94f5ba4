"""ONNX's reductions, normalisations and matrix products in numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from hilt_runtime import functions

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]

_max, _min = functions.ieee(np.max), functions.ieee(np.min)


def _first(inputs: Inputs) -> Any:
    tensor = inputs[0]
    assert tensor is not None
    return tensor


def reduced_axes(inputs: Inputs, attributes: Attributes) -> Optional[Tuple[int, ...]]:
    """Return the axes of a reduction, from its second input or its attribute; None for all of them."""
    axes: Any = inputs[1] if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")
    if axes is None or len(axes) == 0:
        return () if attributes.get("noop_with_empty_axes", 0) else None
    return tuple(int(axis) for axis in axes)


def _reduction(function: Callable[..., Any]) -> Callable[[Inputs, Attributes], Any]:
    def apply(inputs: Inputs, attributes: Attributes) -> Any:
        data = _first(inputs)
        result = function(data, axis=reduced_axes(inputs, attributes), keepdims=bool(attributes.get("keepdims", 1)))
        return np.asarray(result).astype(data.dtype)

    return apply


def _arg(function: Callable[..., Any]) -> Callable[[Inputs, Attributes], Any]:
    def apply(inputs: Inputs, attributes: Attributes) -> Any:
        data, axis = _first(inputs), attributes.get("axis", 0)
        if attributes.get("select_last_index", 0):
            place = data.shape[axis] - 1 - function(np.flip(data, axis), axis=axis)
        else:
            place = function(data, axis=axis)
        return (np.expand_dims(place, axis) if attributes.get("keepdims", 1) else place).astype(np.int64)

    return apply


def _summed(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    """Return sums: of float32 in float64 and in order, of other types numpy's."""
    if data.dtype != np.float32 or axis == ():
        return np.sum(data, axis=axis, keepdims=keepdims)
    axes = [each % data.ndim for each in (range(data.ndim) if axis is None else (axis if np.ndim(axis) else [axis]))]
    sums = functions.sum_along(data, sorted(axes))
    return sums if keepdims else sums.reshape([size for place, size in enumerate(data.shape) if place not in axes])


def mean(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    """Return means: of float32 in float64 and in order, rounded once."""
    if data.dtype != np.float32 or axis == ():
        return np.mean(data, axis=axis, keepdims=keepdims)
    sums = _summed(data, axis, keepdims)
    return (sums / float(data.size // max(sums.size, 1))).astype(np.float32)


def largest(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    """Return the largest along axes; of -0 and 0, 0."""
    return _max(data, axis=axis, keepdims=keepdims) + data.dtype.type(0)


def _least(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    return _min(data, axis=axis, keepdims=keepdims) + data.dtype.type(0)


_LEAST_SHARE = 2.0**-125
"""Less of a softmax is 0: NEON of 32-bit ARM knows no subnormal numbers."""


def _softmax(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = _first(inputs), attributes.get("axis", -1)
    best = _max(data, axis=axis, keepdims=True)
    powers = functions.powers(data - best)
    sums = functions.sum_of_powers(powers, axis) + (best - best)  # NaN of infinity and NaN
    inverse, least = (1.0 / sums).astype(np.float32), (sums * _LEAST_SHARE).astype(np.float32)
    return np.where(powers < least, np.float32(0), powers * inverse).astype(data.dtype)


def _log_softmax(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = _first(inputs), attributes.get("axis", -1)
    best = _max(data, axis=axis, keepdims=True)
    sums = functions.sum_along(functions.powers(data - best), [axis % data.ndim]) + (best - best)
    return ((data - best) - functions.log(sums / functions.POWER_OF_0).astype(np.float32)).astype(data.dtype)


def _normalized(data: np.ndarray, axes: Any, attributes: Attributes) -> Any:
    """Return data less its mean over axes, times the inverse of its deviation."""
    centred = data - mean(data, axes, True)
    variance = mean(centred * centred, axes, True)
    deviation = functions.sqrt(variance + np.float32(attributes.get("epsilon", 1e-5)))
    return centred * (1.0 / deviation.astype(np.float64)).astype(data.dtype)


def _layer_normalization(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    axes = tuple(range(attributes.get("axis", -1) % data.ndim, data.ndim))
    result = _normalized(data, axes, attributes) * inputs[1]
    return (result + inputs[2] if len(inputs) > 2 and inputs[2] is not None else result).astype(data.dtype)


def _batch_normalization(inputs: Inputs, attributes: Attributes) -> Any:
    data, scale, shift, mean, variance = (np.asarray(tensor) for tensor in inputs[:5])
    shape = (1, -1) + (1,) * (data.ndim - 2)
    factor = scale / functions.sqrt(variance + np.float32(attributes.get("epsilon", 1e-5)))
    return (data * factor.reshape(shape) + (shift - mean * factor).reshape(shape)).astype(data.dtype)


def _instance_normalization(inputs: Inputs, attributes: Attributes) -> Any:
    data, scale, shift = (np.asarray(tensor) for tensor in inputs[:3])
    axes = tuple(range(2, data.ndim))
    shape = (1, -1) + (1,) * (data.ndim - 2)
    result = _normalized(data, axes, attributes)
    return (result * scale.reshape(shape) + shift.reshape(shape)).astype(data.dtype)


def _local_response_normalization(inputs: Inputs, attributes: Attributes) -> Any:
    data, size = _first(inputs), attributes["size"]
    before = (size - 1) // 2
    squares = np.pad(data * data, [(0, 0), (before, size - 1 - before)] + [(0, 0)] * (data.ndim - 2), mode="constant")
    sums = sum(squares[:, first : first + data.shape[1]] for first in range(size))
    scale = np.float32(attributes.get("bias", 1.0)) + np.float32(attributes.get("alpha", 1e-4) / size) * sums
    return (data / np.power(scale.astype(np.float64), np.float32(attributes.get("beta", 0.75)))).astype(data.dtype)


def _gemm(inputs: Inputs, attributes: Attributes) -> Any:
    left, right = _first(inputs), np.asarray(inputs[1])
    left = left.T if attributes.get("transA", 0) else left
    right = right.T if attributes.get("transB", 0) else right
    product = np.float32(attributes.get("alpha", 1.0)) * functions.product(left, right)
    if len(inputs) > 2 and inputs[2] is not None:
        product = product + np.float32(attributes.get("beta", 1.0)) * inputs[2]
    return product.astype(left.dtype)


def _top_k(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = _first(inputs), attributes.get("axis", -1)
    count = int(np.asarray(inputs[1]).ravel()[0])
    key = -data if attributes.get("largest", 1) else data
    order = np.argsort(key, axis=axis, kind="stable").take(np.arange(count), axis=axis)
    return [np.take_along_axis(data, order, axis=axis), order.astype(np.int64)]


def _cumulative_sum(inputs: Inputs, attributes: Attributes) -> Any:
    axis = int(np.asarray(inputs[1]).ravel()[0])
    data = np.flip(_first(inputs), axis) if attributes.get("reverse", 0) else _first(inputs)
    sums = np.cumsum(data, axis=axis, dtype=data.dtype)
    if attributes.get("exclusive", 0):
        sums = sums - data
    return np.flip(sums, axis) if attributes.get("reverse", 0) else sums


def _norm(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    return functions.sqrt(_summed(data * data, axis, keepdims))


def _l1(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    return _summed(np.abs(data), axis, keepdims)


def _squares(data: np.ndarray, axis: Any, keepdims: bool) -> Any:
    return _summed(data * data, axis, keepdims)


def counted_sum(inputs: Inputs, attributes: Attributes) -> Any:
    """Return float32 sums over `rows` of a float32 table's rows at int64 places: counts times entries, in order.

    What `rows` share lies side by side in the result. Raises IndexError for a place that is not there.
    """
    places, table = inputs[0].reshape(attributes["rows"], -1), inputs[1]
    if places.size and not -len(table) <= places.min() <= places.max() < len(table):
        raise IndexError("a place outside of the table's {} rows".format(len(table)))
    sums = np.zeros((places.shape[1], table.shape[1]), np.float64)
    for group, line in zip((places.T % len(table)).astype(np.intp), sums):
        counts = np.bincount(group, minlength=len(table))
        for row in np.flatnonzero(counts):
            line += np.float64(counts[row]) * table[row].astype(np.float64)
    return sums.astype(np.float32).reshape(attributes["shape"])


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "counted_sum": counted_sum,
    "ArgMax": _arg(functions.ieee(np.argmax)),
    "ArgMin": _arg(functions.ieee(np.argmin)),
    "BatchNormalization": _batch_normalization,
    "CumSum": _cumulative_sum,
    "Einsum": lambda i, a: np.einsum(a["equation"], *i),
    "Gemm": _gemm,
    "InstanceNormalization": _instance_normalization,
    "LRN": _local_response_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _log_softmax,
    "MatMul": lambda i, a: functions.product(i[0], i[1]),
    "ReduceL1": _reduction(_l1),
    "ReduceL2": _reduction(_norm),
    "ReduceMax": _reduction(largest),
    "ReduceMean": _reduction(mean),
    "ReduceMin": _reduction(_least),
    "ReduceProd": _reduction(np.prod),
    "ReduceSum": _reduction(_summed),
    "ReduceSumSquare": _reduction(_squares),
    "Softmax": _softmax,
    "TopK": _top_k,
}
