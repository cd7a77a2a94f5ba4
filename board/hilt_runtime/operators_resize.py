"""ONNX's Resize in numpy: nearest, linear and cubic, one axis after another."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

import numpy as np

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _resize(inputs: Inputs, attributes: Attributes) -> Any:
    data = np.asarray(inputs[0])
    sizes, scales = _target(inputs, attributes, data.shape)
    mode = attributes.get("mode", "nearest")
    result = data
    for axis in range(data.ndim):
        if sizes[axis] == data.shape[axis] and scales[axis] == 1:
            continue
        places = _positions(sizes[axis], data.shape[axis], scales[axis], attributes)
        result = _along(result, axis, places, mode, attributes)
    return result.astype(data.dtype)


def _target(inputs: Inputs, attributes: Attributes, shape: Sequence[int]) -> Tuple[Sequence[int], Sequence[float]]:
    given = np.asarray(inputs[3]).ravel() if len(inputs) > 3 and inputs[3] is not None else None
    if given is not None and given.size:
        sizes = [int(size) for size in given]
        return sizes, [size / length for size, length in zip(sizes, shape)]
    factors = [float(factor) for factor in np.asarray(inputs[2]).ravel()]
    return [int(np.floor(length * factor)) for length, factor in zip(shape, factors)], factors


def _positions(size: int, length: int, scale: float, attributes: Attributes) -> Any:
    """Return where in the input each output element lies."""
    index = np.arange(size, dtype=np.float64)
    mode = attributes.get("coordinate_transformation_mode", "half_pixel")
    if mode == "asymmetric":
        return index / scale
    if mode == "align_corners":
        return index * (length - 1) / (size - 1) if size > 1 else np.zeros(size)
    if mode == "pytorch_half_pixel" and size == 1:
        return np.zeros(size)
    if mode == "tf_half_pixel_for_nn":
        return (index + 0.5) / scale
    if mode == "half_pixel_symmetric":
        return (index + 0.5) / scale - 0.5 + length / 2 * (1 - size / (scale * length))
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (index + 0.5) / scale - 0.5
    raise ValueError("Resize with coordinate_transformation_mode {} is not known".format(mode))


def _along(data: np.ndarray, axis: int, places: np.ndarray, mode: str, attributes: Attributes) -> Any:
    length = data.shape[axis]
    if mode == "nearest":
        return data.take(np.clip(_nearest(places, attributes), 0, length - 1).astype(np.int64), axis=axis)
    base = np.floor(places)
    part = (places - base).astype(np.float32)
    shape = [1] * data.ndim
    shape[axis] = -1
    if mode == "linear":
        weights = {0: 1 - part, 1: part}
    elif mode == "cubic":
        weights = _cubic(part, attributes.get("cubic_coeff_a", -0.75))
    else:
        raise ValueError("Resize with mode {} is not known".format(mode))
    total = np.zeros((), np.float32)
    for offset, weight in weights.items():
        index = np.clip(base + offset, 0, length - 1).astype(np.int64)
        total = total + data.take(index, axis=axis) * weight.reshape(shape)
    return total


def _nearest(places: np.ndarray, attributes: Attributes) -> Any:
    mode = attributes.get("nearest_mode", "round_prefer_floor")
    if mode == "floor":
        return np.floor(places)
    if mode == "ceil":
        return np.ceil(places)
    if mode == "round_prefer_ceil":
        return np.floor(places + 0.5)
    return np.ceil(places - 0.5)


def _cubic(part: np.ndarray, a: float) -> Dict[int, np.ndarray]:
    def near(x: np.ndarray) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return {-1: far(part + 1), 0: near(part), 1: near(1 - part), 2: far(2 - part)}


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {"Resize": _resize}
