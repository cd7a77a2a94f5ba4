"""A cost model of numpy on the board's processor, for choosing where a node runs.

Its constants are those of a Cortex-A9 at 650 MHz (PYNQ-Z2): numpy's int32 products of a matrix run at some tens of
millions a second, element-wise int8 work at about 100 MB a second, and a call of an operator takes some tens of
microseconds. The choice is not sensitive to them: VTA is faster by an order of magnitude for all but tiny nodes.
"""

from __future__ import annotations

from hilt.network.graph import Graph, Node

CALL_SECONDS = 100e-6
"""One operator: Python, numpy's set-up, allocation."""
MACS_PER_SECOND = 60e6
BYTES_PER_SECOND = 100e6


def processor_seconds(graph: Graph, node: Node) -> float:
    """Return about how long a node takes in numpy on the board."""
    moved = sum(graph.tensors[name].size for name in (*node.inputs, *node.outputs) if name in graph.tensors)
    window = 1
    for size in node.attributes.get("kernel", ()):
        window *= int(size)
    return CALL_SECONDS + graph.macs(node) / MACS_PER_SECOND + moved * window / BYTES_PER_SECOND
