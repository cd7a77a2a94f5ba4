"""Pads of a constant in front of convolutions: VTA adds them to its sums, and nothing pads (`hilt.schedule.border`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hilt.network.graph import PAD_VALUE, Graph, Node

_MOST_PADS = 15


def with_borders(graph: Graph, apart: Collection[str] = ()) -> Graph:
    """Return a graph whose convolutions have the constants that a Pad in front of them puts around their data.

    Args:
        graph: The integer graph.
        apart: Convolutions that keep their Pad.
    """
    readers = graph.consumers()
    nodes: list[Node] = []
    pads: dict[str, Node] = {}
    for node in graph.nodes:
        taken = node.op == "pad" and "mode" not in node.attributes and node.outputs[0] not in graph.outputs
        if taken and all(_takes(reader, node, apart) for reader in readers[node.outputs[0]]):
            pads[node.outputs[0]] = node
        else:
            pad = pads.get(node.inputs[0]) if node.inputs else None
            nodes.append(node if pad is None else _bordered(node, pad))
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in pads}
    return replace(graph, nodes=tuple(nodes), tensors=tensors) if pads else graph


def _takes(reader: Node, pad: Node, apart: Collection[str]) -> bool:
    """Return whether a node can have the constant of a Pad around its data."""
    pads, own = pad.attributes["pads"], reader.attributes
    images = len(pads) == 8 and not any(pads[axis] for axis in (0, 1, 4, 5)) and max(pads) <= _MOST_PADS
    plain = reader.op == "conv2d" and not any(own["pads"]) and max(own.get("input_dilation", [1])) == 1
    return images and plain and reader.name not in apart and pad.outputs[0] not in reader.inputs[1:]


def _bordered(node: Node, pad: Node) -> Node:
    """Return a convolution with the constant of a Pad around its data."""
    pads = pad.attributes["pads"]
    attributes = {**node.attributes, "pads": [*pads[2:4], *pads[6:8]], PAD_VALUE: pad.attributes["value"]}
    inputs, source = (*pad.inputs, *node.inputs[1:]), (*pad.source, *node.source)
    return replace(node, inputs=inputs, attributes=attributes, source=source)
