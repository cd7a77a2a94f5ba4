"""ONNX's Resize in numpy: nearest, linear and cubic, one axis after another."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _resize(inputs: Inputs, attributes: Attributes) -> Any:
    result = np.asarray(inputs[0])
    for axis, indices, weights in resize_plan(inputs, attributes):
        if weights is None:
            result = result.take(indices, axis=axis)
            continue
        shape = [1] * result.ndim
        shape[axis] = -1
        total = np.zeros((), np.float32)
        for index, weight in zip(indices, weights):
            total = total + result.take(index, axis=axis) * weight.reshape(shape)
        result = total
    return result.astype(np.asarray(inputs[0]).dtype)


def resize_plan(inputs: Inputs, attributes: Attributes) -> List[Tuple[int, Any, Any]]:
    """Return for each axis that changes its number, indices and weights.

    The indices are (places,) and the weights None where each output is one input, else both are (taps, places).
    """
    shape = np.shape(inputs[0])
    sizes, scales = _target(inputs, attributes, shape)
    plan = []
    for axis, length in enumerate(shape):
        if sizes[axis] != length or scales[axis] != 1:
            places = _positions(sizes[axis], length, scales[axis], attributes)
            plan.append((axis, *_taps(places, length, attributes)))
    return plan


def _target(inputs: Inputs, attributes: Attributes, shape: Sequence[int]) -> Tuple[Sequence[int], Sequence[float]]:
    """Return the sizes of all axes, and their scales."""
    sizes, scales = list(shape), [1.0] * len(shape)
    axes = attributes.get("axes") or range(len(shape))
    given = np.asarray(inputs[3]).ravel() if len(inputs) > 3 and inputs[3] is not None else np.zeros(0)
    for axis, size in zip(axes, given):
        sizes[axis], scales[axis] = int(size), int(size) / shape[axis]
    if not given.size:
        for axis, factor in zip(axes, np.asarray(inputs[2]).ravel()):
            sizes[axis], scales[axis] = int(np.floor(shape[axis] * float(factor))), float(factor)
        return sizes, scales
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        scale = (min if policy == "not_larger" else max)(scales[axis] for axis in axes)
        for axis in axes:
            sizes[axis], scales[axis] = int(np.floor(shape[axis] * scale + 0.5)), scale
    return sizes, scales


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


def _taps(places: np.ndarray, length: int, attributes: Attributes) -> Tuple[Any, Any]:
    """Return the indices and weights of an axis, see resize_plan."""
    mode = attributes.get("mode", "nearest")
    if mode == "nearest":
        return np.clip(_nearest(places, attributes), 0, length - 1).astype(np.intp), None
    base = np.floor(places)
    part = (places - base).astype(np.float32)
    if mode == "linear":
        weights = {0: 1 - part, 1: part}
    elif mode == "cubic":
        weights = cubic_weights(part, attributes.get("cubic_coeff_a", -0.75))
    else:
        raise ValueError("Resize with mode {} is not known".format(mode))
    indices = [np.clip(base + offset, 0, length - 1).astype(np.intp) for offset in weights]
    return np.stack(indices), np.stack([weight.astype(np.float32) for weight in weights.values()])


def _nearest(places: np.ndarray, attributes: Attributes) -> Any:
    mode = attributes.get("nearest_mode", "round_prefer_floor")
    if mode == "floor":
        return np.floor(places)
    if mode == "ceil":
        return np.ceil(places)
    if mode == "round_prefer_ceil":
        return np.floor(places + 0.5)
    return np.ceil(places - 0.5)


def cubic_weights(part: np.ndarray, a: float) -> Dict[int, np.ndarray]:
    """Return the weights of the pixels -1 to 2 around places, given their fractions."""

    def near(x: np.ndarray) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return {-1: far(part + 1), 0: near(part), 1: near(1 - part), 2: far(2 - part)}


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {"Resize": _resize}
