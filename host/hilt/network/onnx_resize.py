"""The form of a Resize of images (N, C, H, W), if int8 computes it: repeated or interpolated pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt_runtime.operators_resize import resize_plan

_POWERS = {1, 2, 4, 8}
"""The factors of an interpolation of rows or columns."""


def repeats_of(graph: OnnxGraph, node: OnnxNode) -> list[int] | None:
    """Return by how many a nearest Resize repeats rows and columns; None if it does otherwise."""
    factors = _factors(graph, node)
    if factors is None or not all(
        weights is None and np.array_equal(indices, np.arange(len(indices)) // factors[axis - 2])
        for axis, indices, weights in _plan(graph, node)
    ):
        return None
    return factors


def interpolation_of(graph: OnnxGraph, node: OnnxNode) -> dict[str, Any] | None:
    """Return the attributes of `interpolate` that a linear Resize is; None of other nodes.

    Its rows and columns grow by powers of two, each output between the two pixels next to it, the edges repeated.
    """
    if node.op != "Resize" or node.domain or node.attributes.get("mode", "nearest") != "linear":
        return None
    factors = _factors(graph, node)
    if factors is None or node.attributes.get("antialias", 0):
        return None
    if tuple(factors) == (1, 1) or not set(factors) <= _POWERS:
        return None
    shape, plan = graph.shape(node.inputs[0]), _plan(graph, node)
    for centred in (1, 0):
        if all(_lies_between(shape[axis], factors[axis - 2], centred, *taps) for axis, *taps in plan):
            return {"factors": factors, "centred": centred}
    return None


def _factors(graph: OnnxGraph, node: OnnxNode) -> list[int] | None:
    """Return how many rows and columns of the output one of the input makes; None of other forms."""
    shape, result = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    computed = {*graph.computed_inputs(node)} - {node.inputs[0]}
    if len(shape) != 4 or shape[:2] != result[:2] or computed:
        return None
    factors = [result[axis] // shape[axis] for axis in (2, 3)]
    whole = [factor * size for factor, size in zip(factors, shape[2:], strict=True)] == list(result[2:])
    return factors if whole and min(factors) > 0 else None


def _plan(graph: OnnxGraph, node: OnnxNode) -> list[tuple[int, Any, Any]]:
    """Return the axes that change; no axis but rows and columns does."""
    constants = [graph.constants.get(name) if name else None for name in node.inputs[1:]]
    data = np.broadcast_to(np.zeros((), np.int8), graph.shape(node.inputs[0]))
    return resize_plan([data, *constants], node.attributes)


def _lies_between(size: int, factor: int, centred: int, indices: NDArray[Any], weights: NDArray[Any]) -> bool:
    """Return whether the indices and weights of an axis are those of its outputs' neighbours."""
    places = np.arange(size * factor) / factor
    if centred:
        places += 0.5 / factor - 0.5
    pixels = np.floor(places)
    wanted = [np.clip(pixels + offset, 0, size - 1) for offset in (0, 1)]
    return np.array_equal(indices, wanted) and np.array_equal(weights, [1 - (places - pixels), places - pixels])
