"""Matrix products with constant weights as one form of Gemm."""

from __future__ import annotations

import math
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
