"""Channels that are cut, joined and shuffled, without moving them.

A convolution that reads moved channels reads the tensors that they come from: its weights have a column for each of
their channels, and zeros for those that it does not read. Pools, tables and depthwise convolutions between work on the
unmoved tensors. Joined tensors have whole blocks: layers get kernels of zeros up to the block, and the joined tensor
lies in one memory. Where the tensors have many channels more than are read, VTA selects: a 1 x 1 convolution with a
weight of 1 for each channel. All of it is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.channel_map import ChannelMap, Widths, shuffled
from hilt.network.channel_uses import FOLLOWERS, MOVERS, ON_VTA, ChannelUses, is_convolution, is_depthwise
from hilt.network.graph import Graph, Node
from hilt.network.graph_writer import GraphWriter

_SELECTING: Mapping[str, Any] = {
    **{"strides": [1, 1], "pads": [0] * 4, "groups": 1, "dilations": [1, 1], "input_dilation": [1, 1]},
    **{"shift": [0], "clip": [-128, 127]},
}
"""The attributes of a convolution that selects channels."""
_MOST_FOLLOWED = 1 << 22
"""Elements of the largest image that is followed through Reshape and Transpose."""
_MOST_MACS = 512
"""Multiply-accumulates that VTA makes in the time in which a core moves an element to VTA and back."""


def with_unmoved_channels(graph: Graph, block: int) -> Graph:
    """Return a graph with the same outputs in which convolutions read channels where they are made.

    `block`: the channels of a block in VTA's memory.
    """
    if not any(node.op in ("concat", "slice", "transpose") for node in graph.nodes):
        return graph
    mover = _Mover(graph, block)
    for node in graph.nodes:
        mover.take(node)
    return mover.rewritten()


class _Mover:
    """Writes the nodes of the new graph, in the old one's order."""

    def __init__(self, graph: Graph, block: int) -> None:
        self._graph = graph
        self._uses = ChannelUses(graph, block)
        self._writer = GraphWriter(graph)
        self._nodes, self._tensors = self._writer.nodes, self._writer.tensors
        self._constant, self._name = self._writer.constant, self._writer.name
        self._widths, self._block = Widths(self._tensors, block), block
        self._on_vta = {name for node in graph.nodes if node.op in ON_VTA for name in node.outputs}
        """Tensors that VTA may make: selecting them moves nothing to it."""
        self._maps: dict[str, ChannelMap] = {}
        self._orders: dict[str, tuple[str, NDArray[Any]]] = {}
        """Tensors that Reshape and Transpose made: the first tensor, and the place there of each element."""
        self._made: dict[tuple[str, ...], str] = {}
        """Joined and selected tensors."""
        self._stands_for: dict[str, str] = {}
        """The names of the graph's nodes that written ones stand for."""

    def rewritten(self) -> Graph:
        """Return the graph of the nodes that its outputs need."""
        needed, kept = set(self._graph.outputs), []
        for node in reversed(self._nodes):
            if needed & set(node.outputs):
                kept.append(node)
                needed |= set(node.inputs)
        names = {node.name for node in kept}
        nodes = [
            node
            if self._stands_for.get(node.name, node.name) in names
            else replace(node, name=self._stands_for[node.name])
            for node in reversed(kept)
        ]
        if tuple(nodes) == self._graph.nodes:
            return self._graph
        needed |= {name for node in kept for name in node.outputs} | set(self._graph.inputs)
        tensors = {name: tensor for name, tensor in self._tensors.items() if name in needed}
        constants = {name: value for name, value in self._writer.constants.items() if name in needed}
        return replace(self._graph, nodes=tuple(nodes), tensors=tensors, constants=constants)

    def take(self, node: Node) -> None:
        """Write a node, or the one that stands for it."""
        if node.op in ("conv2d", "dense") and any(node.inputs[3:]):
            node = replace(node, inputs=(*node.inputs[:3], self._plain(node.inputs[3])))
        self._nodes.append(self._written(node))

    def _written(self, node: Node) -> Node:
        """Write the nodes that stand in front of a node; return it, or the one in its place."""
        is_moved = bool(node.inputs) and node.inputs[0] in self._maps
        crooked = is_moved and not self._maps[node.inputs[0]].is_free(self._widths)
        if node.op in MOVERS:
            self._move(node)
        elif is_convolution(self._graph, node):
            node = self._folded(node) if crooked else node
            if node.outputs[0] in self._uses.joined and not any(node.inputs[3:]):
                self._pad(node)
        elif crooked and self._follows(node):
            self._follow(node)
        elif node.op in ON_VTA:
            return replace(node, inputs=tuple(self._plain(name) for name in node.inputs))
        return node

    def _map_of(self, name: str) -> ChannelMap:
        return self._maps.get(name) or ChannelMap.whole(name, self._widths.of(name))

    def _move(self, node: Node) -> None:
        """Note which channels a mover's output has, if it moves whole channels."""
        output = node.outputs[0]
        if not self._tensors[output].size:
            return
        if node.op == "concat" and node.attributes["axis"] == 1 and all(self._is_image(name) for name in node.inputs):
            reaches = output in self._uses.reading
            parts = [self._compact(name) if reaches else self._map_of(name) for name in node.inputs]
            self._maps[output] = ChannelMap.joined(parts, self._widths)
        elif node.op == "slice" and list(node.attributes["axes"]) == [1] and self._is_image(node.inputs[0]):
            channels = np.arange(self._widths.of(node.inputs[0]))[_cut(node, 0)]
            self._maps[output] = self._map_of(node.inputs[0]).taken(channels)
        elif node.op != "concat":
            self._turn(node)

    def _turn(self, node: Node) -> None:
        """Follow the elements through a node; where they are an image again, its channels are known."""
        source, output = node.inputs[0], node.outputs[0]
        first, order = self._orders.get(source) or (source, None)
        if not self._is_image(first) or self._tensors[first].size > _MOST_FOLLOWED:
            return
        image = self._tensors[first].shape
        if order is None:
            order = np.arange(self._tensors[first].size, dtype=np.int32).reshape(image)
        if node.op == "transpose":
            order = order.transpose(node.attributes["perm"])
        elif node.op == "slice":
            for place, axis in enumerate(node.attributes["axes"]):
                order = order[(slice(None),) * (axis % order.ndim) + (_cut(node, place),)]
        self._orders[output] = first, order.reshape(self._tensors[output].shape)
        channels = shuffled(self._orders[output][1], image)
        if channels is not None:
            self._maps[output] = self._map_of(first).taken(channels)

    def _is_image(self, name: str) -> bool:
        tensor = self._tensors.get(name)
        return tensor is not None and tensor.dtype == "int8" and len(tensor.shape) == 4 and tensor.size > 0

    def _compact(self, name: str) -> ChannelMap:
        """Return the channels of a Concat's operand: VTA selects them, where they are a part of others."""
        channels = self._map_of(name)
        width = channels.width(self._widths)
        if len(channels) * 3 > width * 2 or not self._selects(channels) or not channels.is_joinable(self._widths):
            return channels
        return ChannelMap.whole(self._selected(name, self._block), len(channels))

    def _folded(self, node: Node) -> Node:
        """Return a convolution that reads the tensors that its channels come from, if that takes VTA little."""
        data, weights = node.inputs[0], self._writer.constants[node.inputs[1]]
        channels = self._maps[data]
        pixels, made = (math.prod(self._tensors[name].shape[2:]) for name in (data, node.outputs[0]))
        count, width, taps = len(channels), self._whole(channels.width(self._widths)), math.prod(weights.shape[2:])
        lanes = self._whole(len(weights)) * made
        direct = width * taps * lanes if channels.is_joinable(self._widths) else math.inf
        selects = self._is_image(data) and self._selects(channels)
        selecting = self._whole(count) * (width * pixels + taps * lanes) if selects else math.inf
        moved = min(self._whole(count * taps), self._whole(count) * taps) * lanes + count * _MOST_MACS * pixels
        if min(direct, selecting) > moved:
            return node
        if selecting < direct:
            channels = ChannelMap.whole(self._selected(data, self._block), count)
        columns = channels.columns(weights, self._widths)
        if columns is None:
            return node
        joined = self._joined(channels)
        if node.op == "dense":
            joined = self._flat(joined)
        return replace(node, inputs=(joined, self._constant(f"{node.name}.columns", columns), *node.inputs[2:]))

    def _whole(self, channels: int) -> int:
        """Return channels in whole blocks: VTA takes as long for a part of one."""
        return -(-channels // self._block) * self._block

    def _flat(self, name: str) -> str:
        """Return an image of one pixel as (N, C)."""
        if len(self._tensors[name].shape) == 2:
            return name
        shape = self._tensors[name].shape[:2]
        output = self._tensor(f"{name}.flat", name, shape[1])
        self._tensors[output] = replace(self._tensors[output], shape=shape)
        self._nodes.append(Node(self._name(f"{name}.flatten"), "reshape", (name,), (output,), {"shape": list(shape)}))
        return output

    def _pad(self, node: Node) -> None:
        """Write a convolution with kernels of zeros up to a block."""
        output, weights = node.outputs[0], self._writer.constants[node.inputs[1]]
        count, more = len(weights), -len(weights) % self._block
        constants = [np.concatenate([weights, np.zeros((more, *weights.shape[1:]), np.int8)])]
        if len(node.inputs) > 2 and node.inputs[2]:
            bias = self._writer.constants[node.inputs[2]]
            constants.append(np.concatenate([bias, np.zeros(more, bias.dtype)]))
        names = [
            self._constant(f"{node.name}.{kind}", value)
            for kind, value in zip(("kernels", "sums"), constants, strict=False)
        ]
        shift = list(node.attributes["shift"])
        attributes = {**node.attributes, "shift": shift + shift[-1:] * (more if len(shift) > 1 else 0)}
        self._maps[output] = ChannelMap.whole(self._tensor(f"{output}.blocks", output, count + more), count)
        inputs = (node.inputs[0], *names, *node.inputs[1 + len(names) :])
        self._write(node, "blocks", inputs, self._maps[output].sources[0], attributes)

    def _follows(self, node: Node) -> bool:
        """Return whether a node computes each channel by itself, and all that read it take channels from anywhere."""
        channels, width = self._maps[node.inputs[0]], self._maps[node.inputs[0]].width(self._widths)
        narrow = 2 * len(channels) >= width or width - len(channels) < self._block
        if not narrow or not channels.is_joinable(self._widths) or node.outputs[0] not in self._uses.anywhere:
            return False
        if is_depthwise(self._graph, node):
            once = len(np.unique(channels.places(self._widths))) == len(channels)
            return once and len({*node.attributes["shift"]}) == 1
        return node.op in FOLLOWERS and (node.op != "pad" or not any(node.attributes["pads"][1::4]))

    def _follow(self, node: Node) -> None:
        """Write a node of each channel on the tensors that they come from."""
        channels, output = self._maps[node.inputs[0]], node.outputs[0]
        joined = self._joined(channels)
        inputs, attributes = [joined, *node.inputs[1:]], dict(node.attributes)
        places = channels.places(self._widths)
        if node.op == "conv2d":
            for place, kind in ((1, "kernels"), (2, "sums")):
                if place < len(inputs) and inputs[place]:
                    given = self._writer.constants[inputs[place]]
                    spread = np.zeros((self._widths.of(joined), *given.shape[1:]), given.dtype)
                    spread[places] = given
                    inputs[place] = self._constant(f"{node.name}.{kind}", spread)
            attributes["groups"] = self._widths.of(joined)
            attributes["shift"] = list(attributes["shift"][:1])
        made = self._tensor(f"{output}.unmoved", output, self._widths.of(joined))
        self._write(node, "unmoved", tuple(inputs), made, attributes)
        self._maps[output] = ChannelMap.whole(made, self._widths.of(made)).taken(places)

    def _write(
        self, node: Node, kind: str, inputs: tuple[str, ...], output: str, attributes: Mapping[str, Any]
    ) -> None:
        """Write a node that stands for one of the graph's, whose name it takes if that one goes."""
        name = self._name(f"{node.name}.{kind}")
        self._stands_for[name] = node.name
        self._nodes.append(replace(node, name=name, inputs=inputs, outputs=(output,), attributes=attributes))

    def _plain(self, name: str) -> str:
        """Return a tensor with just these channels in their order: one that VTA selects, or the tensor itself."""
        channels = self._maps.get(name)
        if channels is None or channels.is_free(self._widths) or not self._selects(channels):
            return name
        return self._selected(name, 1)

    def _selects(self, channels: ChannelMap) -> bool:
        """Return whether VTA selects channels sooner than a core moves them: it has made them, and few others."""
        return channels.width(self._widths) <= _MOST_MACS and self._on_vta.issuperset(channels.sources)

    def _selected(self, name: str, block: int) -> str:
        """Return the tensor of moved channels that 1 x 1 convolutions of VTA select, padded to a block.

        Sources that cannot lie in one memory are selected one by one, each with the former as its residual.
        """
        key = ("", str(block), name)
        if key not in self._made:
            channels, selected = self._maps[name], ""
            count = -(-len(channels) // block) * block
            for rows in channels.rows_of_joinable(self._widths):
                part = channels.taken(rows)
                unit = np.zeros((count, len(rows), 1, 1), np.int8)
                unit[rows, np.arange(len(rows))] = 1
                columns = part.columns(unit, self._widths)
                assert columns is not None
                weights = self._constant(f"{name}.selection", columns)
                inputs = (self._joined(part), weights, "", selected)
                selected = self._tensor(f"{name}.selected", name, count)
                attributes = {**_SELECTING, "residual_shift": [0]} if inputs[3] else _SELECTING
                self._nodes.append(Node(self._name(f"{name}.select"), "conv2d", inputs, (selected,), attributes))
            self._made[key] = selected
        return self._made[key]

    def _joined(self, channels: ChannelMap) -> str:
        """Return the tensor of all channels of a map's sources."""
        sources = channels.sources
        if len(sources) == 1:
            return sources[0]
        if sources not in self._made:
            count = sum(self._widths.of(name) for name in sources)
            output = self._tensor(f"{sources[-1]}.joined", sources[0], count)
            self._nodes.append(Node(self._name(f"{sources[-1]}.join"), "concat", sources, (output,), {"axis": 1}))
            self._made[sources] = output
        return self._made[sources]

    def _tensor(self, name: str, like: str, channels: int) -> str:
        """Add a tensor as another one, but for its channels; return its name."""
        name = self._writer.tensor(name, like, channels)
        self._on_vta.add(name)
        return name


def _cut(node: Node, place: int) -> slice:
    """Return one of a Slice's cuts, of the axis at `place` in its attributes."""
    return slice(*(node.attributes[key][place] for key in ("starts", "ends", "steps")))


def _unit(rows: int, columns: int) -> NDArray[np.int8]:
    """Return the weights (rows, columns, 1, 1) that select channels in their order."""
    return np.eye(rows, columns, dtype=np.int8)[:, :, None, None]
