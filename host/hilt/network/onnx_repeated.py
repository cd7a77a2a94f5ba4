"""Repeated values: an Expand or Tile of pixels, and sums of an image and one row, column or pixel of each channel.

VTA repeats rows and columns and adds tensors of one shape, so that neither leaves VTA or the integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_PASSED = UNARY | BINARY | {"AveragePool", "GlobalAveragePool", "MaxPool", "Resize"}
"""Operators between a convolution and a sum that work on the same images."""


_MOST_COPIES = 8
"""So often at most a Tile repeats more than one value, to be a Concat."""


def repeat_pixels(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a Resize for an Expand or Tile of pixels, or of one place of sequences, and an Expand for another Tile.

    None for another node, and for a Tile of more than one value that neither can repeat.
    """
    grown = _grown(graph, node)
    if not grown:
        return None
    before, after = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    if any(before[axis] != 1 for axis in grown):
        return _copies(graph, node, grown)
    if min(grown) >= 2 and len(after) in (3, 4):
        return [_resized(graph, node.name, node.inputs[0], node.outputs[0])]
    shape = new_constant(graph, f"{node.name}.shape", np.array(after, np.int64))
    return [OnnxNode(node.name, "Expand", [node.inputs[0], shape], list(node.outputs))]


def _grown(graph: OnnxGraph, node: OnnxNode) -> list[int]:
    """Return the axes along which an Expand or Tile repeats floats; none for another node, or a further axis."""
    if node.op not in ("Expand", "Tile") or node.inputs[1] not in graph.constants:
        return []
    before, after = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    if graph.dtypes.get(node.inputs[0], "float32") != "float32" or len(before) != len(after):
        return []
    return [axis for axis in range(len(after)) if before[axis] != after[axis]]


def _copies(graph: OnnxGraph, node: OnnxNode, grown: Sequence[int]) -> list[OnnxNode] | None:
    """Return a Concat of the data with itself for a Tile along one axis, if the copies are few."""
    if len(grown) != 1:
        return None
    copies = int(graph.constants[node.inputs[1]].reshape(-1)[grown[0]])
    if copies > _MOST_COPIES:
        return None
    return [OnnxNode(node.name, "Concat", [node.inputs[0]] * copies, list(node.outputs), {"axis": grown[0]})]


def _resized(graph: OnnxGraph, name: str, source: str, result: str) -> OnnxNode:
    """Return the Resize that repeats rows and columns of a tensor."""
    sizes = new_constant(graph, f"{name}.sizes", np.array(graph.shape(result), np.int64))
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return OnnxNode(name, "Resize", [source, "", "", sizes], [result], attributes)


def repeat_addends(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a Resize of the smaller one of two added images (N, C, H, W), and their Add; None for another node."""
    source = _smaller(graph, node)
    if not source:
        return None
    result = graph.shape(node.outputs[0])
    repeated = graph.unique(f"{node.name}.repeated")
    graph.shapes[repeated], graph.dtypes[repeated] = result, "float32"
    inputs = [repeated if name == source else name for name in node.inputs]
    return [
        _resized(graph, f"{node.name}.repeat", source, repeated),
        OnnxNode(node.name, "Add", inputs, list(node.outputs)),
    ]


def _smaller(graph: OnnxGraph, node: OnnxNode) -> str:
    """Return the smaller addend of such a sum; "" for any other node."""
    producers = graph.producers() if node.op == "Add" else {}
    if not all(_is_of_images(name, producers) for name in node.inputs):
        return ""
    result = graph.shape(node.outputs[0])
    small = [name for name in node.inputs if graph.shape(name) != result]
    if len(small) != 1 or len(result) != 4 or graph.shape(small[0])[:2] != result[:2]:
        return ""
    return small[0]


def _is_of_images(name: str, producers: Mapping[str, OnnxNode]) -> bool:
    """Return whether a convolution makes a tensor, or operators on its images alone follow it."""
    while name in producers and not producers[name].domain and producers[name].op in _PASSED:
        name = producers[name].inputs[0]
    return name in producers and not producers[name].domain and producers[name].op == "Conv"
