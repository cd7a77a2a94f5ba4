"""Floats whose costly function int8 has as a table.

A GELU of a normalisation, say: each Erf takes a Cortex-A9 some 75 cycles in float, and a few as one of 256 entries.
"""

from __future__ import annotations

from hilt.network.elementwise import root_of
from hilt.network.onnx_graph import OnnxGraph

_COSTLY = frozenset(("Atan", "Celu", "Elu", "Erf", "Gelu", "Mish", "Selu", "Sigmoid", "Softplus", "Tanh"))
"""Functions that never rise steeper than their argument, or hardly: its steps in int8 are theirs at most."""


def find_tabled(graph: OnnxGraph) -> set[str]:
    """Return the tensors that only an expression of them reads which has a costly function.

    Args:
        graph: A canonical float graph.
    """
    roots: dict[str, str] = {}
    costly: set[str] = set()
    for node in graph.nodes:
        root = root_of(graph, node, roots)
        if root is not None:
            roots[node.outputs[0]] = root
            if node.op in _COSTLY:
                costly.add(root)
    consumers = graph.consumers()
    return {
        name
        for name in costly - set(graph.outputs)
        if all(roots.get(reader.outputs[0]) == name for reader in consumers[name])
    }
