"""Dense layers of a few numbers at the end, which stay in float.

Their numbers are results. int8 would clip those beyond the calibration's. VTA computes a whole block of channels for
them, so that the processor takes about as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hilt.network.onnx_graph import OnnxGraph, OnnxNode

_MOST_NUMBERS = 16
_MOST_MACS = 1 << 13
_CHOOSING = frozenset(("ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "Softmax", "TopK"))
"""Operators that compare scores: clipped ones have the same order."""


def float_heads(graph: OnnxGraph, layers: Sequence[OnnxNode]) -> list[str]:
    """Return the names of such nodes among the `layers` of a canonical float graph; none if all are such."""
    heads = [node.name for node in layers if _is_small(graph, node) and _is_last(graph, node, set(map(id, layers)))]
    return heads if len(heads) < len(layers) else []


def _is_small(graph: OnnxGraph, node: OnnxNode) -> bool:
    if node.op != "Gemm":
        return False
    numbers, depth = graph.shape(node.inputs[1])
    return numbers <= _MOST_NUMBERS and math.prod(graph.shape(node.outputs[0])) * depth <= _MOST_MACS


def _is_last(graph: OnnxGraph, node: OnnxNode, layers: set[int]) -> bool:
    """Tell whether outputs of the network come from a node, by operators that neither choose nor are `layers`."""
    consumers, found, names = graph.consumers(), False, list(node.outputs)
    while names:
        name = names.pop()
        found = found or name in graph.outputs
        for reader in consumers.get(name, []):
            if reader.op in _CHOOSING or id(reader) in layers:
                return False
            names += filter(None, reader.outputs)
    return found
