"""Powers whose square root or logarithm is taken: int8 would lose the small ones.

A spectrum's power spans twice the decibels of its magnitude. A step of int8 is small beside the largest power, and its
square root is large beside most magnitudes.
"""

from __future__ import annotations

from collections.abc import Collection

from hilt.network.elementwise import roots_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode

_STEEP = frozenset(("Log", "Sqrt"))
_SUMS = frozenset(("Add", "AveragePool", "GlobalAveragePool", "Mul"))


def find_powers(graph: OnnxGraph, moves: Collection[str]) -> set[str]:
    """Return the tensors between products of two tensors and a square root or logarithm of their sums.

    A function of one tensor, sqrt(x * x + 1) say, has none: it is a table of that tensor's int8 values.

    Args:
        graph: A canonical float graph.
        moves: Operators that only move values.
    """
    summed = [node for node in graph.nodes if _is_sum(node, moves)]
    powers = {node.outputs[0] for node in summed if _is_product(graph, node)}
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


def _read_by_steep(graph: OnnxGraph) -> set[str]:
    """Return the tensors whose functions, element by element, have a square root or a logarithm."""
    roots = roots_of(graph)
    return {roots[node.outputs[0]] for node in graph.nodes if node.op in _STEEP and node.outputs[0] in roots}
