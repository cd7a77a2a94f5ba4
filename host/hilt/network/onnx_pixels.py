"""Functions of bytes, channel by channel, as tables: the preparation of images, and PRelu between layers.

Pixels and int8 have 256 values. Whatever turns them into int8 element by element - a cast, a mean, a scale, a clip - is
one look-up, however many operators it takes; transposes in between move int8 behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt_runtime import operators
from hilt_runtime.fixed_point import MOST_OFFSET

_VALUES = 256
_FLOAT_STEP = 2.0**-23
_BYTES = np.arange(_VALUES, dtype=np.uint8)
_MOST_FACTOR = (1 << 15) - 1
_MOST_LEFT = 4
"""Factors of more than 2^4 have steps of 2^-10 and more, in which 128 is an eighth of a step off."""


@dataclass(frozen=True)
class Pixels:
    """Floats that depend on one tensor of bytes, element by element and channel by channel.

    Attributes:
        source: The tensor of bytes, or of floats in steps of int8.
        axis: Its axis of channels.
        perm: The axes of `source` in the order of the floats'.
        values: The floats of each channel's bytes: (C, 256), or (1, 256) where the channels are alike.
        nodes: The names of the nodes between both.
    """

    source: str
    axis: int
    perm: tuple[int, ...]
    values: NDArray[np.float32]
    nodes: tuple[str, ...]


def pixels_of(graph: OnnxGraph, name: str, producers: Mapping[str, OnnxNode]) -> Pixels | None:
    """Return the bytes that floats depend on; None if they depend on anything else."""
    nodes = _chain(graph, name, producers)
    if "Cast" not in {node.op for node in nodes}:
        return None
    source = graph.computed_inputs(nodes[0])[0]
    order = list(range(len(graph.shape(source))))
    places: set[int] = set()
    for node in nodes:
        if node.op == "Transpose":
            order = [order[axis] for axis in node.attributes["perm"]]
        places |= {order[axis] for axis in _varying(graph, node, len(order))}
    axis = min(places, default=0)
    values = _evaluated(graph, nodes, source, axis, order, _BYTES) if len(places) < 2 else None
    return None if values is None else Pixels(source, axis, tuple(order), values, tuple(node.name for node in nodes))


def channels_of(
    graph: OnnxGraph, name: str, producers: Mapping[str, OnnxNode], scale_of: Callable[[str], float | None]
) -> Pixels | None:
    """Return the int8 tensor that floats depend on, element by element, otherwise in each channel; None of others.

    `scale_of` tells the steps of floats that int8 stands for, None of other tensors. Bytes are in the order of uint8.
    """
    nodes: list[OnnxNode] = []
    while (scale := scale_of(name)) is None:
        node = producers.get(name)
        if node is None or node.op not in UNARY | BINARY or not _is_of_one(graph, node):
            return None
        nodes.insert(0, node)
        name = graph.computed_inputs(node)[0]
    order = list(range(len(graph.shape(name))))
    places = {axis for node in nodes for axis in _varying(graph, node, len(order))}
    if len(places) != 1:
        return None
    steps = np.arange(_VALUES, dtype=np.uint8).view(np.int8).astype(np.float32) * np.float32(scale)
    (axis,) = places
    values = _evaluated(graph, nodes, name, axis, order, steps)
    return None if values is None else Pixels(name, axis, tuple(order), values, tuple(node.name for node in nodes))


@dataclass(frozen=True)
class Factors:
    """The two factors of each channel that a PRelu multiplies int8 by: (2, C) in steps of 2^(left - 15).

    `offset` is added to the products.
    """

    steps: NDArray[np.int16]
    left: int
    offset: int


def factors_of(values: NDArray[np.float32]) -> Factors | None:
    """Return the factors whose multiples each channel's values (C, 256) are, but for a whole number of all channels.

    Returns:
        None of other values, and of large factors and numbers.

    Values are in steps of int8 and in the order of uint8: the first half is of 0 to 127.
    """
    if not np.isfinite(values).all() or abs(values[0, 0]) > MOST_OFFSET:
        return None
    offset = round(float(values[0, 0]))
    products = values.astype(np.float64) - offset
    positive, negative = products[:, 127] / 127, products[:, 128] / -128
    whole = np.where(_BYTES < 128, positive[:, None], negative[:, None]) * _BYTES.view(np.int8)
    largest = max(float(np.abs(positive).max()), float(np.abs(negative).max()))
    if not np.allclose(products, whole, rtol=1e-5, atol=1e-5 * largest + _FLOAT_STEP * abs(offset)):
        return None
    left = next((left for left in range(_MOST_LEFT + 1) if largest * 2 ** (15 - left) <= _MOST_FACTOR), None)
    if left is None:
        return None
    steps = np.rint(np.stack([positive, negative]) * 2.0 ** (15 - left)).astype(np.int16)
    return Factors(steps, left, offset)


def _chain(graph: OnnxGraph, name: str, producers: Mapping[str, OnnxNode]) -> list[OnnxNode]:
    """Return the nodes from bytes to floats, in order; none if they read other tensors, or start at no bytes."""
    nodes: list[OnnxNode] = []
    while graph.dtypes.get(name) != "uint8" or name in producers:
        node = producers.get(name)
        if node is None or not _is_of_one(graph, node):
            return []
        nodes.insert(0, node)
        name = graph.computed_inputs(node)[0]
    return nodes


def _is_of_one(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether a node turns one tensor, or computes each element of one and of constants, at the same place."""
    computed = graph.computed_inputs(node)
    if node.domain or len(computed) != 1 or node.inputs.count(computed[0]) != 1:
        return False
    if node.op == "Transpose":
        return "perm" in node.attributes
    return node.op in UNARY | BINARY | {"Cast"} and len(graph.shape(node.outputs[0])) == len(graph.shape(computed[0]))


def _varying(graph: OnnxGraph, node: OnnxNode, rank: int) -> set[int]:
    """Return the axes of a node's output along which its constants vary."""
    shapes = [graph.constants[name].shape for name in node.inputs if name in graph.constants]
    return {rank - len(shape) + place for shape in shapes for place, size in enumerate(shape) if size != 1}


def _evaluated(
    graph: OnnxGraph, nodes: list[OnnxNode], source: str, axis: int, order: list[int], given: NDArray[Any]
) -> NDArray[np.float32] | None:
    """Return the floats of each channel's bytes, which are `given` (256,); None if the nodes make something else."""
    rank = len(order)
    if rank < 2:
        return None
    channels = graph.shape(source)[axis] if any(_varying(graph, node, rank) for node in nodes) else 1
    other = rank - 1 if axis != rank - 1 else 0
    pixels = np.broadcast_to(given, (channels, *[1] * (rank - 2), _VALUES))
    made = _results(graph, nodes, source, np.moveaxis(pixels, (0, -1), (axis, other)))
    found = (order.index(axis), order.index(other))
    if made.dtype != np.float32 or made.ndim != rank or made.size != pixels.size:
        return None
    return np.moveaxis(made, found, (0, -1)).reshape(channels, _VALUES).copy()


def _results(graph: OnnxGraph, nodes: list[OnnxNode], source: str, given: NDArray[Any]) -> NDArray[Any]:
    values: dict[str, NDArray[Any]] = {source: given}
    with np.errstate(all="ignore"):
        for node in nodes:
            inputs = [graph.constants.get(name, values.get(name)) if name else None for name in node.inputs]
            values[node.outputs[0]] = operators.run(node.op, inputs, node.attributes)[0]
    return values[nodes[-1].outputs[0]]
