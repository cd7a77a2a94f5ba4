"""Concats of channels with the operands of whole blocks first: VTA's layers write these where the joined tensor lies.

A layer that reads the joined tensor gets the columns of its weights in the same order. Its sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node


def with_whole_blocks_first(graph: Graph) -> Graph:
    """Return a graph with the same outputs; a Concat whose operands change places has a tensor of another name."""
    readers = graph.consumers()
    nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    for node in graph.nodes:
        order = _order(graph, node, readers)
        if order == sorted(order):
            continue
        before = node.outputs[0]
        after = f"{before}.blocks"
        while after in tensors or after in constants:
            after += "_"
        tensors[after] = replace(tensors.pop(before), name=after)
        inputs = tuple(node.inputs[place] for place in order)
        nodes[node.name] = replace(node, inputs=inputs, outputs=(after,))
        channels = _channels(graph, node, order)
        for reader in readers[before]:
            weights = f"{reader.name}.blocks_weights"
            while weights in tensors or weights in constants:
                weights += "_"
            constants[weights] = np.ascontiguousarray(graph.constants[reader.inputs[1]][:, channels])
            nodes[reader.name] = replace(reader, inputs=(after, weights, *reader.inputs[2:]))
    used = {name for node in nodes.values() for name in node.inputs} | set(graph.outputs)
    kept = {name: value for name, value in constants.items() if name in used}
    return replace(graph, nodes=tuple(nodes.values()), tensors=tensors, constants=kept)


def _order(graph: Graph, node: Node, readers: Mapping[str, Sequence[Node]]) -> list[int]:
    """Return the places of a Concat's operands in their new order; none where it must stay.

    The more powers of two divide an operand's channels, the earlier it comes.
    """
    if node.op != "concat" or node.attributes["axis"] != 1 or node.outputs[0] in graph.outputs:
        return []
    reading = readers[node.outputs[0]]
    if not reading or not all(_reads_channels(graph, reader, node.outputs[0]) for reader in reading):
        return []
    sizes = [graph.tensors[name].shape[1] if name in graph.tensors else 0 for name in node.inputs]
    return [] if 0 in sizes else sorted(range(len(sizes)), key=lambda place: -(sizes[place] & -sizes[place]))


def _reads_channels(graph: Graph, node: Node, name: str) -> bool:
    """Return whether a node is a convolution of all channels of a tensor, which it reads as its data alone."""
    plain = node.op == "conv2d" and node.attributes["groups"] == 1
    return plain and node.inputs[0] == name and name not in node.inputs[1:] and node.inputs[1] in graph.constants


def _channels(graph: Graph, node: Node, order: Sequence[int]) -> NDArray[Any]:
    """Return the former place of each joined channel."""
    ends = np.cumsum([0, *(graph.tensors[name].shape[1] for name in node.inputs)])
    return np.concatenate([np.arange(ends[place], ends[place + 1]) for place in order])
