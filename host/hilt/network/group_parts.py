"""Grouped convolutions in two parts, so that groups that fill no whole blocks of channels are not computed as one.

Of seventeen groups of 24 channels, in blocks of 16, sixteen are eight times two groups in three blocks, and the last
is a convolution of its own. As one dense layer nearly all weights would be zeros. The parts lie in whole blocks of the
same tensors: nothing moves (`hilt.network.aliases`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hilt.network.graph import Graph, Node
from hilt.network.graph_writer import GraphWriter
from hilt.vta.layout import blocks
from hilt.vta.parameters import VTAParameters


def with_groups_in_parts(graph: Graph, parameters: VTAParameters) -> Graph:
    """Return a graph with the same outputs whose grouped convolutions have whole blocks of channels, as far as can be.

    `parameters`: the accelerator's blocks; its lanes hold all images, else the parts would lie apart.
    """
    writer = _Writer(graph, parameters)
    for node in graph.nodes:
        writer.take(node)
    return writer.written()


class _Writer:
    """Writes the nodes of the new graph, in the old one's order."""

    def __init__(self, graph: Graph, parameters: VTAParameters) -> None:
        self._graph, self._parameters = graph, parameters
        self._writer = GraphWriter(graph)

    def written(self) -> Graph:
        made = self._writer
        if len(made.nodes) == len(self._graph.nodes):
            return self._graph
        return replace(self._graph, nodes=tuple(made.nodes), tensors=made.tensors, constants=made.constants)

    def take(self, node: Node) -> None:
        groups = _groups(node)
        first = self._first_part(node) if groups > 1 else 0
        if first == 0:
            self._writer.nodes.append(node)
            return
        made = [self._part(node, 0, first), self._part(node, first, groups)]
        name = self._writer.name(f"{node.name}.parts")
        self._writer.nodes.append(Node(name, "concat", tuple(made), node.outputs, {"axis": 1}, node.source))

    def _first_part(self, node: Node) -> int:
        """Return how many groups are together in whole blocks; 0 if none or all are, or the images are too many."""
        groups, block = _groups(node), self._parameters.block
        images = self._graph.tensors[node.inputs[0]].shape[0]
        outputs, inputs = self._widths(node)
        if blocks(images, self._parameters.batch) > 1 or (inputs == outputs and block % inputs == 0):
            return 0
        together = math.lcm(*(block // math.gcd(block, width) for width in (inputs, outputs)))
        first = groups // together * together
        return 0 if first == groups else first

    def _widths(self, node: Node) -> tuple[int, int]:
        """Return the output channels and the input channels of a group."""
        outputs, inputs = self._graph.constants[node.inputs[1]].shape[:2]
        return outputs // _groups(node), inputs

    def _part(self, node: Node, first: int, last: int) -> str:
        """Add the convolution of some groups; return its output."""
        (outputs, inputs), name = self._widths(node), self._writer.name(f"{node.name}.{first}")
        channels = slice(first * outputs, last * outputs)
        data = self._cut(name, node.inputs[0], first * inputs, last * inputs)
        constants = [self._constant(name, each, channels) for each in node.inputs[1:3]]
        residual = [self._cut(f"{name}.residual", each, channels.start, channels.stop) for each in node.inputs[3:]]
        shift = node.attributes.get("shift", [0])
        attributes: dict[str, Any] = {**node.attributes, "groups": last - first}
        attributes["shift"] = shift if len(shift) == 1 else shift[channels]
        output = self._writer.tensor(f"{name}.result", node.outputs[0], channels.stop - channels.start)
        inputs_of = (data, *constants, *residual)
        self._writer.nodes.append(Node(name, node.op, inputs_of, (output,), attributes, node.source))
        return output

    def _constant(self, name: str, source: str, channels: slice) -> str:
        """Add the part of a constant, if there is one; return its name."""
        return self._writer.constant(f"{name}.{source}", self._graph.constants[source][channels]) if source else ""

    def _cut(self, name: str, source: str, start: int, end: int) -> str:
        """Add a Slice of channels; return its output."""
        attributes = {"axes": [1], "starts": [start], "ends": [end], "steps": [1]}
        output = self._writer.tensor(f"{name}.data", source, end - start)
        cut = self._writer.name(f"{name}.cut")
        self._writer.nodes.append(Node(cut, "slice", (source,), (output,), attributes))
        return output


def _groups(node: Node) -> int:
    return int(node.attributes["groups"]) if node.op == "conv2d" else 1
