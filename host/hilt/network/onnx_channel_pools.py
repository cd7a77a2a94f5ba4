"""Means and maxima over the channels of an image between layers: a convolution, and a pooling.

Spatial attention (CBAM) joins both, and a convolution reads them. As floats all channels would leave the integers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes, reshape_node

_LAYERS = ("Conv", "ConvTranspose", "Gemm")


def pool_channels(graph: OnnxGraph) -> None:
    """Rewrite in place."""
    behind, before = _reached(graph.nodes), _reached(reversed(graph.nodes), backwards=True)
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        between = node.inputs and node.inputs[0] in behind and node.outputs[0] in before
        nodes += (_rewritten(graph, node) if between and not node.domain else None) or [node]
    graph.nodes = nodes


def _reached(nodes: Iterable[OnnxNode], *, backwards: bool = False) -> set[str]:
    """Return the tensors that depend on a layer, or those that a layer depends on."""
    found: set[str] = set()
    for node in nodes:
        read, made = (node.outputs, node.inputs) if backwards else (node.inputs, node.outputs)
        if node.op in _LAYERS or not found.isdisjoint(read):
            found.update(name for name in made if name)
    return found


def _rewritten(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    if node.op not in ("ReduceMax", "ReduceMean"):
        return None
    shape = graph.shape(node.inputs[0])
    if len(shape) != 4 or graph.dtypes.get(node.inputs[0], "float32") != "float32":
        return None
    if reduced_axes(graph, node, 4) != [1]:
        return None
    images, channels, height, width = shape
    source, nodes, pooled = node.inputs[0], [], graph.unique(f"{node.name}.pooled")
    if node.op == "ReduceMean":
        weights = np.full((1, channels, 1, 1), 1 / channels, np.float32)
        made, attributes = (images, 1, height, width), {"kernel_shape": [1, 1], "dilations": [1, 1], "group": 1}
        pool = OnnxNode(node.name, "Conv", [source, new_constant(graph, f"{node.name}.mean", weights)], [pooled])
    else:
        lines, made = graph.unique(f"{node.name}.lines"), (images, 1, 1, height * width)
        nodes.append(_reshape(graph, f"{node.name}.lines", source, lines, (images, 1, channels, height * width)))
        attributes = {"kernel_shape": [channels, 1]}
        pool = OnnxNode(node.name, "MaxPool", [lines], [pooled])
    pool.attributes = {**attributes, "strides": [1, 1], "pads": [0] * 4}
    graph.shapes[pooled], graph.dtypes[pooled] = made, "float32"
    return [*nodes, pool, _reshape(graph, f"{node.name}.shape", pooled, node.outputs[0], graph.shape(node.outputs[0]))]


def _reshape(graph: OnnxGraph, name: str, source: str, result: str, shape: tuple[int, ...]) -> OnnxNode:
    graph.shapes[result], graph.dtypes[result] = shape, "float32"
    return reshape_node(graph, name, source, result, shape)
