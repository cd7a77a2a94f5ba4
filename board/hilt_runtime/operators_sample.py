"""ONNX's GridSample of images, in numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from hilt_runtime.operators_resize import cubic_weights

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]

_MODES = {"linear": "linear", "bilinear": "linear", "cubic": "cubic", "bicubic": "cubic", "nearest": "nearest"}


def _grid_sample(inputs: Inputs, attributes: Attributes) -> Any:
    data, grid = (np.asarray(tensor) for tensor in inputs)
    mode = _MODES.get(str(attributes.get("mode", "linear")))
    padding, corners = str(attributes.get("padding_mode", "zeros")), bool(attributes.get("align_corners", 0))
    if mode is None or padding not in ("zeros", "border", "reflection") or data.ndim != 4:
        raise ValueError("GridSample in {} dimensions with {} is not known".format(data.ndim - 2, dict(attributes)))
    sizes = data.shape[:1:-1]  # the grid has x before y
    places = [_place(grid[..., axis], sizes[axis], corners, padding, mode) for axis in (0, 1)]
    result = np.zeros((data.shape[0], data.shape[1], *grid.shape[1:3]), np.float64)
    for row, row_weight in _taps(places[1], mode):
        for column, column_weight in _taps(places[0], mode):
            weight = row_weight * column_weight
            result += _at(data, row, column, padding, corners) * weight[:, None]
    return result.astype(data.dtype)


def _place(grid: np.ndarray, size: int, corners: bool, padding: str, mode: str) -> Any:
    """Return places in pixels of an axis."""
    wide = grid.astype(np.float64)
    place = (wide + 1) / 2 * (size - 1) if corners else ((wide + 1) * size - 1) / 2
    if padding == "zeros" or mode == "cubic":
        return place  # pixels outside are told apart, or moved, one by one
    return _inside(place, size, padding, corners)


def _inside(place: np.ndarray, size: int, padding: str, corners: bool) -> Any:
    if padding == "border":
        return np.clip(place, 0, size - 1)
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return np.zeros_like(place)
    away = np.abs(place - low) % (2 * span)
    return np.clip(low + np.where(away > span, 2 * span - away, away), 0, size - 1)


def _taps(place: np.ndarray, mode: str) -> List[Tuple[Any, Any]]:
    """Return pixels and weights around places."""
    if mode == "nearest":
        return [(np.rint(place), np.ones_like(place))]
    base = np.floor(place)
    part = place - base
    if mode == "linear":
        return [(base, 1 - part), (base + 1, part)]
    return [(base + offset, weight) for offset, weight in cubic_weights(part, -0.75).items()]


def _at(data: np.ndarray, row: np.ndarray, column: np.ndarray, padding: str, corners: bool) -> Any:
    """Return pixels (N, C, H, W) of each image; zero or moved inside where they lie outside."""
    height, width = data.shape[2:]
    known = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    if padding != "zeros":
        row, column = (_inside(place, size, padding, corners) for place, size in ((row, height), (column, width)))
    rows = np.clip(np.rint(row), 0, height - 1).astype(np.int64)
    columns = np.clip(np.rint(column), 0, width - 1).astype(np.int64)
    images = np.arange(len(data))[:, None, None]
    pixels = data.transpose(0, 2, 3, 1)[images, rows, columns].transpose(0, 3, 1, 2).astype(np.float64)
    return pixels if padding != "zeros" else pixels * known[:, None]


OPERATORS: Dict[str, Callable[[Inputs, Attributes], Any]] = {"GridSample": _grid_sample}
