"""Images that lie with their channels last for a while, for dense layers by pixel, keep them second.

ConvNeXt's blocks turn an image, normalize its channels, multiply them by matrices, and turn the result back. A
product of channels is a convolution of 1 x 1, so nothing has to be turned but around a normalization, and integers do
not turn there either.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_RANKS = (3, 4)


def keep_channels_second(graph: OnnxGraph) -> None:
    """Rewrite in place the nodes between Transposes that put channels last, and those that put them second again."""
    for node in list(graph.nodes):
        region = _region_of(graph, node)
        if region is not None:
            _turn(graph, region)
    graph.remove_unused()


@dataclass
class _Region:
    """Nodes whose tensors have their channels last.

    Attributes:
        entry: The Transpose in front.
        nodes: The ids of the nodes between.
        tensors: Their tensors.
        exits: The ids of the Transposes behind.
    """

    entry: OnnxNode
    nodes: set[int] = field(default_factory=set)
    tensors: dict[str, None] = field(default_factory=dict)
    exits: set[int] = field(default_factory=set)


def _perms(rank: int) -> tuple[list[int], list[int]]:
    """Return the axes of a Transpose that puts channels last, and of one that puts them second again."""
    return [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]


def _region_of(graph: OnnxGraph, entry: OnnxNode) -> _Region | None:
    """Return the nodes behind a Transpose if all paths from it end in the opposite one, and products are among them."""
    if entry.op != "Transpose" or entry.domain or len(graph.shape(entry.inputs[0])) not in _RANKS:
        return None
    last, second = _perms(len(graph.shape(entry.inputs[0])))
    if list(entry.attributes.get("perm", ())) != last:
        return None
    region, products = _Region(entry, tensors={entry.outputs[0]: None}), 0
    for node in graph.nodes:
        if region.tensors.keys().isdisjoint(node.inputs):
            continue
        if node.op == "Transpose" and not node.domain and list(node.attributes.get("perm", ())) == second:
            region.exits.add(id(node))
        elif _keeps_places(graph, node, region):
            region.nodes.add(id(node))
            region.tensors.update(dict.fromkeys(node.outputs))
            products += node.op == "MatMul"
        else:
            return None
    closed = region.exits and region.tensors.keys().isdisjoint(graph.outputs)
    return region if closed and products else None


def _keeps_places(graph: OnnxGraph, node: OnnxNode, region: _Region) -> bool:
    """Tell whether a node computes each pixel from the same pixel of tensors of the region, and from constants."""
    rank = len(graph.shape(region.entry.inputs[0]))
    if node.domain or len(node.outputs) != 1 or not region.tensors.keys() >= set(graph.computed_inputs(node)):
        return False
    if len(graph.shape(node.outputs[0])) != rank:
        return False
    if node.op == "MatMul":
        weights = graph.constants.get(node.inputs[1])
        return weights is not None and weights.ndim == 2
    if node.op == "LayerNormalization":
        return node.attributes.get("axis", -1) in (-1, rank - 1)
    return node.op in UNARY | BINARY and all(
        graph.constants[name].size in (1, *graph.constants[name].shape[-1:])
        for name in node.inputs
        if name in graph.constants
    )


def _turn(graph: OnnxGraph, region: _Region) -> None:
    """Let the tensors of a region have their channels second."""
    last, second = _perms(len(graph.shape(region.entry.inputs[0])))
    for name in region.tensors:
        graph.shapes[name] = tuple(graph.shape(name)[axis] for axis in second)
    renamed = {region.entry.outputs[0]: region.entry.inputs[0]}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        if node is region.entry:
            continue
        node.inputs = [renamed.get(name, name) for name in node.inputs]
        if id(node) in region.exits:
            renamed[node.outputs[0]] = node.inputs[0]
            if node.outputs[0] in graph.outputs:
                nodes.append(OnnxNode(node.name, "Identity", [node.inputs[0]], list(node.outputs)))
        else:
            nodes += _turned(graph, node, last, second) if id(node) in region.nodes else [node]
    graph.nodes = nodes


def _turned(graph: OnnxGraph, node: OnnxNode, last: list[int], second: list[int]) -> list[OnnxNode]:
    """Return the nodes that compute an operator of a region with channels second."""
    around = [1] * (len(last) - 2)
    if node.op == "MatMul":
        weights = graph.constants[node.inputs[1]].T
        kernel = new_constant(graph, f"{node.name}.kernel", weights.reshape(*weights.shape, *around))
        form = {"kernel_shape": around, "strides": around, "dilations": around, "pads": [0] * 2 * len(around)}
        return [OnnxNode(node.name, "Conv", [node.inputs[0], kernel], node.outputs, {**form, "group": 1})]
    if node.op != "LayerNormalization":
        inputs = [
            new_constant(graph, f"{node.name}.{place}", graph.constants[name].reshape(-1, *around))
            if name in graph.constants and graph.constants[name].size > 1
            else name
            for place, name in enumerate(node.inputs)
        ]
        return [replace(node, inputs=inputs)]
    shape = tuple(np.array(graph.shape(node.outputs[0]))[last].tolist())
    names = [graph.unique(f"{node.outputs[0]}.{part}") for part in ("data", "normal")]
    for name in names:
        graph.shapes[name], graph.dtypes[name] = shape, "float32"
    return [
        OnnxNode(names[0], "Transpose", [node.inputs[0]], [names[0]], {"perm": last}),
        replace(node, inputs=[names[0], *node.inputs[1:]], outputs=[names[1]]),
        OnnxNode(f"{names[1]}.back", "Transpose", [names[1]], list(node.outputs), {"perm": second}),
    ]
