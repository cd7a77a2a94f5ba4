"""ONNX's operators that move, join and make tensors, in numpy, on any type."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy as np

from hilt_runtime.operators_integer import slice_of

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]

TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
}
"""numpy's names of ONNX's element types."""


def _first(inputs: Inputs) -> Any:
    tensor = inputs[0]
    assert tensor is not None
    return tensor


def _integers(inputs: Inputs, place: int) -> Optional[List[int]]:
    if len(inputs) <= place or inputs[place] is None:
        return None
    return [int(value) for value in np.asarray(inputs[place]).ravel()]


def _reshape(inputs: Inputs, attributes: Attributes) -> Any:
    data, shape = _first(inputs), _integers(inputs, 1) or []
    if not attributes.get("allowzero", 0):
        shape = [data.shape[place] if size == 0 else size for place, size in enumerate(shape)]
    return data.reshape(shape)


def _flatten(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    axis = attributes.get("axis", 1)
    axis = axis + data.ndim if axis < 0 else axis
    return data.reshape(int(np.prod(data.shape[:axis])), -1)


def _squeeze(inputs: Inputs, attributes: Attributes) -> Any:
    axes = _integers(inputs, 1)
    return np.squeeze(_first(inputs), axis=None if axes is None else tuple(axes))


def _unsqueeze(inputs: Inputs, attributes: Attributes) -> Any:
    data, axes = _first(inputs), _integers(inputs, 1) or []
    rank = data.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        data = np.expand_dims(data, axis)
    return data


def _transpose(inputs: Inputs, attributes: Attributes) -> Any:
    return np.array(np.transpose(_first(inputs), attributes.get("perm")), order="C")


def _slice(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    starts, ends = _integers(inputs, 1) or [], _integers(inputs, 2) or []
    axes = _integers(inputs, 3) or list(range(len(starts)))
    steps = _integers(inputs, 4) or [1] * len(starts)
    index: List[slice] = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        index[axis] = slice_of(start, end, step, data.shape[axis])
    return data[tuple(index)]


def _split(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = _first(inputs), attributes.get("axis", 0)
    sizes = _integers(inputs, 1)
    if sizes is None:
        count = attributes["num_outputs"]
        size = -(-data.shape[axis] // count)
        sizes = [size] * (count - 1) + [data.shape[axis] - size * (count - 1)]
    return np.split(data, np.cumsum(sizes)[:-1].tolist(), axis=axis)


def _gather(inputs: Inputs, attributes: Attributes) -> Any:
    return np.take(_first(inputs), np.asarray(inputs[1]).astype(np.intp), axis=attributes.get("axis", 0))


def _gather_elements(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = _first(inputs), attributes.get("axis", 0)
    places = np.asarray(inputs[1])
    return np.take_along_axis(data, np.where(places < 0, places + data.shape[axis], places), axis=axis)


def _gather_nd(inputs: Inputs, attributes: Attributes) -> Any:
    if attributes.get("batch_dims", 0):
        raise ValueError("GatherND with batch_dims is not known")
    return _first(inputs)[tuple(np.moveaxis(np.asarray(inputs[1]), -1, 0))]


def _scatter_nd(inputs: Inputs, attributes: Attributes) -> Any:
    places = tuple(np.moveaxis(np.asarray(inputs[1]), -1, 0))
    return _scattered(_first(inputs).copy(), places, np.asarray(inputs[2]), attributes)


def _scatter_elements(inputs: Inputs, attributes: Attributes) -> Any:
    result, axis = _first(inputs).copy(), attributes.get("axis", 0) % _first(inputs).ndim
    indices, updates = np.asarray(inputs[1]), np.asarray(inputs[2])
    indices = np.where(indices < 0, indices + result.shape[axis], indices)
    places: List[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return _scattered(result, tuple(places), updates, attributes)


def _scattered(result: np.ndarray, places: Any, updates: np.ndarray, attributes: Attributes) -> Any:
    """Return data with updates at places, joined as `reduction` says."""
    reduction = attributes.get("reduction", "none")
    if reduction == "none":
        result[places] = updates
        return result
    joined = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    if reduction not in joined:
        raise ValueError("a scatter with reduction {} is not known".format(reduction))
    joined[reduction].at(result, places, updates)
    return result


def _expand(inputs: Inputs, attributes: Attributes) -> Any:
    data = _first(inputs)
    shape = _integers(inputs, 1) or []
    return (
        np.array(data * np.ones(shape, data.dtype), order="C")
        if data.dtype != bool
        else (np.logical_and(data, np.ones(shape, bool)))
    )


def _pad(inputs: Inputs, attributes: Attributes) -> Any:
    data, pads = _first(inputs), _integers(inputs, 1) or []
    axes = _integers(inputs, 3) or list(range(data.ndim))
    widths = [(0, 0)] * data.ndim
    for place, axis in enumerate(axes):
        widths[axis] = (pads[place], pads[place + len(axes)])
    index = tuple(slice(max(-begin, 0), size - max(-end, 0)) for (begin, end), size in zip(widths, data.shape))
    widths = [(max(begin, 0), max(end, 0)) for begin, end in widths]
    mode = attributes.get("mode", "constant")
    if mode != "constant":
        reflecting: Any = mode
        return np.pad(data[index], widths, mode=reflecting)
    value: Any = inputs[2] if len(inputs) > 2 and inputs[2] is not None else 0
    return np.pad(data[index], widths, mode="constant", constant_values=np.asarray(value, data.dtype).ravel()[0])


def _depth_to_space(inputs: Inputs, attributes: Attributes) -> Any:
    from hilt_runtime.operators_integer import depth_to_space

    block = attributes["blocksize"]
    return depth_to_space(inputs, {"block": [block, block], "mode": attributes.get("mode", "DCR")})


def _space_to_depth(inputs: Inputs, attributes: Attributes) -> Any:
    data, block = _first(inputs), attributes["blocksize"]
    images, channels, height, width = data.shape
    blocks = data.reshape(images, channels, height // block, block, width // block, block)
    return blocks.transpose(0, 3, 5, 1, 2, 4).reshape(images, -1, height // block, width // block)


def _constant_of_shape(inputs: Inputs, attributes: Attributes) -> Any:
    value = np.asarray(attributes.get("value", np.zeros(1, np.float32)))
    return np.full(_integers(inputs, 0) or [], value.ravel()[0], value.dtype)


def _shape(inputs: Inputs, attributes: Attributes) -> Any:
    shape = _first(inputs).shape
    return np.array(shape[attributes.get("start", 0) : attributes.get("end", None)], np.int64)


def _one_hot(inputs: Inputs, attributes: Attributes) -> Any:
    depth = int(np.asarray(inputs[1]).ravel()[0])
    values = np.asarray(inputs[2])
    places = np.asarray(inputs[0])
    places = np.where(places < 0, places + depth, places)  # one that is still outside is off everywhere
    hot = np.where(places[..., None] == np.arange(depth), values[1], values[0]).astype(values.dtype)
    return np.moveaxis(hot, -1, attributes.get("axis", -1))


def _reverse_sequence(inputs: Inputs, attributes: Attributes) -> Any:
    time, batch = attributes.get("time_axis", 0), attributes.get("batch_axis", 1)
    result = np.moveaxis(np.array(_first(inputs)), (batch, time), (0, 1))
    for row, length in zip(result, np.asarray(inputs[1])):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(result, (0, 1), (batch, time))


def _trilu(inputs: Inputs, attributes: Attributes) -> Any:
    offset = int(np.asarray(inputs[1]).ravel()[0]) if len(inputs) > 1 and inputs[1] is not None else 0
    return (np.triu if attributes.get("upper", 1) else np.tril)(_first(inputs), offset)


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "Cast": lambda i, a: _first(i).astype(TYPES[a["to"]]),
    "Concat": lambda i, a: np.concatenate([np.asarray(tensor) for tensor in i], axis=a["axis"]),
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": lambda i, a: np.array(np.nonzero(_first(i)), np.int64),
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": lambda i, a: np.arange(_first(i).item(), np.asarray(i[1]).item(), np.asarray(i[2]).item()).astype(
        _first(i).dtype
    ),
    "Reshape": _reshape,
    "ReverseSequence": _reverse_sequence,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Shape": _shape,
    "Size": lambda i, a: np.array(_first(i).size, np.int64),
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": lambda i, a: np.tile(_first(i), _integers(i, 1) or []),
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
