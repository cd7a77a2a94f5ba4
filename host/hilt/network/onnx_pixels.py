"""Functions of bytes, channel by channel, as tables: the preparation of images in front of a network's first layer.

Pixels have 256 values. Whatever turns them into int8 element by element - a cast, a mean, a scale, a clip - is one
look-up, however many operators it takes; transposes in between move int8 behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt_runtime import operators

_VALUES = 256


@dataclass(frozen=True)
class Pixels:
    """Floats that depend on one tensor of bytes, element by element and channel by channel.

    Attributes:
        source: The tensor of bytes.
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
    values = _evaluated(graph, nodes, source, axis, order) if len(places) < 2 else None
    return None if values is None else Pixels(source, axis, tuple(order), values, tuple(node.name for node in nodes))


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
    graph: OnnxGraph, nodes: list[OnnxNode], source: str, axis: int, order: list[int]
) -> NDArray[np.float32] | None:
    """Return the floats of each channel's 256 bytes; None if the nodes make something else of them."""
    rank = len(order)
    if rank < 2:
        return None
    channels = graph.shape(source)[axis] if any(_varying(graph, node, rank) for node in nodes) else 1
    other = rank - 1 if axis != rank - 1 else 0
    pixels = np.broadcast_to(np.arange(_VALUES, dtype=np.uint8), (channels, *[1] * (rank - 2), _VALUES))
    made = _results(graph, nodes, source, np.moveaxis(pixels, (0, -1), (axis, other)))
    found = (order.index(axis), order.index(other))
    if made.dtype != np.float32 or made.ndim != rank or made.size != pixels.size:
        return None
    return np.moveaxis(made, found, (0, -1)).reshape(channels, _VALUES).copy()


def _results(graph: OnnxGraph, nodes: list[OnnxNode], source: str, given: NDArray[np.uint8]) -> NDArray[Any]:
    values: dict[str, NDArray[Any]] = {source: given}
    with np.errstate(all="ignore"):
        for node in nodes:
            inputs = [graph.constants.get(name, values.get(name)) if name else None for name in node.inputs]
            values[node.outputs[0]] = operators.run(node.op, inputs, node.attributes)[0]
    return values[nodes[-1].outputs[0]]
