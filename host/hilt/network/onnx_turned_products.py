"""Products of pixels whose result is turned to channels first, as convolutions of 1 x 1.

A network with channels last multiplies each pixel by a matrix, and turns the result for its next convolution. The
Transpose goes in front of the product, where it meets another one or the input's packing, and VTA keeps the image.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hilt.network.elementwise import UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_FIRST = {4: [0, 3, 1, 2], 3: [0, 2, 1]}
"""Channels last to channels first, by rank."""
_TERMS = frozenset(("Add", "Sub", "Mul", "Div", "Max", "Min"))


def turn_products(graph: OnnxGraph) -> None:
    """Rewrite in place a fixed float graph, from the last turned product to the first."""
    while True:
        producers, consumers = graph.producers(), graph.consumers()
        found = ((turn, _chain(graph, turn, producers, consumers)) for turn in graph.nodes)
        turn, chain = next((each for each in found if each[1]), (None, []))
        if turn is None:
            return
        _turn(graph, turn, chain)


def _chain(
    graph: OnnxGraph, turn: OnnxNode, producers: Mapping[str, OnnxNode], consumers: Mapping[str, list[OnnxNode]]
) -> list[OnnxNode]:
    """Return a product and the operators between it and a Transpose; nothing if there is no product."""
    if not _turns_channels(graph, turn, consumers):
        return []
    chain: list[OnnxNode] = []
    name = turn.inputs[0]
    while len(consumers[name]) == 1 and name not in graph.outputs and name in producers:
        node = producers[name]
        chain.insert(0, node)
        if _is_product(graph, node):
            return chain
        if not _is_by_channel(graph, node):
            break
        name = node.inputs[0]
    return []


def _turns_channels(graph: OnnxGraph, node: OnnxNode, consumers: Mapping[str, list[OnnxNode]]) -> bool:
    """Return whether a node turns channels last to channels first; those of sequences for a convolution alone."""
    if node.op != "Transpose" or node.domain:
        return False
    rank = len(graph.shape(node.inputs[0]))
    if node.attributes.get("perm") != _FIRST.get(rank, ()):
        return False
    return rank == 4 or any(reader.op == "Conv" for reader in consumers.get(node.outputs[0], ()))


def _is_product(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Return whether a node multiplies each pixel of a tensor by one constant matrix."""
    constant = node.op == "MatMul" and not node.domain and node.inputs[1] in graph.constants
    if not constant or node.inputs[0] in graph.constants:
        return False
    return graph.constants[node.inputs[1]].ndim == 2


def _is_by_channel(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Return whether a node works on each element of its first input, with a constant for each channel at most."""
    if node.domain or node.op not in UNARY | _TERMS:
        return False
    constants = [graph.constants.get(name) for name in node.inputs[1:] if name]
    most = graph.shape(node.outputs[0])[-1] if node.op in _TERMS else 1
    shapes = [None if value is None else (value.shape[-1:] or (1,), value.size) for value in constants]
    return all(shape in (((1,), 1), ((most,), most)) for shape in shapes)


def _turn(graph: OnnxGraph, turn: OnnxNode, chain: list[OnnxNode]) -> None:
    """Put the Transpose in front of a product; the operators behind it have channels first then."""
    product, *behind = chain
    source, weights = product.inputs[0], graph.constants[product.inputs[1]].T
    batch, *sides, channels = graph.shape(source)
    ones = [1] * len(sides)
    nodes: list[OnnxNode] = []

    def add(node: OnnxNode, operator: str, inputs: list[str], count: int, attributes: dict[str, object]) -> str:
        result = graph.unique(f"{node.name}.first")
        graph.shapes[result], graph.dtypes[result] = (batch, count, *sides), "float32"
        nodes.append(OnnxNode(node.name, operator, inputs, [result], attributes))
        return result

    data = add(turn, "Transpose", [source], channels, turn.attributes)
    kernel = new_constant(graph, f"{product.name}.kernel", np.ascontiguousarray(weights).reshape(*weights.shape, *ones))
    data = add(product, "Conv", [data, kernel], len(weights), {"kernel_shape": ones})
    for node in behind:
        constants = (_first(graph, name, node.name, ones) for name in node.inputs[1:])
        data = add(node, node.op, [data, *constants], len(weights), node.attributes)
    nodes[-1].outputs[:] = turn.outputs
    gone = {id(node) for node in chain}
    graph.nodes = [made for node in graph.nodes if id(node) not in gone for made in (nodes if node is turn else [node])]


def _first(graph: OnnxGraph, name: str, stem: str, ones: list[int]) -> str:
    """Return a constant by channel as one of channels first."""
    if not name or graph.constants[name].size == 1:
        return name
    return new_constant(graph, f"{stem}.by_channel", graph.constants[name].reshape(-1, *ones))
