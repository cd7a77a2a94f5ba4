"""Powers whose root or logarithm is taken: int8 would lose the small ones.

A spectrum's power spans twice the decibels of its magnitude. A step of int8 is small beside the largest power, and its
square root is large beside most magnitudes. Generalized means (GeM) have cubes, and a cube root.
"""

from __future__ import annotations

from collections.abc import Collection

from hilt.network.elementwise import roots_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode

_STEEP = frozenset(("Log", "Sqrt"))
_SUMS = frozenset(("Add", "AveragePool", "GlobalAveragePool", "Mul"))


def find_powers(graph: OnnxGraph, moves: Collection[str]) -> set[str]:
    """Return the tensors between products of two tensors, or powers of one, and a root or logarithm of their sums.

    A function of one tensor, sqrt(x * x + 1) say, has none: it is a table of that tensor's int8 values.

    Args:
        graph: A canonical float graph.
        moves: Operators that only move values.
    """
    summed = [node for node in graph.nodes if _is_sum(node, moves)]
    powers = {node.outputs[0] for node in summed if _is_product(graph, node)}
    powers |= {node.outputs[0] for node in graph.nodes if _exponent(graph, node) > 1}
    sums = [node for node in summed if node.outputs[0] not in powers]
    for node in sums:
        if powers.intersection(node.inputs):
            powers.add(node.outputs[0])
    read = _read_by_steep(graph)
    for node in reversed(sums):
        if node.outputs[0] in read:
            read.update(node.inputs)
    return powers & read


def _is_sum(node: OnnxNode, moves: Collection[str]) -> bool:
    return not node.domain and (node.op in _SUMS or node.op in moves)


def _is_product(graph: OnnxGraph, node: OnnxNode) -> bool:
    return node.op == "Mul" and len(graph.computed_inputs(node)) == 2


def _exponent(graph: OnnxGraph, node: OnnxNode) -> float:
    """Return the constant exponent of a Pow; 1 of other nodes."""
    constant = graph.constants.get(node.inputs[1]) if node.op == "Pow" and not node.domain else None
    return float(constant.reshape(())) if constant is not None and constant.size == 1 else 1.0


def _read_by_steep(graph: OnnxGraph) -> set[str]:
    """Return the tensors whose functions, element by element, have a root or a logarithm."""
    roots = roots_of(graph)
    steep = (node for node in graph.nodes if node.op in _STEEP or _exponent(graph, node) < 1)
    return {roots[node.outputs[0]] for node in steep if node.outputs[0] in roots}
