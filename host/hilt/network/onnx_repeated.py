"""Sums of an image and one row, column or pixel of it for each channel: the smaller tensor is repeated first.

VTA repeats rows and columns and adds tensors of one shape, so that such a sum leaves neither VTA nor the integers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_PASSED = UNARY | BINARY | {"AveragePool", "GlobalAveragePool", "MaxPool", "Resize"}
"""Operators between a convolution and a sum that work on the same images."""


def repeat_addends(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a Resize of the smaller one of two added images (N, C, H, W), and their Add; None for another node."""
    source = _smaller(graph, node)
    if not source:
        return None
    result = graph.shape(node.outputs[0])
    repeated = graph.unique(f"{node.name}.repeated")
    graph.shapes[repeated], graph.dtypes[repeated] = result, "float32"
    sizes = new_constant(graph, f"{node.name}.sizes", np.array(result, np.int64))
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    inputs = [repeated if name == source else name for name in node.inputs]
    return [
        OnnxNode(f"{node.name}.repeat", "Resize", [source, "", "", sizes], [repeated], attributes),
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
