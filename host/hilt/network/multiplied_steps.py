"""Products of floats with a number in front of a quantisation, which multiplies by it in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hilt.network.graph import Graph, Node, without_unread


def with_multiplied_steps(graph: Graph) -> Graph:
    """Return a graph with the same outputs, whose quantisations do the work of products that they alone read."""
    products = _products(graph)
    if not products:
        return graph
    nodes = (_multiplied(graph, node, products.get(node.name)) for node in graph.nodes)
    return without_unread(replace(graph, nodes=tuple(nodes)))


def _products(graph: Graph) -> dict[str, Node]:
    """Return the products that quantisations do the work of, by the names of these."""
    makers, readers = graph.producer(), graph.consumers()
    found = ((node.name, makers.get(node.inputs[0])) for node in graph.nodes if node.op == "quantize")
    return {name: maker for name, maker in found if maker is not None and _is_product(graph, maker, readers)}


def _multiplied(graph: Graph, node: Node, product: Node | None) -> Node:
    if product is None:
        return node
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
