"""ONNX's operators on float32 as steps of the native engine. Each function returns the outputs it will write."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy as np

from hilt_runtime import functions
from hilt_runtime.native.plan_shape import take
from hilt_runtime.native.steps import Builder, NotNativeError, batches_of, broadcast, merged, padded
from hilt_runtime.operators_reduce import reduced_axes
from hilt_runtime.operators_resize import resize_plan
from hilt_runtime.operators_window import pool_geometry, window_geometry

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]
Plan = Callable[[Builder, Inputs, Attributes], List[Any]]

UNARY = (
    *("Abs", "Neg", "Relu", "Ceil", "Floor", "Round", "Sign", "Sqrt", "Reciprocal", "Exp", "Log", "Sigmoid", "Tanh"),
    *("HardSigmoid", "HardSwish", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Mish", "Erf", "Gelu"),
    *("gelu tanh", "at least", "at most", "ThresholdedRelu", "Shrink"),
)
"""The functions in the order of float.c."""
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")
_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceMax", "ReduceMin")


def _float32(*arrays: Any) -> None:
    if any(array.dtype != np.float32 for array in arrays):
        raise NotNativeError("a tensor that is not float32")


def _apply(builder: Builder, name: str, data: Any, first: float = 0.0, second: float = 0.0) -> Any:
    _float32(data)
    out = builder.new(data.shape, np.float32)
    builder.step("unary", [data, out], [data.size, UNARY.index(name)], [np.float32(first), np.float32(second)])
    return out


def _unary(name: str, *constants: Any) -> Plan:
    """Return the plan of a function; a constant is a number, or an attribute's name and its default."""

    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        values: List[Any] = [attributes.get(*each) if isinstance(each, tuple) else each for each in constants]
        return [_apply(builder, name, inputs[0], *values)]

    return plan


