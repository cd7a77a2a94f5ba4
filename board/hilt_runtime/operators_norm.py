"""ONNX's norms over axes and windows, and Hardmax, in numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Sequence

import numpy as np

from hilt_runtime import functions
from hilt_runtime.operators_window import pool_windows

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _norm(values: np.ndarray, axes: Sequence[int], power: int) -> Any:
    """Return (sum |x|^p)^(1/p) over axes, kept with length 1, in float64."""
    powers = np.abs(values.astype(np.float64)) ** power
    return functions.sum_along(powers, list(axes)) ** (1.0 / power)


def _lp_normalization(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = inputs[0], int(attributes.get("axis", -1))
    size = _norm(data, [axis % data.ndim], int(attributes.get("p", 2)))
    return np.where(size == 0, 0, data / np.where(size == 0, 1, size)).astype(data.dtype)


def _lp_pool(inputs: Inputs, attributes: Attributes) -> Any:
    data = inputs[0]
    view, _ = pool_windows(inputs, attributes, 0)
    result = _norm(view, [4, 5], int(attributes.get("p", 2)))[..., 0, 0].astype(data.dtype)
    return result[:, :, 0] if data.ndim == 3 else result


def _global_lp_pool(inputs: Inputs, attributes: Attributes) -> Any:
    data = inputs[0]
    return _norm(data, range(2, data.ndim), int(attributes.get("p", 2))).astype(data.dtype)


def _hardmax(inputs: Inputs, attributes: Attributes) -> Any:
    data, axis = inputs[0], int(attributes.get("axis", -1))
    result = np.zeros_like(data)
    np.put_along_axis(result, np.expand_dims(np.argmax(data, axis=axis), axis), 1, axis)
    return result


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {
    "GlobalLpPool": _global_lp_pool,
    "Hardmax": _hardmax,
    "LpNormalization": _lp_normalization,
    "LpPool": _lp_pool,
}
