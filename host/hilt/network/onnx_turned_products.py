"""Products of pixels whose result is turned to channels first, as convolutions of 1 x 1.

A network with channels last multiplies each pixel by a matrix, and turns the result for its next convolution. The
Transpose goes in front of the product, where it meets another one or the input's packing, and VTA keeps the image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hilt.network.elementwise import UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reshape_node

_FIRST = {4: [0, 3, 1, 2], 3: [0, 2, 1]}
"""Channels last to channels first, by rank."""
_PIXELS = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": 1}
_NOT_CONSTANT = np.empty(0)
_TERMS = frozenset(("Add", "Sub", "Mul", "Div", "Max", "Min"))


def turn_products(graph: OnnxGraph) -> None:
    """Rewrite in place, from the last turned product to the first."""
    while True:
        producers, consumers = graph.producers(), graph.consumers()
        for turn in graph.nodes:
            chain = _chain(graph, turn, producers, consumers)
            if chain:
                _turn(graph, turn, chain)
                break
        else:
            return


def _chain(
    graph: OnnxGraph, turn: OnnxNode, producers: Mapping[str, OnnxNode], consumers: Mapping[str, list[OnnxNode]]
) -> list[OnnxNode]:
    """Return a product's Reshape, Gemm and Reshape, and the operators up to a Transpose; nothing if there is none."""
    shape = graph.shapes.get(turn.inputs[0], ()) if turn.op == "Transpose" and not turn.domain else ()
    if turn.attributes.get("perm") != _FIRST.get(len(shape)) or not shape:
        return []
    if len(shape) == 3 and not _meets_convolution(turn.outputs[0], consumers):
        return []
    chain: list[OnnxNode] = []
    name = turn.inputs[0]
    while len(consumers.get(name, ())) == 1 and name not in graph.outputs and name in producers:
        node = producers[name]
        chain.insert(0, node)
        if node.op == "Gemm":
            return _whole(graph, chain, producers, consumers)
        if node.domain or not (node.op == "Reshape" or _is_by_channel(graph, node)):
            return []
        name = node.inputs[0]
    return []


def _whole(
    graph: OnnxGraph, chain: list[OnnxNode], producers: Mapping[str, OnnxNode], consumers: Mapping[str, list[OnnxNode]]
) -> list[OnnxNode]:
    """Return a chain from a Gemm on with the Reshape in front of it, if both Reshapes only drop and add image sides."""
    gemm, *behind = chain
    flat = producers.get(gemm.inputs[0])
    if flat is None or flat.op != "Reshape" or len(consumers[gemm.inputs[0]]) > 1 or gemm.domain:
        return []
    if not behind or behind[0].op != "Reshape" or any(node.op == "Reshape" for node in behind[1:]):
        return []
    if len(gemm.inputs) > 2 or gemm.inputs[1] not in graph.constants or gemm.attributes != {"transB": 1}:
        return []
    source, result = graph.shape(flat.inputs[0]), graph.shape(behind[0].outputs[0])
    whole = source[:-1] == result[:-1] and source[-1] == graph.shape(gemm.inputs[0])[-1]
    return [flat, *chain] if whole and len(source) == len(result) else []


def _turn(graph: OnnxGraph, turn: OnnxNode, chain: list[OnnxNode]) -> None:
    """Put the Transpose in front of a chain."""
    flat, gemm, _, *behind = chain
    source, rank = flat.inputs[0], len(graph.shape(flat.inputs[0]))
    weights = graph.constants[gemm.inputs[1]]
    batch, *sides, channels = graph.shape(source)
    nodes: list[OnnxNode] = []

    def add(operator: str, name: str, inputs: list[str], shape: tuple[int, ...], attributes: Any = None) -> str:
        result = graph.unique(f"{name}.first")
        graph.shapes[result], graph.dtypes[result] = shape, "float32"
        nodes.append(OnnxNode(name, operator, inputs, [result], dict(attributes or {})))
        return result

    def reshaped(name: str, data: str, shape: tuple[int, ...]) -> str:
        if rank == 4:
            return data
        result = graph.unique(f"{name}.shaped")
        nodes.append(reshape_node(graph, name, data, result, shape))
        return result

    image, result = ([1] * (4 - rank) + sides), (batch, len(weights), *sides)
    kernel = new_constant(graph, f"{gemm.name}.kernel", weights[:, :, None, None])
    data = add("Transpose", turn.name, [source], (batch, channels, *sides), turn.attributes)
    data = reshaped(f"{gemm.name}.rows", data, (batch, channels, *image))
    data = add("Conv", gemm.name, [data, kernel], (batch, len(weights), *image), _PIXELS)
    data = reshaped(f"{gemm.name}.back", data, result)
    for node in behind:
        inputs = [data, *(_first(graph, name, node.name, rank) for name in node.inputs[1:])]
        data = add(node.op, node.name, inputs, result, node.attributes)
    nodes[-1].outputs[:] = turn.outputs
    gone = {id(node) for node in chain}
    graph.nodes = [
        made for node in graph.nodes if id(node) not in gone for made in (nodes if node is turn else [node])
    ]
    infer_shapes(graph)


def _first(graph: OnnxGraph, name: str, stem: str, rank: int) -> str:
    """Return a constant by channel as one of channels first."""
    if name not in graph.constants or graph.constants[name].size == 1:
        return name
    value = graph.constants[name]
    return new_constant(graph, f"{stem}.by_channel", value.reshape(-1, *[1] * (rank - 2)))


def _is_by_channel(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Return whether a node works on each element alone, with constants of each channel at most."""
    if node.op in UNARY:
        return all(not name or graph.constants.get(name, _NOT_CONSTANT).size == 1 for name in node.inputs[1:])
    if node.op not in _TERMS or len(node.inputs) != 2 or node.inputs[1] not in graph.constants:
        return False
    value = graph.constants[node.inputs[1]]
    by_channel = value.size == 1 or value.size == value.shape[-1]
    return by_channel and value.ndim <= len(graph.shape(node.inputs[0]))


def _meets_convolution(name: str, consumers: Mapping[str, list[OnnxNode]]) -> bool:
    """Return whether a convolution reads a tensor, as it is or in another shape."""
    readers = consumers.get(name, [])
    return any(
        reader.op == "Conv" or (reader.op == "Reshape" and _meets_convolution(reader.outputs[0], consumers))
        for reader in readers
        if not reader.domain
    )