def _gelu(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    tanh = attributes.get("approximate", "none") == "tanh"
    return [_apply(builder, "gelu tanh" if tanh else "Gelu", inputs[0])]


def _scalar(builder: Builder, inputs: Inputs, place: int) -> Optional[float]:
    if len(inputs) <= place or inputs[place] is None:
        return None
    if not builder.is_constant(inputs[place]) or inputs[place].size != 1:
        raise NotNativeError("a bound that is computed")
    return float(inputs[place].ravel()[0])


def _clip_wide(builder: Builder, data: Any, low: Any, high: Any) -> Any:
    """Add the clip of int64; a bound may be None."""
    bounds = [None if bound is None else int(bound.ravel()[0]) for bound in (low, high)]
    out = builder.new(data.shape, np.int64)
    numbers = [data.size, *(bound is not None for bound in bounds), *(bound or 0 for bound in bounds)]
    builder.step("clip_wide", [data, out], numbers)
    return out


def _clip(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    if inputs[0].dtype == np.int64:
        bounds = [inputs[place] if len(inputs) > place else None for place in (1, 2)]
        known = [bound is None or (builder.is_constant(bound) and bound.dtype == np.int64) for bound in bounds]
        if not all(known) or any(bound is not None and bound.size != 1 for bound in bounds):
            raise NotNativeError("a bound that is computed")
        return [_clip_wide(builder, inputs[0], *bounds)]
    low, high = _scalar(builder, inputs, 1), _scalar(builder, inputs, 2)
    data = inputs[0] if low is None else _apply(builder, "at least", inputs[0], low)
    return [data if high is None else _apply(builder, "at most", data, high)]


def _combine(builder: Builder, name: str, left: Any, right: Any) -> Any:
    _float32(left, right)
    shape, strides = broadcast([left, right])
    place = BINARY.index(name)
    out = builder.new(shape, np.float32 if place < BINARY.index("Greater") else np.bool_)
    if not out.size:
        raise NotNativeError("an empty tensor")
    sizes, (first, second) = merged(shape, *strides)
    numbers = [place, len(sizes), *padded(sizes), *padded(first), *padded(second)]
    builder.step("binary", [left, right, out], numbers)
    return out


def _binary(name: str) -> Plan:
    return lambda builder, inputs, attributes: [_combine(builder, name, inputs[0], inputs[1])]


def _over_all(name: str) -> Plan:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        if len(inputs) < 2:
            raise NotNativeError("one tensor alone")
        result = inputs[0]
        for tensor in inputs[1:]:
            result = _combine(builder, name, result, tensor)
        return [result]

    return plan


def _power(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, exponent = inputs[0], _scalar(builder, inputs, 1)
    if inputs[1].ndim > data.ndim or exponent not in (2.0, 0.5):
        raise NotNativeError("a power of other than 2 and 1/2")
    if exponent == 2.0:
        return [_combine(builder, "Mul", data, data)]
    return [_apply(builder, "Sqrt", data)]


def _reduce(builder: Builder, name: str, data: Any, axes: Sequence[int]) -> Any:
    """Add a reduction over axes that lie behind one another; they stay, of size 1."""
    _float32(data)
    if not data.size or not axes or list(axes) != list(range(axes[0], axes[-1] + 1)):
        raise NotNativeError("axes that are apart")
    shape = [1 if axis in axes else size for axis, size in enumerate(data.shape)]
    outer, inner = (int(np.prod(part)) for part in (data.shape[: axes[0]], data.shape[axes[-1] + 1 :]))
    out = builder.new(shape, np.float32)
    numbers = [_REDUCTIONS.index(name), outer, data.size // (outer * inner), inner]
    builder.step("reduce", [data, out], numbers)
    return out


def _reduction(name: str) -> Plan:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        data = inputs[0]
        if len(inputs) > 1 and inputs[1] is not None:
            builder.values(inputs[1], "its axes")
        chosen = reduced_axes(inputs, attributes)
        if chosen == ():
            raise NotNativeError("no axis")
        axes = sorted(axis % data.ndim for axis in (range(data.ndim) if chosen is None else chosen))
        out = _reduce(builder, name, data, axes)
        kept = bool(attributes.get("keepdims", 1))
        return [out if kept else out.reshape([s for axis, s in enumerate(data.shape) if axis not in axes])]

    return plan


def _over_image(name: str) -> Plan:
    return lambda builder, inputs, attributes: [_reduce(builder, name, inputs[0], list(range(2, inputs[0].ndim)))]


def _softmax(logarithm: int) -> Plan:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        data = inputs[0]
        _float32(data)
        axis = attributes.get("axis", -1) % data.ndim
        outer, inner = (int(np.prod(part)) for part in (data.shape[:axis], data.shape[axis + 1 :]))
        out = builder.new(data.shape, np.float32)
        builder.step("softmax", [data, out], [logarithm, outer, data.shape[axis], inner, 0, inner])
        return [out]

    return plan


def _counted_sum(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    places, table = inputs[0], inputs[1]
    _float32(table)
    if places.dtype != np.int64 or table.ndim != 2 or not table.size:
        raise NotNativeError("places that are not int64, or no table")
    groups = places.size // attributes["rows"]
    out = builder.new((groups, table.shape[1]), np.float32)
    numbers = [attributes["rows"], groups, *table.shape, 0, groups]
    builder.step("counted_sum", [places, table, builder.new((groups, len(table)), np.int32), out], numbers)
    return [out.reshape(attributes["shape"])]


def _arg(least: int) -> Plan:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        data = inputs[0]
        _float32(data)
        if attributes.get("select_last_index", 0):
            raise NotNativeError("the last of several places")
        axis = attributes.get("axis", 0) % data.ndim
        outer, inner = (int(np.prod(part)) for part in (data.shape[:axis], data.shape[axis + 1 :]))
        shape = [1 if place == axis else size for place, size in enumerate(data.shape)]
        out = builder.new(shape, np.int64)
        builder.step("argmax", [data, out], [least, outer, data.shape[axis], inner])
        kept = attributes.get("keepdims", 1)
        return [out if kept else out.reshape([size for place, size in enumerate(data.shape) if place != axis])]

    return plan


def _normalized(builder: Builder, inputs: Inputs, first: int, by_channel: bool, attributes: Attributes) -> List[Any]:
    """Add a normalization over the axes from `first` on; factors are by element there, or by channel before them."""
    data, factors = inputs[0], inputs[1]
    size = math.prod(data.shape[first:])
    added = builder.constant(np.zeros(factors.shape, np.float32)) if len(inputs) < 3 or inputs[2] is None else inputs[2]
    _float32(data, factors, added)
    kinds = data.shape[1] if by_channel else 1
    if not data.size or factors.size != added.size or factors.size != (kinds if by_channel else size):
        raise NotNativeError("factors of another shape")
    out = builder.new(data.shape, np.float32)
    numbers = [data.size // size, size, int(by_channel), kinds, 0]
    builder.step("norm", [data, factors, added, out], numbers, [attributes.get("epsilon", 1e-5)])
    return [out]


def _layer_normalization(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    return _normalized(builder, inputs, attributes.get("axis", -1) % inputs[0].ndim, False, attributes)


def _instance_normalization(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    return _normalized(builder, inputs, 2, True, attributes)


def _batch_normalization(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, scale, shift, mean, variance = inputs[:5]
    _float32(*inputs[:5])
    if not all(builder.is_constant(array) for array in inputs[1:5]):
        raise NotNativeError("statistics that are computed")
    shape = (1, -1) + (1,) * (data.ndim - 2)
    factor = scale / functions.sqrt(variance + np.float32(attributes.get("epsilon", 1e-5)))
    added = builder.constant((shift - mean * factor).reshape(shape))
    return [_combine(builder, "Add", _combine(builder, "Mul", data, builder.constant(factor.reshape(shape))), added)]


def product(builder: Builder, left: Any, right: Any) -> Any:
    """Add a matrix product, batches too. A constant matrix on the right may be a transposed view."""
    _float32(left, right)
    if left.ndim < 2 or right.ndim < 2 or left.shape[-1] != right.shape[-2]:
        raise NotNativeError("a vector")
    rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    batch, sizes, (first, second) = batches_of(left, right)
    out = builder.new([*batch, rows, columns], np.float32)
    if not out.size or not depth:
        raise NotNativeError("an empty tensor")
    left_steps, right_steps = ([step // 4 for step in array.strides[-2:]] for array in (left, right))
    numbers = [*sizes, rows, depth, columns, *first, *left_steps, *second, *right_steps]
    builder.step("matmul", [_whole(builder, left), _whole(builder, right), out], numbers)
    return out


def add_bias(builder: Builder, data: Any, bias: Any) -> Any:
    """Add a sum with a bias of the last axis."""
    return _combine(builder, "Add", data, bias)


def _whole(builder: Builder, array: Any) -> Any:
    """Return the dense array that a transposed view of it shows."""
    return array if array.flags.c_contiguous else array.T


def _matmul(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    return [product(builder, inputs[0], inputs[1])]


def _gemm(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    left = inputs[0].T if attributes.get("transA", 0) else inputs[0]
    right = inputs[1].T if attributes.get("transB", 0) else inputs[1]
    if attributes.get("transB", 0) and builder.is_constant(inputs[1]):
        right = builder.constant(np.ascontiguousarray(right))
    result = product(builder, left, right)
    if attributes.get("alpha", 1.0) != 1.0:
        result = _combine(builder, "Mul", result, builder.constant(np.full(1, attributes["alpha"], np.float32)))
    if len(inputs) > 2 and inputs[2] is not None:
        extra = inputs[2]
        if attributes.get("beta", 1.0) != 1.0:
            extra = _combine(builder, "Mul", extra, builder.constant(np.full(1, attributes["beta"], np.float32)))
        result = _combine(builder, "Add", result, extra)
    return [result]


def _conv(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, weights = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    _float32(data, weights, *([] if bias is None else [bias]))
    if not builder.is_constant(weights) or not np.isfinite(weights).all():
        raise NotNativeError("weights that are computed")
    kernel, strides, dilations, pads = window_geometry(data, attributes, weights.shape[2:])
    flat = data.ndim == 3
    images, channels, height, width = (*data.shape[:2], 1, data.shape[2]) if flat else data.shape
    rows = (height + pads[0] + pads[2] - (kernel[0] - 1) * dilations[0] - 1) // strides[0] + 1
    columns = (width + pads[1] + pads[3] - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
    if min(rows, columns, height, width) < 1 or min(pads) < 0:
        raise NotNativeError("a window that is larger than the data")
    out = builder.new((images, weights.shape[0], rows, columns), np.float32)
    numbers = [images, channels, height, width, weights.shape[0], weights.shape[1], *kernel, rows, columns]
    numbers += [*strides, *dilations, pads[0], pads[1], attributes.get("group", 1), bias is not None]
    builder.step("conv", [data, weights, weights if bias is None else bias, out], numbers)
    return [out[:, :, 0] if flat else out]


def _pool(mean: int) -> Plan:
    def plan(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
        data = inputs[0]
        _float32(data)
        geometry = pool_geometry(data, attributes)
        flat = data.ndim == 3
        images, channels, height, width = (*data.shape[:2], 1, data.shape[2]) if flat else data.shape
        rows, columns = geometry.outputs
        top, left, bottom, right = geometry.pads
        if min(rows, columns) < 1 or min(geometry.pads) < 0:
            raise NotNativeError("a window that is larger than the data")
        out = builder.new((images, channels, rows, columns), np.float32)
        numbers = [images * channels, 1, height, width, 1, 1, *geometry.kernel, rows, columns]
        numbers += [*geometry.strides, *geometry.dilations, top, left, 1, 0, mean]
        numbers += [attributes.get("count_include_pad", 0), top + height + bottom, left + width + right]
        builder.step("pool", [data, out], numbers)
        return [out[:, :, 0] if flat else out]

    return plan


def _resize(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    for place in (2, 3):
        if len(inputs) > place and inputs[place] is not None and not builder.is_constant(inputs[place]):
            raise NotNativeError("sizes that are computed")
    result = inputs[0]
    for axis, indices, weights in resize_plan(inputs, attributes):
        shape = [*result.shape[:axis], indices.shape[-1], *result.shape[axis + 1 :]]
        out = builder.new(shape, result.dtype)
        places = builder.constant(np.ascontiguousarray(indices, np.int64))
        if weights is None:
            take(builder, result, places, axis, out)
        else:
            _float32(result)
            outer, inner = (int(np.prod(part)) for part in (shape[:axis], shape[axis + 1 :]))
            parts = builder.constant(np.ascontiguousarray(weights, np.float32))
            numbers = [outer, result.shape[axis], shape[axis], inner, len(indices)]
            builder.step("blend", [result, places, parts, out], numbers)
        result = out
    return [result]


PLANS: Dict[str, Plan] = {
    **{name: _unary(name) for name in UNARY[:13]},
    **{name: _unary(name) for name in ("Softplus", "Softsign", "Mish", "Erf")},
    **{name: _binary(name) for name in BINARY if name not in ("Max", "Min")},
    **{name: _reduction(name) for name in _REDUCTIONS},
    "ArgMax": _arg(0),
    "counted_sum": _counted_sum,
    "ArgMin": _arg(1),
    "AveragePool": _pool(1),
    "BatchNormalization": _batch_normalization,
    "Clip": _clip,
    "Conv": _conv,
    "Elu": _unary("Elu", ("alpha", 1.0)),
    "Gelu": _gelu,
    "Gemm": _gemm,
    "GlobalAveragePool": _over_image("ReduceMean"),
    "GlobalMaxPool": _over_image("ReduceMax"),
    "HardSigmoid": _unary("HardSigmoid", ("alpha", 0.2), ("beta", 0.5)),
    "HardSwish": _unary("HardSwish", 1 / 6, 0.5),
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LeakyRelu": _unary("LeakyRelu", ("alpha", 0.01)),
    "LogSoftmax": _softmax(1),
    "MatMul": _matmul,
    "Max": _over_all("Max"),
    "MaxPool": _pool(0),
    "Min": _over_all("Min"),
    "Pow": _power,
    "Resize": _resize,
    "Selu": _unary("Selu", ("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)),
    "Shrink": _unary("Shrink", ("lambd", 0.5), ("bias", 0.0)),
    "Softmax": _softmax(0),
    "Sum": _over_all("Add"),
    "ThresholdedRelu": _unary("ThresholdedRelu", ("alpha", 1.0)),
}
