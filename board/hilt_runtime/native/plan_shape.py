"""Operators that move elements, as copies between strides; those that move none return a view of their input."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime.native.plan_lanes import concat_lanes, depth_to_space_lanes, pad_lanes
from hilt_runtime.native.steps import Builder, NotNativeError, broadcast, copy, merged, padded, strides_of
from hilt_runtime.operators_integer import slice_of
from hilt_runtime.operators_shape import TYPES

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]

_MOST_RUNS = 8
"""Runs of places along an axis that are copied one by one; more of them are taken place by place."""


def _reshape(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    if "shape" in attributes:
        return [data.reshape(attributes["shape"])]
    shape = builder.values(inputs[1], "its shape")
    if not attributes.get("allowzero", 0):
        shape = [data.shape[place] if size == 0 else size for place, size in enumerate(shape)]
    return [data.reshape(shape)]


def _flatten(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, axis = inputs[0], attributes.get("axis", 1)
    axis = axis + data.ndim if axis < 0 else axis
    return [data.reshape(int(np.prod(data.shape[:axis])), -1)]


def _squeeze(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    given = len(inputs) > 1 and inputs[1] is not None
    axes = [axis % data.ndim for axis in builder.values(inputs[1], "its axes")] if given else None
    if axes is not None and any(data.shape[axis] != 1 for axis in axes):
        raise NotNativeError("an axis of more than one element")
    kept = [s for axis, s in enumerate(data.shape) if (s != 1 if axes is None else axis not in axes)]
    return [data.reshape(kept)]


def _unsqueeze(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, axes = inputs[0], builder.values(inputs[1], "its axes")
    rank = data.ndim + len(axes)
    shape = list(data.shape)
    for axis in sorted(axis % rank for axis in axes):
        shape.insert(axis, 1)
    return [data.reshape(shape)]


def _permuted(builder: Builder, data: Any, perm: Sequence[int]) -> Any:
    sizes = [data.shape[axis] for axis in perm]
    kept = [axis for axis in perm if data.shape[axis] != 1]
    if kept == sorted(kept):  # only axes of one element move
        return data.reshape(sizes)
    out = builder.new(sizes, data.dtype)
    strides = strides_of(data.shape)
    copy(builder, data, out, sizes, (0, [strides[axis] for axis in perm]), (0, strides_of(sizes)))
    return out


def _transpose(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    perm = attributes.get("perm") or list(range(data.ndim))[::-1]
    return [_permuted(builder, data, [axis % data.ndim for axis in perm])]


def _concat(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    if "channels" in attributes:
        return concat_lanes(builder, inputs, attributes)
    parts = [part for part in inputs if part is not None]
    first = parts[0]
    axis = attributes["axis"] % first.ndim
    if any(part.dtype != first.dtype or part.ndim != first.ndim for part in parts):
        raise NotNativeError("parts of different types")
    shape = list(first.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    out, strides, start = builder.new(shape, first.dtype), strides_of(shape), 0
    for part in parts:
        copy(builder, part, out, part.shape, (0, strides_of(part.shape)), (start * strides[axis], strides))
        start += part.shape[axis]
    return [out]


def _cut(builder: Builder, data: Any, index: Sequence[slice]) -> Any:
    """Return a slice of data: a view where its elements lie behind one another."""
    ranges = [range(*each.indices(size)) for each, size in zip(index, data.shape)]
    shape, strides = [len(each) for each in ranges], strides_of(data.shape)
    out = builder.new(shape, data.dtype)
    if out.size:
        offset = sum(each.start * stride for each, stride in zip(ranges, strides))
        steps = [each.step * stride for each, stride in zip(ranges, strides)]
        view = data[tuple(index)]
        if view.flags.c_contiguous:
            return view
        copy(builder, data, out, shape, (offset, steps), (0, strides_of(shape)))
    return out


def _slice(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    if "starts" in attributes:
        starts, ends, axes, steps = (list(attributes[key]) for key in ("starts", "ends", "axes", "steps"))
    else:
        given = [
            builder.values(inputs[place], "its range") if len(inputs) > place and inputs[place] is not None else []
            for place in range(1, 5)
        ]
        starts, ends, axes, steps = given
        axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    index = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[axis] = slice_of(start, end, step, data.shape[axis])
    return [_cut(builder, data, index)]


def _split(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    axis = attributes.get("axis", 0) % data.ndim
    if len(inputs) > 1 and inputs[1] is not None:
        sizes = builder.values(inputs[1], "its sizes")
    else:
        count = attributes["num_outputs"]
        size = -(-data.shape[axis] // count)
        sizes = [size] * (count - 1) + [data.shape[axis] - size * (count - 1)]
    if sum(sizes) != data.shape[axis] or min(sizes) < 1:
        raise NotNativeError("sizes that are not those of the axis")
    outputs, start = [], 0
    for size in sizes:
        index = [slice(None)] * data.ndim
        index[axis] = slice(start, start + size)
        outputs.append(_cut(builder, data, index))
        start += size
    return outputs


def _pad(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    if "channels" in attributes:
        return pad_lanes(builder, inputs, attributes)
    data = inputs[0]
    pads, axes, value = _pads_of(builder, inputs, attributes)
    begins, ends = [0] * data.ndim, [0] * data.ndim
    for place, axis in enumerate(axes):
        begins[axis], ends[axis] = pads[place], pads[place + len(axes)]
    if min([*begins, *ends]) < 0:
        raise NotNativeError("pads below 0")
    if attributes.get("mode", "constant") != "constant":
        return [_repeated(builder, data, list(zip(begins, ends)), attributes["mode"])]
    shape = [before + size + after for before, size, after in zip(begins, data.shape, ends)]
    out, strides = builder.new(shape, data.dtype), strides_of(shape)
    bits = int.from_bytes(np.full(1, value, data.dtype).tobytes(), "little")
    builder.step("fill", [out], [out.dtype.itemsize, out.size, bits - (1 << 64) if bits >= 1 << 63 else bits])
    offset = sum(begin * stride for begin, stride in zip(begins, strides))
    copy(builder, data, out, data.shape, (0, strides_of(data.shape)), (offset, strides))
    return [out]


def _repeated(builder: Builder, data: Any, widths: Sequence[Tuple[int, int]], mode: str) -> Any:
    """Return data padded with its own elements, in numpy's or ONNX's mode reflect, edge or wrap."""
    for axis, (begin, end) in enumerate(widths):
        if begin or end:
            places = np.pad(np.arange(data.shape[axis]), (begin, end), mode=mode)  # type: ignore[call-overload]
            shape = [*data.shape[:axis], places.size, *data.shape[axis + 1 :]]
            out = builder.new(shape, data.dtype)
            _copy_runs(builder, data, places, axis, out)
            data = out
    return data


def _copy_runs(builder: Builder, data: Any, places: Any, axis: int, out: Any) -> None:
    """Add what takes the places of an axis, which all exist: a copy of each run of them, if there are few."""
    runs = _runs(places.tolist())
    if len(runs) > _MOST_RUNS:
        take(builder, data, builder.constant(places.astype(np.int64)), axis, out)
        return
    outer, inner = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    for first, count, step in runs:
        reads = int(places[first]) * inner, (data.shape[axis] * inner, step * inner, 1)
        copy(builder, data, out, (outer, count, inner), reads, (first * inner, (out.shape[axis] * inner, inner, 1)))


def _runs(places: Sequence[int]) -> List[Tuple[int, int, int]]:
    """Return the runs of places with one step between them: first, count and step of each."""
    runs, first = [], 0
    while first < len(places):
        step, last = 1, first + 1
        if last < len(places):
            step = places[last] - places[first]
        while last < len(places) and places[last] - places[last - 1] == step:
            last += 1
        runs.append((first, last - first, step))
        first = last
    return runs


def _pads_of(builder: Builder, inputs: Inputs, attributes: Attributes) -> Tuple[List[int], List[int], Any]:
    """Return the pads (all begins, then all ends), their axes and the value, of hilt's own pad or ONNX's."""
    data, *_ = inputs
    every_axis = list(range(data.ndim))
    if "pads" in attributes:
        return list(attributes["pads"]), every_axis, attributes.get("value", 0)
    _, pads, value, axes = [*inputs, None, None][:4]
    pads = builder.values(pads, "its pads")
    axes = every_axis if axes is None else builder.values(axes, "its axes")
    if value is None:
        return pads, axes, 0
    if not builder.is_constant(value):
        raise NotNativeError("a value that is computed")
    return pads, axes, np.asarray(value, data.dtype).ravel()[0]


def _depth_to_space(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    if "channels" in attributes:
        return depth_to_space_lanes(builder, inputs, attributes)
    data = inputs[0]
    images, channels, height, width = data.shape
    block = attributes.get("block") or [attributes["blocksize"]] * 2
    rows, columns = block
    depth = channels // (rows * columns)
    if attributes.get("mode", "DCR") == "DCR":
        split, order = (images, rows, columns, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (images, depth, rows, columns, height, width), (0, 1, 4, 2, 5, 3)
    moved = _permuted(builder, data.reshape(split), order)
    return [moved.reshape(images, depth, height * rows, width * columns)]


def _space_to_depth(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, block = inputs[0], attributes["blocksize"]
    images, channels, height, width = data.shape
    moved = _permuted(
        builder, data.reshape(images, channels, height // block, block, width // block, block), (0, 3, 5, 1, 2, 4)
    )
    return [moved.reshape(images, -1, height // block, width // block)]


def _gather(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, indices = inputs[0], inputs[1]
    axis = attributes.get("axis", 0) % data.ndim
    if indices.dtype != np.int64:
        if not builder.is_constant(indices):
            raise NotNativeError("indices that are not int64")
        indices = builder.constant(np.ascontiguousarray(indices, np.int64).reshape(indices.shape))
    shape = [*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]]
    out = builder.new(shape, data.dtype)
    take(builder, data, indices, axis, out)
    return [out]


def take(builder: Builder, data: Any, indices: Any, axis: int, out: Any) -> None:
    """Add a take of int64 indices along an axis."""
    outer = int(np.prod(data.shape[:axis], dtype=np.int64))
    inner = int(np.prod(data.shape[axis + 1 :], dtype=np.int64)) * data.dtype.itemsize
    builder.step("take", [data, indices, out], [outer, data.shape[axis], indices.size, inner])


def _expand(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data = inputs[0]
    shape = builder.values(inputs[1], "its shape") if inputs[1].size else []
    whole = np.broadcast_to(np.int8(0), shape)
    sizes, (reads, _) = broadcast([data, whole])
    out = builder.new(sizes, data.dtype)
    copy(builder, data, out, sizes, (0, reads), (0, strides_of(sizes)))
    return [out]


def _identity(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    return [inputs[0]]


def _shape(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    shape = inputs[0].shape[attributes.get("start", 0) : attributes.get("end", None)]
    return [builder.constant(np.array(shape, np.int64))]


def _where(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    condition, first, second = inputs
    if condition.dtype != np.bool_ or first.dtype != second.dtype or first.itemsize not in (1, 4, 8):
        raise NotNativeError("types that are mixed")
    shape, strides = broadcast([condition, first, second])
    out = builder.new(shape, first.dtype)
    if not out.size:
        raise NotNativeError("an empty tensor")
    sizes, steps = merged(shape, *strides)
    numbers = [out.itemsize, len(sizes), *padded(sizes), *(step for each in steps for step in padded(each))]
    builder.step("where", [condition, first, second, out], numbers)
    return [out]


def _cast(builder: Builder, inputs: Inputs, attributes: Attributes) -> List[Any]:
    data, wanted = inputs[0], np.dtype(TYPES[attributes["to"]])
    if data.dtype == wanted:
        return [data]
    if (data.dtype, wanted) != (np.dtype(np.int32), np.dtype(np.int64)):
        raise NotNativeError("a change of type other than int32 to int64")
    out = builder.new(data.shape, np.int64)
    builder.step("widen", [data, out], [data.size])
    return [out]


PLANS: Dict[str, Callable[[Builder, Inputs, Attributes], List[Any]]] = {
    "Cast": _cast,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": _identity,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
    "concat": _concat,
    "depth_to_space": _depth_to_space,
    "pad": _pad,
    "reshape": _reshape,
    "slice": _slice,
    "transpose": _transpose,
}
