"""Slopes of PRelu and LeakyRelu that VTA's int8 weights hold: a tensor is multiplied by them where it lies."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_LARGEST_WEIGHT = 127
_MOST_BITS = 15
_MOST_BITS_OF_CHANNELS = 20
_FARTHEST_OF_CHANNELS = 2.0**-5
"""The most that a slope of a channel is changed by."""
_ALPHA = 0.01
"""The slope of a LeakyRelu that names none."""
_FARTHEST = 2.0**-9
"""The most that a slope of all channels is changed by: a quarter of a step of int8 at most. Tables hold any slope."""


def with_short_slopes(graph: OnnxGraph, kept: Collection[str] = ()) -> OnnxGraph:
    """Return a graph whose slopes are int8 multiples of a power of two, one for each node, where these are near.

    `kept`: nodes that stay as they are.
    """
    made = copy.copy(graph)
    made.constants = dict(graph.constants)
    made.nodes = [node if node.name in kept else _with_short_slopes(made, node) for node in graph.nodes]
    made.remove_unused()
    return made


def _with_short_slopes(graph: OnnxGraph, node: OnnxNode) -> OnnxNode:
    if node.domain or node.op not in ("LeakyRelu", "PRelu"):
        return node
    if node.op == "LeakyRelu":
        return replace(node, attributes={**node.attributes, "alpha": short_slope(node.attributes.get("alpha", _ALPHA))})
    slopes = graph.constants.get(node.inputs[1])
    if slopes is None:
        return node
    short = short_slopes(slopes) if slopes.size > 1 else np.full_like(slopes, short_slope(float(slopes.reshape(()))))
    return replace(node, inputs=[node.inputs[0], new_constant(graph, f"{node.name}.slopes", short)])


def short_slopes(slopes: NDArray[Any]) -> NDArray[Any]:
    """Return slopes of channels as int8 multiples of a power of two; as they are if that changes one by too much.

    If one is above 1, int8 has to hold their differences from 1, too.

    Args:
        slopes: Floats.

    Returns:
        Of the same shape and dtype.
    """
    found = []
    for bits in range(_MOST_BITS_OF_CHANNELS + 1):
        one = 1 << bits
        low = one - _LARGEST_WEIGHT if np.any(np.rint(slopes * one) > one) else -_LARGEST_WEIGHT
        if low <= _LARGEST_WEIGHT:
            weights = np.clip(np.rint(slopes * one), max(low, -_LARGEST_WEIGHT), _LARGEST_WEIGHT)
            found.append((weights / one).astype(slopes.dtype))
    near = [each for each in found if np.abs(each - slopes).max(initial=0.0) <= _FARTHEST_OF_CHANNELS]
    return min(near, key=lambda each: float(((each - slopes) ** 2).sum()), default=slopes)


def short_slope(slope: float) -> float:
    """Return the nearest slope of all channels whose table is VTA's product, too; the slope itself if none is near."""
    nearest = float(min(_slopes_without_ties(), key=lambda each: abs(each - slope)))
    return nearest if abs(nearest - slope) <= _FARTHEST else slope


@cache
def _slopes_without_ties() -> tuple[float, ...]:
    """Return the int8 multiples of powers of two whose products with negative int8 round alike up and to even."""
    bits = np.arange(_MOST_BITS + 1)[:, None]
    slopes = np.unique(np.arange(1, _LARGEST_WEIGHT + 1) * 2.0**-bits)
    products = slopes[:, None] * np.arange(-128, 0)
    alike = (np.rint(products) == np.floor(products + 0.5)).all(axis=1)
    return tuple(slopes[alike & (slopes <= 1)].tolist())
