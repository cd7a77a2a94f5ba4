"""Means and maxima over the channels of an image between layers: a convolution, and a pooling.

Spatial attention (CBAM) joins both, and a convolution reads them. As floats all channels would leave the integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes, reshape_node

_LAYERS = ("Conv", "ConvTranspose", "Gemm")
_MOVES = ("Concat", "Pad", "Reshape")


def pool_channels(graph: OnnxGraph) -> None:
    """Rewrite in place. A layer must be in front, and layers alone may read the result, joined or not.

    Means that a norm subtracts stay floats.
    """
    behind, consumers = _behind_layers(graph), graph.consumers()
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        between = node.inputs and node.inputs[0] in behind and _reaches_layers(graph, node.outputs[0], consumers)
        nodes += (_rewritten(graph, node) if between and not node.domain else None) or [node]
    graph.nodes = nodes


def _behind_layers(graph: OnnxGraph) -> set[str]:
    """Return the tensors that depend on a layer."""
    found: set[str] = set()
    for node in graph.nodes:
        if node.op in _LAYERS or not found.isdisjoint(node.inputs):
            found.update(node.outputs)
    return found


def _reaches_layers(graph: OnnxGraph, name: str, consumers: Mapping[str, Sequence[OnnxNode]]) -> bool:
    """Tell whether layers alone read a tensor, moved and joined at most."""
    readers = consumers.get(name, ())
    return (
        bool(readers)
        and name not in graph.outputs
        and all(
            reader.op in _LAYERS or (reader.op in _MOVES and _reaches_layers(graph, reader.outputs[0], consumers))
            for reader in readers
        )
    )


def _rewritten(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    if node.op not in ("ReduceMax", "ReduceMean"):
        return None
    shape = graph.shape(node.inputs[0])
    if len(shape) != 4 or graph.dtypes.get(node.inputs[0], "float32") != "float32":
        return None
    if reduced_axes(graph, node, 4) != [1]:
        return None
    images, channels, height, width = shape
    source, nodes, pooled = node.inputs[0], list[OnnxNode](), graph.unique(f"{node.name}.pooled")
    if node.op == "ReduceMean":
        weights = np.full((1, channels, 1, 1), 1 / channels, np.float32)
        made, attributes = (images, 1, height, width), {"kernel_shape": [1, 1], "dilations": [1, 1], "group": 1}
        pool = OnnxNode(node.name, "Conv", [source, new_constant(graph, f"{node.name}.mean", weights)], [pooled])
    else:
        lines, made = graph.unique(f"{node.name}.lines"), (images, 1, 1, height * width)
        nodes.append(reshape_node(graph, f"{node.name}.lines", source, lines, (images, 1, channels, height * width)))
        attributes = {"kernel_shape": [channels, 1]}
        pool = OnnxNode(node.name, "MaxPool", [lines], [pooled])
    pool.attributes = {**attributes, "strides": [1, 1], "pads": [0] * 4}
    graph.shapes[pooled], graph.dtypes[pooled] = made, "float32"
    result = node.outputs[0]
    return [*nodes, pool, reshape_node(graph, f"{node.name}.shape", pooled, result, graph.shape(result))]
