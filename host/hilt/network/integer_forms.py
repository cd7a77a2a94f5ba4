"""Rewrites of an integer graph that change no value: the processor computes less.

The largest of a table's floats is found on int8, as the largest rank among the table's entries. A Pad of int8 that
repeats its own elements works on packed tensors. A Transpose that moves channels from last to first, axes of one
element apart, is written so: the packing reads channels last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor, with_used_tensors
from hilt.network.graph_rewrite import GraphRewrite

_MODES = ("reflect", "edge")
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


class _Rewriter(GraphRewrite):
    """Successors of nodes, by name."""

    def rewritten(self) -> Graph:
        nodes: list[Node] = []
        dropped: set[str] = set()
        rewrites = {"GlobalMaxPool": self._largest, "transpose": self._channels_last, "Pad": self._repeated}
        for node in self._graph.nodes:
            rewrite = rewrites.get(node.op)
            made = rewrite(node) if rewrite else None
            if made is not None:
                dropped.update(made[1])
            nodes += [node] if made is None else made[0]
        nodes = [node for node in nodes if node.name not in dropped]
        return with_used_tensors(
            replace(self._graph, nodes=tuple(nodes), tensors=self._tensors, constants=self._constants)
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

    # --- pads of own elements ---

    def _repeated(self, node: Node) -> tuple[list[Node], list[str]] | None:
        """Return a Pad of int8 that repeats its own elements as hilt's, which packed tensors have too."""
        tensor, pads = self._graph.tensors.get(node.inputs[0]), self._graph.constants.get(node.inputs[1])
        mode = node.attributes.get("mode", "constant")
        if tensor is None or tensor.dtype != "int8" or pads is None or any(node.inputs[3:]) or mode not in _MODES:
            return None
        widths = [int(each) for each in pads.reshape(-1)]
        if len(widths) != 2 * len(tensor.shape) or min(widths) < 0:
            return None
        attributes = {"pads": widths, "mode": mode}
        return [replace(node, op="pad", inputs=node.inputs[:1], attributes=attributes)], []

    # --- channels last ---

    def _channels_last(self, node: Node) -> tuple[list[Node], list[str]] | None:
        """Return an int8 Transpose as one from channels last to channels first, if it can be seen so."""
        source, tensor = node.inputs[0], self._graph.tensors.get(node.inputs[0])
        perm = tuple(node.attributes["perm"])
        if tensor is None or perm == _FIRST or not _is_channels_last(tensor.shape, perm):
            return None
        images, channels, height, width = (tensor.shape[axis] for axis in perm)
        shape = (images, height, width, channels)
        seen = self._int8(f"{node.name}.last", shape, tensor.scale)
        reshape = Node(f"{node.name}.last", "reshape", (source,), (seen,), {"shape": list(shape)}, node.source)
        return [reshape, replace(node, inputs=(seen,), attributes={"perm": list(_FIRST)})], []


def _is_channels_last(shape: tuple[int, ...], perm: tuple[int, ...]) -> bool:
    """Return whether a permutation to (N, C, H, W) moves elements as one from (N, H, W, C) does."""
    if len(perm) != 4:
        return False
    real = sorted(axis for axis in perm if shape[axis] != 1)
    wanted = [place for place in (0, 2, 3, 1) if shape[perm[place]] != 1]  # the result's axes in memory's order
    return [perm[place] for place in wanted] == real
