"""Floats whose costly function is a table once they are int8.

A GELU of a normalisation, say: in float each Erf takes a Cortex-A9 some 120 instructions, a look-up takes three.
"""

from __future__ import annotations

from hilt.network.elementwise import roots_of
from hilt.network.onnx_graph import OnnxGraph

_COSTLY = frozenset(("Atan", "Celu", "Elu", "Erf", "Gelu", "Mish", "Selu", "Sigmoid", "Softplus", "Tanh"))
"""Functions that rise hardly steeper than their argument: an error of it in int8 is about as large in the result."""


def find_tabled(graph: OnnxGraph) -> set[str]:
    """Return the tensors that one expression alone reads, with a costly function in it.

    Args:
        graph: A canonical float graph.
    """
    roots = roots_of(graph)
    costly = {roots[node.outputs[0]] for node in graph.nodes if node.op in _COSTLY and node.outputs[0] in roots}
    consumers = graph.consumers()
    return {
        name
        for name in costly - set(graph.outputs)
        if all(roots.get(reader.outputs[0]) == name for reader in consumers[name])
    }
