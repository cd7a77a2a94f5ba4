"""Discrete Fourier transforms as products with their constant matrices: a layer that VTA computes, or floats.

A DFT of L samples is a product with (L, bins) complex numbers; complex data lie as pairs, so it is one product of
real numbers. A transform of a signal's frames (STFT) is a convolution whose kernels are the windowed waves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reshape_node

_AXIS_AS_INPUT = 20
"""The operator set from which on DFT has its axis as an input."""


def write_transforms(graph: OnnxGraph) -> None:
    """Replace each DFT and STFT of known form in place; others stay."""
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        made = None if node.domain or node.op not in WRITERS else WRITERS[node.op](graph, node)
        nodes += [node] if made is None else made
    if len(nodes) != len(graph.nodes):
        graph.nodes = nodes
        infer_shapes(graph)


def _transform(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a DFT as a product along its axis, which is turned to lie before the pairs."""
    shape, result = list(graph.shape(node.inputs[0])), list(graph.shape(node.outputs[0]))
    axis, inverse = _axis(graph, node), bool(node.attributes.get("inverse", 0))
    length = _number(graph, node, 1)
    if axis is None or length is None or (inverse and node.attributes.get("onesided", 0)):
        return None
    rank = len(shape)
    axis %= rank
    length = length or shape[axis]
    matrix = waves(shape[axis], shape[-1], result[axis], length, inverse)
    perm = [*(place for place in range(rank) if place not in (axis, rank - 1)), axis, rank - 1]
    lines = [shape[place] for place in perm[:-2]]
    turned, flat, product, pairs = (
        graph.unique(f"{node.name}.{part}") for part in ("turned", "flat", "product", "pairs")
    )
    kernel = new_constant(graph, f"{node.name}.waves", matrix)
    back = [perm.index(place) for place in range(rank)]
    return [
        OnnxNode(f"{node.name}.turn", "Transpose", [node.inputs[0]], [turned], {"perm": perm}),
        reshape_node(graph, f"{node.name}.flatten", turned, flat, (*lines, shape[axis] * shape[-1])),
        OnnxNode(node.name, "MatMul", [flat, kernel], [product]),
        reshape_node(graph, f"{node.name}.pair", product, pairs, (*lines, result[axis], 2)),
        OnnxNode(f"{node.name}.turn back", "Transpose", [pairs], list(node.outputs), {"perm": back}),
    ]


def _frames(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return an STFT of a real signal (N, L, 1) as a convolution."""
    shape, result = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    step, window = _number(graph, node, 1), _window(graph, node)
    if not step or window is None or len(shape) != 3 or shape[-1] != 1:
        return None
    length = len(window)
    kernels = (waves(length, 1, result[2], length).T[:, None, :] * window).astype(np.float32)
    line, product, pairs = (graph.unique(f"{node.name}.{part}") for part in ("line", "product", "pairs"))
    kernel = new_constant(graph, f"{node.name}.waves", kernels)
    return [
        reshape_node(graph, f"{node.name}.flatten", node.inputs[0], line, (shape[0], 1, shape[1])),
        OnnxNode(
            node.name,
            "Conv",
            [line, kernel],
            [product],
            {"kernel_shape": [length], "strides": [step], "pads": [0, 0], "dilations": [1], "group": 1},
        ),
        reshape_node(graph, f"{node.name}.pair", product, pairs, (shape[0], result[2], 2, result[1])),
        OnnxNode(f"{node.name}.turn", "Transpose", [pairs], list(node.outputs), {"perm": [0, 3, 1, 2]}),
    ]


def _window(graph: OnnxGraph, node: OnnxNode) -> NDArray[np.float64] | None:
    """Return an STFT's window, ones if it has a length alone; None if either is computed."""
    length = _number(graph, node, 3)
    if not _has(node, 2):
        return np.ones(length) if length else None
    given = graph.constants.get(node.inputs[2])
    return None if given is None or length is None else given.astype(np.float64)


def waves(samples: int, parts: int, bins: int, length: int, inverse: bool = False) -> NDArray[np.float32]:
    """Return the matrix (samples * parts, bins * 2) of a DFT of `length`: real, imaginary.

    Samples past the length count nothing. `parts`: 1 of real data, 2 of pairs.
    """
    angles = np.outer(np.arange(samples), np.arange(bins)) % length * (2 * np.pi / length)
    wave = np.exp(1j * angles) / length if inverse else np.exp(-1j * angles)
    wave[length:] = 0
    rows = [wave, 1j * wave][:parts]
    pairs = np.stack([np.stack([row.real, row.imag], axis=-1) for row in rows], axis=1)
    return np.ascontiguousarray(pairs.reshape(samples * parts, bins * 2), np.float32)


def _axis(graph: OnnxGraph, node: OnnxNode) -> int | None:
    """Return the axis of a DFT; None if it is computed."""
    if graph.opset < _AXIS_AS_INPUT:
        return int(node.attributes.get("axis", 1))
    given = _number(graph, node, 2)
    return -2 if given == 0 and not _has(node, 2) else given


def _number(graph: OnnxGraph, node: OnnxNode, place: int) -> int | None:
    """Return a constant input, 0 if it is left out; None if it is computed."""
    if not _has(node, place):
        return 0
    value: NDArray[Any] | None = graph.constants.get(node.inputs[place])
    return None if value is None else int(value.reshape(()))


def _has(node: OnnxNode, place: int) -> bool:
    return len(node.inputs) > place and bool(node.inputs[place])


WRITERS: Mapping[str, Callable[[OnnxGraph, OnnxNode], list[OnnxNode] | None]] = {"DFT": _transform, "STFT": _frames}
"""The nodes that an operator becomes; None in another form."""
