"""Tensors that lie within others in VTA's memory, so that Concat, Pad, Slice and Reshape move nothing.

In the packed layout (N/batch, C/block, H, W, batch, block) whole blocks of channels lie one behind another. The layers
before a Concat write their blocks where the Concat's output has them, and a Slice of whole blocks is an address.
Channels of zeros that a Pad adds are there already, as far as the last block goes: sums of no weights are zero.

Bytes that the processor writes share no line of its caches with bytes of VTA: flushing it would bring back old
ones of VTA's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hilt.network.graph import Graph, Node
from hilt.network.packed_layout import PackedLayout
from hilt.network.packed_steps import adds_channels, packed_attributes
from hilt.network.skip_blocks import residual_of

_LINE = 64
"""The bytes of the longest cache line of a board's cores."""


@dataclass
class Aliases:
    """The tensors that lie within others, each within one at most, at a byte offset.

    `by_vta` are the tensors that VTA writes, as far as nodes have a place.
    """

    graph: Graph
    layout: PackedLayout
    by_vta: set[str] = field(default_factory=set)
    _within: dict[str, tuple[str, int]] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)
    """Tensors that nothing writes: the outputs of nodes that move nothing."""

    def __post_init__(self) -> None:
        self._producers = self.graph.producer()

    def of(self, name: str) -> tuple[str, int]:
        """Return the root of a tensor, and its byte offset there: the root has memory of its own."""
        offset = 0
        while name in self._within:
            name, more = self._within[name]
            offset += more
        return name, offset

    def join(self, node: Node) -> bool:
        """Let a node move nothing, if it can; return whether it does. Nodes come in the graph's order."""
        join = {"concat": self._concat, "pad": self._pad, "reshape": self._reshape, "slice": self._slice}.get(node.op)
        if join is None or not join(node):
            return False
        self._moved.update(node.outputs)
        return True

    def _reshape(self, node: Node) -> bool:
        """Join a Reshape that leaves images and channels as they are: whole images' elements lie in one order."""
        source, output = node.inputs[0], node.outputs[0]
        tensors = [self.graph.tensors[name] for name in (source, output)]
        if tensors[0].dtype != "int8" or any(len(tensor.shape) not in (2, 4) for tensor in tensors):
            return False
        first, second = ((*tensor.shape, 1, 1)[:4] for tensor in tensors)
        if first[:2] != second[:2] or (self.layout.bands and first != second):
            return False
        self._within[output] = (source, 0)
        return True

    def _pad(self, node: Node) -> bool:
        source, output = node.inputs[0], node.outputs[0]
        if not adds_channels(self.graph, node) or self._packed(source) != self._packed(output):
            return False
        if not self._ends_in_zeros(source):
            return False
        self._within[output] = (source, 0)
        return True

    def _ends_in_zeros(self, name: str) -> bool:
        """Return whether the lanes behind a tensor's last channel, if there are any, are surely zero."""
        if self.graph.tensors[name].shape[1] % self.layout.parameters.block == 0:
            return True
        maker = self._producers.get(name)
        if maker is None or name not in self.by_vta:
            return maker is not None and maker.op == "pad" and adds_channels(self.graph, maker)
        if maker.op == "max_pool":
            return self._ends_in_zeros(maker.inputs[0])
        if maker.op not in ("conv2d", "dense"):
            return maker.op == "prelu" and not maker.attributes.get("offset", 0)
        low, high = maker.attributes["clip"]
        residual = residual_of(maker)
        return bool(low <= 0 <= high) and (not residual or self._ends_in_zeros(residual))

    def _slice(self, node: Node) -> bool:
        source, output = node.inputs[0], node.outputs[0]
        attributes = packed_attributes(self.graph, node, self.layout)
        if attributes is None or attributes["axes"] not in ([0], [1]):
            return False
        (axis,), packed = attributes["axes"], self._packed(source)
        if axis == 1 and packed[0] != 1:
            return False
        first = int(attributes["starts"][0])
        self._within[output] = (source, first * math.prod(packed[axis + 1 :]))
        return True

    def _concat(self, node: Node) -> bool:
        output = node.outputs[0]
        attributes = packed_attributes(self.graph, node, self.layout)
        if attributes is None or attributes["axis"] != 1 or "channels" in attributes or self._packed(output)[0] != 1:
            return False
        before = dict(self._within)
        taken: list[tuple[int, int]] = []
        offset = 0
        for name in node.inputs:
            if not self._settle(name, output, offset, taken):
                self._within = before
                return False
            offset += self._bytes(name)
        return True

    def _settle(self, name: str, output: str, offset: int, taken: list[tuple[int, int]]) -> bool:
        """Let a tensor lie at an offset of a Concat's output, with all that lies in one memory with it, if it can.

        `taken` are the bytes of the output that others have.
        """
        root, inside = self.of(name)
        if root == output:
            return inside == offset
        first, end = offset - inside, offset - inside + self._bytes(root)
        if first < 0 or end > self._bytes(output) or any(first < high and low < end for low, high in taken):
            return False
        if not all(self._whole_lines(each, first) for each in (root, *self._within) if self.of(each)[0] == root):
            return False
        self._within[root] = (output, first)
        taken.append((first, end))
        return True

    def _whole_lines(self, name: str, first: int) -> bool:
        """Return whether the processor may write a tensor whose memory begins at `first`, or does not write it."""
        begin = first + self.of(name)[1]
        lines = begin % _LINE == 0 and (begin + self._bytes(name)) % _LINE == 0
        return name in self.by_vta or name in self._moved or lines

    def _packed(self, name: str) -> list[int]:
        return self.layout.shape(self.graph.tensors[name].shape)

    def _bytes(self, name: str) -> int:
        return self.layout.bytes(self.graph.tensors[name].shape)
