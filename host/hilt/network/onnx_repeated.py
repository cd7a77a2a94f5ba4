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
    """Return a Resize and an Add for a sum of two results of convolutions (N, C, H, W), of which one is smaller."""
    if node.op != "Add" or any(name in graph.constants for name in node.inputs):
        return None
    result, shapes = graph.shape(node.outputs[0]), [graph.shape(name) for name in node.inputs]
    small = [place for place, shape in enumerate(shapes) if shape != result]
    if len(small) != 1 or len(result) != 4 or shapes[small[0]][:2] != result[:2]:
        return None
    producers = graph.producers()
    if not all(_is_of_images(name, producers) for name in node.inputs):
        return None
    source = node.inputs[small[0]]
    repeated = graph.unique(f"{node.name}.repeated")
    graph.shapes[repeated], graph.dtypes[repeated] = result, "float32"
    sizes = new_constant(graph, f"{node.name}.sizes", np.array(result, np.int64))
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    inputs = [repeated if place in small else name for place, name in enumerate(node.inputs)]
    return [
        OnnxNode(f"{node.name}.repeat", "Resize", [source, "", "", sizes], [repeated], attributes),
        OnnxNode(node.name, "Add", inputs, list(node.outputs)),
    ]


def _is_of_images(name: str, producers: Mapping[str, OnnxNode]) -> bool:
    """Return whether a convolution makes a tensor, or is followed by what works on its images alone."""
    while name in producers and not producers[name].domain and producers[name].op in _PASSED:
        name = producers[name].inputs[0]
    return name in producers and not producers[name].domain and producers[name].op == "Conv"
