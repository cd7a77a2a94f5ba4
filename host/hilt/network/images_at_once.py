"""A graph of one image as a graph of several: for accelerators with batch lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hilt.network.graph import OPERATORS, Graph, GraphError, Node, Tensor, check


def with_images(graph: Graph, images: int) -> Graph:
    """Return the graph for so many images at once.

    Raises:
        GraphError: It has more than one image already, or a node that mixes or moves images.
    """
    if images == 1:
        return graph
    require_single_image(graph.tensors.values())
    made = replace(
        graph,
        nodes=tuple(replace(node, attributes=_attributes(graph, node, images)) for node in graph.nodes),
        tensors={name: replace(each, shape=(images, *each.shape[1:])) for name, each in graph.tensors.items()},
    )
    check(made)
    return made


def require_single_image(tensors: Iterable[Tensor]) -> None:
    """Raise GraphError if a tensor's first axis is no single image."""
    for tensor in without_single_image(tensors):
        raise GraphError(f"tensor {tensor.name} has shape {tensor.shape}: its first axis is no single image")


def without_single_image(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the tensors whose first axis is no single image."""
    return [tensor for tensor in tensors if tensor.shape[:1] != (1,)]


def _attributes(graph: Graph, node: Node, images: int) -> Mapping[str, Any]:
    if node.op not in OPERATORS:
        raise GraphError(f"node {node.name} ({node.op}) may mix images")
    attributes = dict(node.attributes)
    if "shape" in attributes:
        attributes["shape"] = [images, *attributes["shape"][1:]]
    rank = len(graph.tensors[node.outputs[0]].shape)
    named = [*attributes.get("axes", ()), *([attributes["axis"]] if "axis" in attributes else ())]
    axes = [axis % rank for axis in named]
    pads = attributes["pads"] if node.op == "pad" else [0] * 2 * rank
    if 0 in axes or attributes.get("perm", [0])[0] != 0 or pads[0] or pads[rank]:
        raise GraphError(f"node {node.name} ({node.op}) works along the images")
    return attributes
