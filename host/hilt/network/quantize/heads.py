"""Dense layers of a few numbers that floats read, which stay in float.

Their numbers are results, or an operator of floats takes them, as a spatial transformer's grid. int8 would clip those
beyond the calibration's. VTA computes a whole block of channels for them, so that the processor takes about as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hilt.network.onnx_graph import OnnxGraph, OnnxNode
from hilt.network.quantize.regions import find_regions

_MOST_NUMBERS = 16
_MOST_MACS = 1 << 13
_CHOOSING = frozenset(("ArgMax", "ArgMin", "Hardmax", "LogSoftmax", "Softmax", "TopK"))
"""Operators that compare scores: clipped ones have the same order."""


def float_heads(graph: OnnxGraph, layers: Sequence[OnnxNode]) -> list[str]:
    """Return the names of such nodes among the `layers` of a canonical float graph; none if all are such."""
    small = [node for node in layers if _is_small(graph, node)]
    ends = set(find_regions(graph).ends) if small else set()
    heads = [node.name for node in small if _is_last(graph, node, set(map(id, layers)), ends)]
    return heads if len(heads) < len(layers) else []


def _is_small(graph: OnnxGraph, node: OnnxNode) -> bool:
    if node.op != "Gemm":
        return False
    numbers, depth = graph.shape(node.inputs[1])
    return numbers <= _MOST_NUMBERS and math.prod(graph.shape(node.outputs[0])) * depth <= _MOST_MACS


def _is_last(graph: OnnxGraph, node: OnnxNode, layers: set[int], ends: set[str]) -> bool:
    """Tell whether a node's numbers are results, or floats read them: no `layers` in int8, and nothing that chooses.

    Floats read int8's `ends`, and layers may follow them.
    """
    consumers, found, seen = graph.consumers(), False, set[tuple[str, bool]]()
    pending = [(name, False) for name in node.outputs]
    while pending:
        name, in_float = each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        found = found or in_float or name in graph.outputs
        readers = consumers.get(name, [])
        if any(reader.op in _CHOOSING or (id(reader) in layers and not in_float) for reader in readers):
            return False
        further = [reader for reader in readers if id(reader) not in layers]
        pending += [(made, in_float or name in ends) for reader in further for made in reader.outputs if made]
    return found
