"""Floats that are a linear function of an int8 tensor: a scale, or a table whose entries lie on a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node

_LEAST = 2.0**-60


@dataclass(frozen=True)
class LinearFloats:
    """Floats that are (data + offset) * scale.

    Attributes:
        data: The int8 tensor.
        scale: In float32; not 0.
        offset: In steps of the data.
    """

    data: str
    scale: float
    offset: float


def linear_floats(graph: Graph, maker: Node | None) -> LinearFloats | None:
    """Return the function that a node computes; None of another one, and of no node."""
    if maker is not None and maker.op == "dequantize":
        return LinearFloats(maker.inputs[0], float(np.float32(maker.attributes["scale"])), 0.0)
    if maker is None or maker.op != "table":
        return None
    line = _line(graph.constants[maker.inputs[1]])
    return LinearFloats(maker.inputs[0], *line) if line else None


def _line(entries: NDArray[Any]) -> tuple[float, float] | None:
    """Return scale and offset of the line on which the entries of a table lie; None of other tables."""
    values = entries.astype(np.float64)
    if entries.dtype != np.float32 or not np.isfinite(values).all():
        return None
    scale = float(np.float32((values[255] - values[0]) / 255))
    if abs(scale) < _LEAST:
        return None
    offset = float(values.mean()) / scale + 0.5
    line = (np.arange(-128.0, 128.0) + offset) * scale
    near = np.abs(values - line).max() <= 1e-6 * np.abs(values).max()
    return (scale, offset) if near else None
