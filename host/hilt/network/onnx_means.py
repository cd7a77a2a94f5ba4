"""Means over images as pools whose divisor becomes a power of two, which VTA shifts by, or as convolutions.

The mean of n elements is 2^k / n times their sum over 2^k. Where constant weights follow, the factor goes into them:
exact in floats, and the sum and its shift are exact in integers. Windows that lie beside each other are a convolution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes
from hilt.network.onnx_pools import in_shape_of

MEANS = frozenset(("AveragePool", "GlobalAveragePool"))
"""Operators whose results are means of windows."""
_LAYERS = ("Conv", "Gemm")
_PASSED = ("Reshape", "Relu", "Identity")
"""Operators that a positive factor passes through."""


def pool_means(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a mean over height, width or both of (N, C, H, W) as a pool, and a Reshape if it drops the axes."""
    if node.op != "ReduceMean" or len(graph.shape(node.inputs[0])) != 4:
        return None
    over = reduced_axes(graph, node, 4)
    if over not in ([2], [3], [2, 3]):
        return None
    shape = graph.shape(node.inputs[0])
    window = [shape[axis] if axis in over else 1 for axis in (2, 3)]
    pool = OnnxNode(node.name, "GlobalAveragePool", [node.inputs[0]], list(node.outputs))
    if len(over) == 1:
        pool.op, pool.attributes = "AveragePool", {"kernel_shape": window, "strides": [1, 1], "pads": [0] * 4}
    sides = (size // taps for size, taps in zip(shape[2:], window, strict=True))
    return in_shape_of(graph, node, pool, (*shape[:2], *sides))


def means_by_powers(graph: OnnxGraph) -> None:
    """Rewrite in place each mean of an image, of its rows or of its columns that constant weights alone read.

    It becomes an AveragePool whose window is padded behind to powers of two; the pads count.
    """
    consumers = graph.consumers()
    for node in graph.nodes:
        size = _window(graph, node)
        if size is None or not math.prod(size) & (math.prod(size) - 1):
            continue
        layers = _layers_behind(graph, node.outputs[0], consumers)
        if not layers:
            continue
        window = [1 << (length - 1).bit_length() for length in size]
        node.op = "AveragePool"
        node.attributes = {
            "kernel_shape": window,
            "strides": [1, 1],
            "pads": [0, 0, *(full - length for full, length in zip(window, size, strict=True))],
            "count_include_pad": 1,
        }
        factor = math.prod(window) / math.prod(size)
        for layer in layers:
            weights = graph.constants[layer.inputs[1]].astype(np.float64) * factor
            layer.inputs[1] = new_constant(graph, f"{layer.name}.mean", weights.astype(np.float32))


def means_by_weights(graph: OnnxGraph) -> None:
    """Rewrite in place each mean over windows of no power of two that constant weights alone read.

    It becomes a convolution of each channel, with equal weights: a convolution's sums have any factor.
    """
    consumers = graph.consumers()
    for node in graph.nodes:
        if node.op != "AveragePool" or node.domain or not has_whole_windows(graph, node) or not counts_alike(node):
            continue
        taps = math.prod(node.attributes["kernel_shape"])
        if not taps & (taps - 1) or not _layers_behind(graph, node.outputs[0], consumers):
            continue
        attributes, channels = node.attributes, graph.shape(node.inputs[0])[1]
        weights = np.full((channels, 1, *attributes["kernel_shape"]), 1 / taps, np.float32)
        node.op, node.inputs = "Conv", [node.inputs[0], new_constant(graph, f"{node.name}.mean", weights)]
        node.attributes = {key: attributes[key] for key in ("kernel_shape", "strides", "pads")}
        node.attributes |= {"dilations": [1, 1], "group": channels}


def has_whole_windows(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether a pool's windows are of images, without gaps, and lie within the padded ones."""
    attributes, shape, result = node.attributes, graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    plain = attributes.get("auto_pad", "NOTSET") == "NOTSET" and max(attributes.get("dilations", [1])) == 1
    if len(shape) != 4 or not plain:
        return False
    steps = zip(result[2:], strides, attributes["kernel_shape"], strict=True)
    reach = [(count - 1) * stride + taps for count, stride, taps in steps]
    return all(reach[axis] <= shape[2 + axis] + pads[axis] + pads[2 + axis] for axis in (0, 1))


def counts_alike(pool: OnnxNode) -> bool:
    """Tell whether an average divides the sums of all its windows by the same number: padding counts, if there is any.

    It does not see a pool with ceil_mode, which `write_ceilings_as_pads` rewrites, or auto_pad.
    """
    return not any(pool.attributes.get("pads", ())) or bool(pool.attributes.get("count_include_pad", 0))


def _window(graph: OnnxGraph, node: OnnxNode) -> tuple[int, ...] | None:
    """Return the window of a mean: along each axis it is the whole image, or one. None for another node."""
    if node.domain or node.op not in ("GlobalAveragePool", "AveragePool") or len(graph.shape(node.inputs[0])) != 4:
        return None
    size = tuple(graph.shape(node.inputs[0])[2:])
    if node.op == "GlobalAveragePool":
        return size
    attributes: dict[str, Any] = node.attributes
    window = tuple(attributes["kernel_shape"])
    steps = zip(window, size, attributes.get("strides", (1, 1)), strict=True)
    whole = all(taps == length or taps == step == 1 for taps, length, step in steps)
    plain = not max(attributes.get("pads", [0])) and attributes.get("auto_pad", "NOTSET") == "NOTSET"
    return window if whole and plain else None


def _layers_behind(graph: OnnxGraph, name: str, consumers: dict[str, list[OnnxNode]]) -> list[OnnxNode]:
    """Return the layers with constant weights that read a tensor; none if anything else does."""
    if name in graph.outputs:
        return []
    found: list[OnnxNode] = []
    for reader in consumers.get(name, []):
        if reader.domain or reader.inputs[0] != name or list(reader.inputs).count(name) != 1:
            return []
        if reader.op in _PASSED:
            behind = _layers_behind(graph, reader.outputs[0], consumers)
        else:
            behind = [reader] if _is_plain_layer(graph, reader) else []
        if not behind:
            return []
        found += behind
    return found


def _is_plain_layer(graph: OnnxGraph, node: OnnxNode) -> bool:
    constant = node.op in _LAYERS and node.inputs[1] in graph.constants
    return constant and bool(node.attributes.get("alpha", 1.0) == 1.0)
