"""Expressions of one tensor, element by element: with an int8 tensor each is a table of 256 entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt_runtime import operators

UNARY = frozenset(
    (
        "Abs", "Asinh", "Atan", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
        "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shrink",
        "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
    )
)  # fmt: skip
BINARY = frozenset(("Add", "Div", "Max", "Min", "Mul", "Pow", "PRelu", "Sub"))


def root_of(graph: OnnxGraph, node: OnnxNode, roots: Mapping[str, str]) -> str | None:
    """Return the one tensor that a node's result depends on element by element.

    Args:
        graph: The graph.
        node: A node of it.
        roots: The same for the tensors of earlier nodes; a tensor that is not there is its own root.

    Returns:
        The root, or None if the node is of another kind, reads two tensors, or a constant that is no scalar.
    """
    if node.domain or (node.op not in UNARY and node.op not in BINARY):
        return None
    read = set()
    for name in node.inputs:
        if name in graph.constants:
            if graph.constants[name].size != 1:
                return None
        elif name:
            read.add(roots.get(name, name))
    if len(read) != 1:
        return None
    (root,) = read
    sizes = [graph.shape(name) for name in (root, node.outputs[0])]
    return root if sizes[0] == sizes[1] else None


def roots_of(graph: OnnxGraph) -> dict[str, str]:
    """Return for each result of an expression of one tensor that tensor: see root_of."""
    roots: dict[str, str] = {}
    for node in graph.nodes:
        root = root_of(graph, node, roots)
        if root is not None:
            roots[node.outputs[0]] = root
    return roots


def neutral_factor(graph: OnnxGraph, node: OnnxNode) -> float | None:
    """Return the factor of a node in front of a softmax; None if it does more to its first input than multiply.

    A Reshape and a number that is added have the factor 1: they change no softmax.
    """
    if node.domain:
        return None
    if node.op == "Reshape":
        return 1.0
    value = graph.constants.get(node.inputs[1]) if node.op in ("Add", "Mul") else None
    if value is None or value.size != 1 or graph.shape(node.inputs[0]) != graph.shape(node.outputs[0]):
        return None
    return 1.0 if node.op == "Add" else max(float(value.reshape(())), 0.0) or None


def expression(graph: OnnxGraph, output: str, root: str, producers: Mapping[str, OnnxNode]) -> list[OnnxNode]:
    """Return the nodes between a root and an output that depends on it element by element, in order."""
    nodes: list[OnnxNode] = []
    pending, seen = [output], set()
    while pending:
        name = pending.pop()
        if name == root or name in graph.constants or not name:
            continue
        node = producers[name]
        if node.outputs[0] not in seen:
            seen.add(node.outputs[0])
            nodes.append(node)
            pending += node.inputs
    order = {id(node): place for place, node in enumerate(graph.nodes)}
    return sorted(nodes, key=lambda node: order[id(node)])


def tabulate(graph: OnnxGraph, nodes: Sequence[OnnxNode], root: str, output: str, scale: float) -> NDArray[np.float32]:
    """Return an expression's float32 results for the 256 values of an int8 root, -128 first."""
    return results(graph, nodes, root, output, (np.arange(-128, 128) * np.float32(scale)).astype(np.float32))


def results(
    graph: OnnxGraph, nodes: Sequence[OnnxNode], root: str, output: str, given: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return an expression's float32 results for values (count,) of its root."""
    values: dict[str, NDArray[Any]] = {root: given}
    with np.errstate(all="ignore"):
        for node in nodes:
            inputs = [_value(graph, values, name) for name in node.inputs]
            values[node.outputs[0]] = operators.run(node.op, inputs, node.attributes)[0]
    made: NDArray[np.float32] = np.broadcast_to(values[output], given.shape).astype(np.float32)
    return made


def int8_steps(values: NDArray[np.float32], scale: float) -> NDArray[np.int8]:
    """Return floats in steps of a scale: halves to even, clipped, 0 for no number, as QuantizeLinear does."""
    steps = np.nan_to_num(np.rint(values / np.float32(scale)), nan=0.0)
    made: NDArray[np.int8] = np.clip(steps, -128, 127).astype(np.int8)
    return made


def _value(graph: OnnxGraph, values: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any] | None:
    if not name:
        return None
    return graph.constants[name].reshape(()) if name in graph.constants else values[name]
