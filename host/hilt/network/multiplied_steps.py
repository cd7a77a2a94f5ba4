"""Products of floats with a number in front of a quantisation, which multiplies by it in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hilt.network.graph import Graph, Node


def with_multiplied_steps(graph: Graph) -> Graph:
    """Return a graph with the same outputs, whose quantisations do the work of products that they alone read."""
    makers = {node.outputs[0]: node for node in graph.nodes}
    readers = graph.consumers()
    made: dict[str, Node] = {}
    merged: dict[str, Node] = {}
    for node in graph.nodes:
        product = makers.get(node.inputs[0]) if node.op == "quantize" else None
        factor = None if product is None else _factor(graph, product, readers)
        if product is not None and factor is not None:
            attributes = {**node.attributes, "factor": factor}
            source = (*product.source, *node.source)
            made[node.name] = replace(node, inputs=product.inputs[:1], attributes=attributes, source=source)
            merged[product.name] = product
    if not made:
        return graph
    nodes = tuple(made.get(node.name, node) for node in graph.nodes if node.name not in merged)
    gone = {product.outputs[0] for product in merged.values()}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in gone}
    read = {name for node in nodes for name in node.inputs}
    constants = {name: value for name, value in graph.constants.items() if name in read}
    return replace(graph, nodes=nodes, tensors=tensors, constants=constants)


def _factor(graph: Graph, node: Node, readers: Mapping[str, Sequence[Node]]) -> float | None:
    """Return the number that a node multiplies all of its floats by, for one reader; None of another node."""
    value = graph.constants.get(node.inputs[1]) if node.op == "Mul" else None
    if value is None or value.size != 1 or value.dtype != np.float32 or node.inputs[0] not in graph.tensors:
        return None
    result = node.outputs[0]
    if (
        result in graph.outputs
        or len(readers[result]) > 1
        or graph.tensors[node.inputs[0]].shape != graph.tensors[result].shape
    ):
        return None
    factor = float(value.reshape(()))
    return factor if np.isfinite(factor) else None
