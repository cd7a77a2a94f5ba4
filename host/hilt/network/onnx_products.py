"""Matrix products with constant weights as one form of Gemm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reshape_node


def plain_product(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a MatMul or Gemm with constant weights as a Gemm with weights (N, K) and a bias (N,), without factors.

    Operators before and behind it do the rest: a Transpose, Reshapes, an Add. None for any other node.
    """
    if node.op not in ("MatMul", "Gemm") or node.inputs[1] not in graph.constants:
        return None
    weights = graph.constants[node.inputs[1]]
    while weights.ndim > 2 and weights.shape[0] == 1:
        weights = weights[0]
    shape = graph.shape(node.inputs[0])
    if weights.ndim != 2 or weights.dtype != np.float32 or len(shape) < 2:
        return None
    if node.op == "Gemm":
        return _gemm(graph, node, weights)
    name = new_constant(graph, f"{node.name}.weight", np.ascontiguousarray(weights.T))
    if len(shape) == 2:
        return [OnnxNode(node.name, "Gemm", [node.inputs[0], name], list(node.outputs), {"transB": 1})]
    result, rows = graph.shape(node.outputs[0]), math.prod(shape[:-1])
    flat, product = graph.unique(f"{node.name}.flat"), graph.unique(f"{node.name}.product")
    graph.shapes[product], graph.dtypes[product] = (rows, weights.shape[1]), "float32"
    return [
        reshape_node(graph, f"{node.name}.rows", node.inputs[0], flat, (rows, shape[-1])),
        OnnxNode(node.name, "Gemm", [flat, name], [product], {"transB": 1}),
        reshape_node(graph, f"{node.name}.back", product, node.outputs[0], result),
    ]


def merge_products(graph: OnnxGraph) -> None:
    """Merge two Gemms into one where only the second reads the first's rows, and one Gemm multiplies less.

    Its weights are the product of theirs, computed in float64. Reshapes may lie between.
    """
    graph.remove_unused()
    producers, readers = graph.producers(), graph.consumers()
    for node in graph.nodes:
        while (first := _first_product(graph, node, producers, readers)) is not None:
            inner, outer = graph.constants[first.inputs[1]], graph.constants[node.inputs[1]]
            if outer.shape[0] * inner.shape[1] >= inner.size + outer.size:
                break
            weights = new_constant(graph, f"{node.name}.merged", _product(outer, inner))
            node.inputs = [first.inputs[0], weights, *_merged_bias(graph, node, first, outer)]


def _first_product(
    graph: OnnxGraph, node: OnnxNode, producers: Mapping[str, OnnxNode], readers: Mapping[str, list[OnnxNode]]
) -> OnnxNode | None:
    """Return the Gemm whose rows a Gemm alone reads; None if there is none."""
    if not _is_plain(graph, node):
        return None
    name, columns = node.inputs[0], graph.shape(node.inputs[0])[-1]
    while len(readers.get(name, ())) == 1 and name not in graph.outputs and name in producers:
        maker = producers[name]
        if _is_plain(graph, maker):
            return maker if graph.shape(name) == graph.shape(node.inputs[0]) else None
        if maker.domain or maker.op not in ("Reshape", "Identity") or graph.shape(maker.inputs[0])[-1:] != (columns,):
            return None
        name = maker.inputs[0]
    return None


def _is_plain(graph: OnnxGraph, node: OnnxNode) -> bool:
    return (
        node.op == "Gemm"
        and not node.domain
        and node.inputs[1] in graph.constants
        and node.attributes == {"transB": 1}
        and all(name in graph.constants for name in node.inputs[2:])
    )


def _product(outer: NDArray[Any], inner: NDArray[Any]) -> NDArray[np.float32]:
    made: NDArray[np.float64] = outer.astype(np.float64) @ inner.astype(np.float64)
    return made.astype(np.float32)


def _merged_bias(graph: OnnxGraph, node: OnnxNode, first: OnnxNode, outer: NDArray[Any]) -> list[str]:
    """Return the name of the sum of the second bias and the first one's image, if either is there."""
    total = np.zeros(len(outer))
    if len(first.inputs) > 2:
        total += outer.astype(np.float64) @ np.broadcast_to(graph.constants[first.inputs[2]], outer.shape[1:])
    if len(node.inputs) > 2:
        total += graph.constants[node.inputs[2]]
    if max(len(first.inputs), len(node.inputs)) == 2:
        return []
    return [new_constant(graph, f"{node.name}.merged bias", total.astype(np.float32))]


def _gemm(graph: OnnxGraph, node: OnnxNode, weights: NDArray[Any]) -> list[OnnxNode]:
    """Take alpha, beta and transB into the constants; a term that is no bias is an addition of its own."""
    data, values = node.inputs[0], node.attributes
    nodes = []
    if values.get("transA", 0):
        data = graph.unique(f"{node.name}.turned")
        graph.shapes[data], graph.dtypes[data] = graph.shape(node.inputs[0])[::-1], "float32"
        nodes.append(OnnxNode(f"{node.name}.turn", "Transpose", [node.inputs[0]], [data], {"perm": [1, 0]}))
    weights = weights if values.get("transB", 0) else weights.T
    weights = weights * np.float32(values.get("alpha", 1.0))
    inputs = [data, new_constant(graph, f"{node.name}.weight", np.ascontiguousarray(weights))]
    term, beta = node.inputs[2] if len(node.inputs) > 2 else "", np.float32(values.get("beta", 1.0))
    if not term or beta == 0:
        return [*nodes, OnnxNode(node.name, "Gemm", inputs, list(node.outputs), {"transB": 1})]
    bias = _by_column(graph.constants.get(term), len(weights))
    if bias is not None:
        inputs.append(new_constant(graph, f"{node.name}.bias", bias * beta))
        return [*nodes, OnnxNode(node.name, "Gemm", inputs, list(node.outputs), {"transB": 1})]
    product = graph.unique(f"{node.name}.product")
    graph.shapes[product], graph.dtypes[product] = graph.shape(node.outputs[0]), "float32"
    nodes.append(OnnxNode(node.name, "Gemm", inputs, [product], {"transB": 1}))
    if term in graph.constants:
        term = new_constant(graph, f"{node.name}.term", graph.constants[term] * beta)
    elif beta != 1:
        factor, scaled = new_constant(graph, f"{node.name}.beta", np.asarray(beta)), graph.unique(f"{node.name}.scaled")
        graph.shapes[scaled], graph.dtypes[scaled] = graph.shape(term), "float32"
        nodes.append(OnnxNode(f"{node.name}.scale", "Mul", [term, factor], [scaled]))
        term = scaled
    return [*nodes, OnnxNode(f"{node.name}.add", "Add", [product, term], list(node.outputs))]


def _by_column(term: NDArray[Any] | None, columns: int) -> NDArray[np.float32] | None:
    """Return a Gemm's term (N,) if it is a constant that is the same in each row."""
    if term is None or term.size not in (1, columns) or (term.size > 1 and term.shape[-1] != columns):
        return None
    return np.broadcast_to(term.reshape(-1), (columns,)).astype(np.float32)
