"""Products of floats with a number in front of a quantisation, which multiplies by it in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hilt.network.graph import Graph, Node


def with_multiplied_steps(graph: Graph) -> Graph:
    """Return a graph with the same outputs, whose quantisations do the work of products that they alone read."""
    products = _products(graph)
    gone = {product.name for product in products.values()}
    nodes = tuple(
        _multiplied(graph, node, products[node.name]) if node.name in products else node
        for node in graph.nodes
        if node.name not in gone
    )
    return _with_nodes(graph, nodes) if products else graph


def _with_nodes(graph: Graph, nodes: tuple[Node, ...]) -> Graph:
    """Return a graph with other nodes, without the tensors and constants that they do not have."""
    named = {*graph.inputs, *graph.outputs, *(name for node in nodes for name in (*node.inputs, *node.outputs))}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name in named}
    constants = {name: value for name, value in graph.constants.items() if name in named}
    return replace(graph, nodes=nodes, tensors=tensors, constants=constants)


def _products(graph: Graph) -> dict[str, Node]:
    """Return the products that quantisations do the work of, by the names of these."""
    makers, readers = graph.producer(), graph.consumers()
    found = ((node.name, makers.get(node.inputs[0])) for node in graph.nodes if node.op == "quantize")
    return {name: maker for name, maker in found if maker is not None and _is_product(graph, maker, readers)}


def _multiplied(graph: Graph, node: Node, product: Node) -> Node:
    factor = float(graph.constants[product.inputs[1]].reshape(()))
    source = (*product.source, *node.source)
    return replace(node, inputs=product.inputs[:1], attributes={**node.attributes, "factor": factor}, source=source)


def _is_product(graph: Graph, node: Node, readers: Mapping[str, Sequence[Node]]) -> bool:
    """Tell whether a node multiplies all of its floats by one number, for one reader."""
    value = graph.constants.get(node.inputs[1]) if node.op == "Mul" else None
    if value is None or value.size != 1 or value.dtype != np.float32 or node.inputs[0] not in graph.tensors:
        return False
    data, result = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    alone = result.name not in graph.outputs and len(readers[result.name]) == 1
    return alone and data.shape == result.shape and bool(np.isfinite(value).all())
