"""Rewrites of an integer graph that change no value: less is computed in floats.

The largest of a table's floats is found on int8, as the largest rank among the table's entries; and floats that are
only moved before they are quantised are quantised first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor

_FIRST = (0, 3, 1, 2)
"""The permutation from channels last to channels first."""


def with_integer_forms(graph: Graph) -> Graph:
    """Return a graph with the same outputs."""
    return _Rewriter(graph).rewritten()


@dataclass(frozen=True)
class _Moved:
    """A tensor and the one that it is moved from: nodes between, the last first, that nothing else reads."""

    source: str
    moves: tuple[Node, ...]


class _Rewriter:
    """The state of with_integer_forms: successors of nodes, by name, and what they add to the graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._producers = graph.producer()
        self._readers = graph.consumers()
        self._tensors: dict[str, Tensor] = dict(graph.tensors)
        self._constants: dict[str, NDArray[np.generic]] = dict(graph.constants)

    def rewritten(self) -> Graph:
        nodes: list[Node] = []
        dropped: set[str] = set()
        for node in self._graph.nodes:
            made = self._largest(node) if node.op == "GlobalMaxPool" else self._quantised_first(node)
            if made is not None:
                dropped.update(made[1])
            nodes += [node] if made is None else made[0]
        nodes = [node for node in nodes if node.name not in dropped]
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)} | set(self._graph.inputs)
        used.update(self._graph.outputs)
        return replace(
            self._graph,
            nodes=tuple(nodes),
            tensors={name: tensor for name, tensor in self._tensors.items() if name in used},
            constants={name: value for name, value in self._constants.items() if name in used},
        )

    def _moved(self, name: str, operators: tuple[str, ...]) -> _Moved:
        """Return the tensor that a tensor is moved from by such operators."""
        moves: list[Node] = []
        while self._is_inner(name) and (maker := self._producers.get(name)) is not None and maker.op in operators:
            moves.append(maker)
            name = maker.inputs[0]
        return _Moved(name, tuple(moves))

    def _is_inner(self, name: str) -> bool:
        """Return whether one node alone reads a tensor."""
        return len(self._readers.get(name, ())) == 1 and name not in self._graph.outputs

    def _int8(self, stem: str, shape: tuple[int, ...], scale: float | None = None) -> str:
        """Add an int8 tensor; return its name."""
        name = stem
        while name in self._tensors or name in self._constants:
            name += "_"
        self._tensors[name] = Tensor(name, shape, "int8", scale)
        return name

    # --- the largest of a table's floats ---

    def _largest(self, node: Node) -> tuple[list[Node], list[str]] | None:
        """Return the successors of a maximum over an image of a table's floats, and the nodes that are not needed."""
        moved = self._moved(node.inputs[0], ("Reshape",))
        maker = self._producers.get(moved.source)
        if maker is None or maker.op not in ("table", "dequantize") or not self._is_inner(moved.source):
            return None
        data, whole = self._graph.tensors[maker.inputs[0]], self._graph.tensors[node.inputs[0]].shape
        entries = self._entries(maker)
        pixels = math.prod(data.shape[2:])
        if len(data.shape) != 4 or (*data.shape[:2], pixels) != (*whole[:2], math.prod(whole[2:])) or entries is None:
            return None
        order = np.argsort(entries, kind="stable")
        ranks = np.empty(256, np.int8)
        ranks[order] = np.arange(-128, 128)
        nodes, source = [], maker.inputs[0]
        if not np.array_equal(ranks, np.arange(-128, 128)):
            source = self._int8(f"{node.name}.ranks", data.shape)
            self._constants[f"{node.name}.rank_table"] = ranks
            inputs = (maker.inputs[0], f"{node.name}.rank_table")
            nodes.append(Node(f"{node.name}.ranks", "table", inputs, (source,), {}, maker.source))
        largest = self._int8(f"{node.name}.largest", (*data.shape[:2], 1, 1))
        window = {"kernel": list(data.shape[2:]), "strides": [1, 1], "pads": [0] * 4}
        nodes.append(Node(f"{node.name}.largest", "max_pool", (source,), (largest,), window, node.source))
        shape = self._graph.tensors[node.outputs[0]].shape
        flat = self._int8(f"{node.name}.flat", shape)
        nodes.append(Node(f"{node.name}.flat", "reshape", (largest,), (flat,), {"shape": list(shape)}, node.source))
        self._constants[f"{node.name}.table"] = entries[order]
        inputs = (flat, f"{node.name}.table")
        nodes.append(Node(node.name, "table", inputs, node.outputs, {}, (*maker.source, *node.source), maker.reason))
        return nodes, [maker.name, *(each.name for each in moved.moves)]

    def _entries(self, node: Node) -> NDArray[np.float32] | None:
        """Return the floats that a node makes of the 256 values, -128 first; None if one is no number."""
        if node.op == "table":
            entries = np.asarray(self._graph.constants[node.inputs[1]])
        else:
            entries = np.arange(-128, 128).astype(np.float32) * np.float32(node.attributes["scale"])
        return entries if entries.dtype == np.float32 and not np.isnan(entries).any() else None

    # --- quantised before they are moved ---

    def _quantised_first(self, node: Node) -> tuple[list[Node], list[str]] | None:
        """Return a quantize and the moves of its result, and the moves of floats, which are not needed."""
        if node.op != "quantize":
            return None
        moved = self._moved(node.inputs[0], ("Reshape", "Transpose"))
        if not any(each.op == "Transpose" for each in moved.moves):
            return None
        scale = self._graph.tensors[node.outputs[0]].scale
        now = self._int8(f"{node.name}.first", self._graph.tensors[moved.source].shape, scale)
        nodes = [replace(node, inputs=(moved.source,), outputs=(now,))]
        for place, move in enumerate(reversed(moved.moves)):
            last = place == len(moved.moves) - 1
            shape = self._graph.tensors[move.outputs[0]].shape
            made = node.outputs[0] if last else self._int8(f"{move.name}.int8", shape, scale)
            nodes += self._int8_move(move, now, made, shape)
            now = made
        return nodes, [each.name for each in moved.moves]

    def _int8_move(self, move: Node, source: str, made: str, shape: tuple[int, ...]) -> list[Node]:
        """Return a move of floats on int8, from channels last to channels first if it can be seen so."""
        name, before = f"{move.name}.moved", self._tensors[source]
        if move.op == "Reshape":
            return [Node(name, "reshape", (source,), (made,), {"shape": list(shape)}, move.source)]
        perm = tuple(move.attributes.get("perm") or range(len(shape))[::-1])
        if perm != _FIRST and _is_channels_last(before.shape, perm):
            images, channels, height, width = shape
            seen = self._int8(f"{name}.last", (images, height, width, channels), before.scale)
            attributes = {"shape": [images, height, width, channels]}
            reshape = Node(f"{name}.last", "reshape", (source,), (seen,), attributes, move.source)
            return [reshape, Node(name, "transpose", (seen,), (made,), {"perm": list(_FIRST)}, move.source)]
        return [Node(name, "transpose", (source,), (made,), {"perm": list(perm)}, move.source)]


def _is_channels_last(shape: tuple[int, ...], perm: tuple[int, ...]) -> bool:
    """Return whether a permutation to (N, C, H, W) moves elements as one from (N, H, W, C) does."""
    if len(perm) != 4:
        return False
    real = sorted(axis for axis in perm if shape[axis] != 1)
    wanted = [place for place in (0, 2, 3, 1) if shape[perm[place]] != 1]  # the result's axes in memory's order
    return [perm[place] for place in wanted] == real
