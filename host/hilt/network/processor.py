"""A cost model of numpy on the board's processor, for choosing where a node runs.

Its three constants are measured on the board (hilt.network.processor_speed) and kept. Until then they are assumed to be
those of a Cortex-A9 at 650 MHz (PYNQ-Z2).
"""

from __future__ import annotations

from dataclasses import dataclass

from hilt.network.graph import Graph, Node


@dataclass(frozen=True)
class ProcessorSpeed:
    """The constants of the cost model.

    Attributes:
        call_seconds: One operator: Python, numpy's set-up, allocation.
        macs_per_second: Multiply-accumulates of a convolution or dense layer.
        bytes_per_second: Bytes that an operator reads and writes, times its window.
        source: Where they are from, in words.
    """

    call_seconds: float
    macs_per_second: float
    bytes_per_second: float
    source: str


ASSUMED = ProcessorSpeed(100e-6, 60e6, 100e6, "assumed of a Cortex-A9")


def processor_seconds(graph: Graph, node: Node, speed: ProcessorSpeed = ASSUMED) -> float:
    """Return about how long a node takes in numpy on the board."""
    moved = sum(graph.tensors[name].size for name in (*node.inputs, *node.outputs) if name in graph.tensors)
    window = 1
    for size in node.attributes.get("kernel", ()):
        window *= int(size)
    return speed.call_seconds + graph.macs(node) / speed.macs_per_second + moved * window / speed.bytes_per_second
