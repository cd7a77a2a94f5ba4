"""The ways in which layers read channels of a graph's tensors: as they lie, or wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hilt.network.graph import Graph, Node

FOLLOWERS = ("max_pool", "average_pool", "global_average_pool", "upsample", "table", "pad")
"""Operators that compute each channel by itself; a depthwise convolution is another."""
MOVERS = ("concat", "slice", "reshape", "transpose")
ON_VTA = ("conv2d", "add", "multiply", "prelu", *FOLLOWERS)
"""Operators of images that VTA may run: their data is selected by VTA, too."""


@dataclass
class ChannelUses:
    """The readers of a graph's tensors, taken from the last node to the first.

    Attributes:
        reading: Tensors that reach a layer of VTA, moved or not.
        anywhere: Tensors whose readers take their channels wherever they are.
        joined: Tensors of these that reach a Concat of several rests of blocks.
    """

    graph: Graph
    block: int
    reading: set[str] = field(default_factory=set)
    anywhere: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        readers = self.graph.consumers()
        for node in reversed(self.graph.nodes):
            behind = readers.get(node.outputs[0], [])
            if node.op in ("dense", *ON_VTA) or (node.op in MOVERS and node.outputs[0] in self.reading):
                self.reading.update(node.inputs)
            if node.outputs[0] not in self.graph.outputs and behind:
                self._take(node.outputs[0], behind)

    def _take(self, name: str, readers: Sequence[Node]) -> None:
        """Note how a tensor is read."""
        if not all(self._reads_anywhere(node, name) for node in readers):
            return
        self.anywhere.add(name)
        shape = self.graph.tensors[name].shape
        moved = [node for node in readers if passes(self.graph, node)]
        reaches = any(_joins_rests(self.graph, node, self.block) or node.outputs[0] in self.joined for node in moved)
        if len(shape) == 4 and shape[1] % self.block and reaches:
            self.joined.add(name)

    def _reads_anywhere(self, node: Node, name: str) -> bool:
        if is_convolution(self.graph, node):
            return name not in node.inputs[1:]
        return passes(self.graph, node) and node.outputs[0] in self.anywhere


def is_convolution(graph: Graph, node: Node) -> bool:
    """Return whether a node is a convolution of all channels, or a dense layer, with constant weights."""
    whole = node.op == "dense" or (node.op == "conv2d" and node.attributes["groups"] == 1)
    return whole and node.inputs[1] in graph.constants


def is_depthwise(graph: Graph, node: Node) -> bool:
    """Return whether a node is a convolution of each channel by itself, without a residual."""
    if node.op != "conv2d" or any(node.inputs[3:]):
        return False
    channels = {graph.tensors[name].shape[1] for name in (node.inputs[0], node.outputs[0])}
    return channels == {node.attributes["groups"]} and set(node.inputs[1:3]) - {""} <= set(graph.constants)


def passes(graph: Graph, node: Node) -> bool:
    """Return whether a node moves tensors, or computes each channel by itself."""
    return node.op in (*MOVERS, *FOLLOWERS) or is_depthwise(graph, node)


def _joins_rests(graph: Graph, node: Node, block: int) -> bool:
    """Return whether a node is a Concat of channels, of several operands that are no whole blocks."""
    if node.op != "concat" or node.attributes["axis"] != 1:
        return False
    sizes = [graph.tensors[name].shape[1] for name in node.inputs if name in graph.tensors]
    return len(sizes) == len(node.inputs) and sum(size % block != 0 for size in sizes) > 1
