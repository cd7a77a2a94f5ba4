"""Floats that are functions of one int8 tensor, made as late as they are read: until then bytes move.

A network's head dequantises a layer's int8 result, cuts, turns and joins the floats, and takes a Sigmoid of them. The
same moves of int8 move a quarter, and any function of one element is a look-up among 256 floats behind them. No value
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.graph import Graph, Node, Tensor, with_used_tensors
from hilt_runtime import operators

_REASON = "it only moves data"
_BYTES = np.arange(-128, 128)


@dataclass(frozen=True)
class _Late:
    """Floats that are entries of a table: entries[data + 128].

    Attributes:
        data: The int8 tensor.
        entries: float32, of -128 first.
        maker: The node that makes the floats in the given graph.
    """

    data: str
    entries: NDArray[np.float32]
    maker: Node


def with_postponed_floats(graph: Graph) -> Graph:
    """Return a graph with the same outputs, whose floats of int8 tensors are made where they are read."""
    return _Postponer(graph).rewritten()


class _Postponer:
    """The state of with_postponed_floats: `_late` are the floats that are not made yet."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[Node] = []
        self._tensors: dict[str, Tensor] = dict(graph.tensors)
        self._constants: dict[str, NDArray[Any]] = dict(graph.constants)
        self._late: dict[str, _Late] = {}
        self._made: set[str] = set()

    def rewritten(self) -> Graph:
        for node in self._graph.nodes:
            late = self._source(node) or self._moved(node) or self._function(node)
            if late is not None:
                self._late[node.outputs[0]] = late
                continue
            for name in node.inputs:
                self._make(name)
            self._nodes.append(node)
        for name in self._graph.outputs:
            self._make(name)
        return with_used_tensors(
            replace(self._graph, nodes=tuple(self._nodes), tensors=self._tensors, constants=self._constants)
        )

    def _source(self, node: Node) -> _Late | None:
        """Return the floats of a node that leaves the integers."""
        if node.op == "dequantize":
            entries = _BYTES.astype(np.float32) * np.float32(node.attributes["scale"])
            return _Late(node.inputs[0], entries, node)
        table = self._constants[node.inputs[1]] if node.op == "table" else None
        if table is None or table.dtype != np.float32:
            return None
        return _Late(node.inputs[0], table, node)

    def _moved(self, node: Node) -> _Late | None:
        """Return the floats that a node moves from one that is late, and move the int8 tensor; None of other nodes."""
        move, parts = _MOVES.get(node.op), self._alike(node)
        if move is None or not parts:
            return None
        shape = self._graph.tensors[node.outputs[0]].shape
        form = move(node, self._constants, len(self._graph.tensors[node.inputs[0]].shape), shape)
        if form is None:
            return None
        op, attributes = form
        made = self._int8(f"{node.outputs[0]}.int8", shape, self._tensors[parts[0].data].scale)
        inputs = tuple(part.data for part in parts)
        self._nodes.append(Node(node.name, op, inputs, (made,), attributes, node.source, _REASON))
        return _Late(made, parts[0].entries, parts[0].maker)

    def _alike(self, node: Node) -> list[_Late]:
        """Return the tensors that a node reads, if all are late, with the same entries; none else."""
        read = [name for name in node.inputs if name and name not in self._constants]
        parts = [self._late[name] for name in read if name in self._late]
        if len(parts) < (len(node.inputs) if node.op == "Concat" else len(read)):
            return []
        same = all(_alike_bits(parts[0].entries, part.entries) for part in parts)
        return parts if same else []

    def _function(self, node: Node) -> _Late | None:
        """Return the floats that a node computes element by element of late ones and scalars; None of other nodes."""
        if node.op not in UNARY | BINARY or len(node.outputs) > 1:
            return None
        name = self._only_late(node)
        if not name or self._shape(name) != self._shape(node.outputs[0]):
            return None
        late = self._late[name]
        given = [late.entries if each == name else self._scalar(each) for each in node.inputs]
        with np.errstate(all="ignore"):
            entries = np.asarray(operators.run(node.op, given, node.attributes)[0])
        return _Late(late.data, entries, node) if entries.dtype == np.float32 and entries.shape == (256,) else None

    def _only_late(self, node: Node) -> str:
        """Return the late floats that a node reads beside scalars alone; "" if it reads others."""
        read = {name for name in node.inputs if name and name not in self._constants}
        scalars = all(self._constants[name].size == 1 for name in node.inputs if name in self._constants)
        return next(iter(read)) if scalars and len(read) == 1 and read <= self._late.keys() else ""

    def _scalar(self, name: str) -> NDArray[Any] | None:
        return self._constants[name].reshape(()) if name else None

    def _shape(self, name: str) -> tuple[int, ...]:
        return self._graph.tensors[name].shape

    def _make(self, name: str) -> None:
        """Add the node that makes floats, if they are late and not there yet."""
        late = self._late.get(name)
        if late is None or name in self._made:
            return
        self._made.add(name)
        scale = self._tensors[late.data].scale
        maker, label = late.maker, self._node_name(late.maker.name)
        if scale is not None and _alike_bits(late.entries, _BYTES.astype(np.float32) * np.float32(scale)):
            made = Node(
                label, "dequantize", (late.data,), (name,), {"scale": scale}, maker.source, "it leaves the integers"
            )
        else:
            table = self._table(f"{label}.table", late.entries)
            made = Node(label, "table", (late.data, table), (name,), {}, maker.source, "it leaves the integers")
        self._nodes.append(made)

    def _table(self, stem: str, entries: NDArray[np.float32]) -> str:
        while stem in self._constants and not _alike_bits(self._constants[stem], entries):
            stem += "_"
        self._constants[stem] = entries
        return stem

    def _node_name(self, stem: str) -> str:
        names = {node.name for node in (*self._graph.nodes, *self._nodes)}
        return stem if all(node.name != stem for node in self._nodes) else _free(stem, names)

    def _int8(self, stem: str, shape: tuple[int, ...], scale: float | None) -> str:
        name = _free(stem, {*self._tensors, *self._constants})
        self._tensors[name] = Tensor(name, shape, "int8", scale)
        return name


def _alike_bits(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Return whether two arrays are the same: array_equal takes -0.0 for 0.0."""
    return first.dtype == second.dtype and first.tobytes() == second.tobytes()


def _free(stem: str, taken: set[str]) -> str:
    while stem in taken:
        stem += "_"
    return stem


_Form = tuple[str, dict[str, Any]]
_Constants = Mapping[str, NDArray[Any]]


def _reshape(node: Node, constants: _Constants, rank: int, shape: tuple[int, ...]) -> _Form:
    return "reshape", {"shape": list(shape)}


def _transpose(node: Node, constants: _Constants, rank: int, shape: tuple[int, ...]) -> _Form:
    return "transpose", {"perm": list(node.attributes.get("perm", range(rank)[::-1]))}


def _concat(node: Node, constants: _Constants, rank: int, shape: tuple[int, ...]) -> _Form:
    return "concat", {"axis": int(node.attributes["axis"]) % rank}


def _depth_to_space(node: Node, constants: _Constants, rank: int, shape: tuple[int, ...]) -> _Form:
    return "depth_to_space", {"block": [node.attributes["blocksize"]] * 2, "mode": node.attributes.get("mode", "DCR")}


def _slice(node: Node, constants: _Constants, rank: int, shape: tuple[int, ...]) -> _Form | None:
    given = [constants.get(name) for name in node.inputs[1:] if name]
    if len(given) < 2 or any(value is None for value in given) or "" in node.inputs:
        return None
    starts, ends, *rest = ([int(each) for each in value.ravel()] for value in given if value is not None)
    axes = rest[0] if rest else list(range(len(starts)))
    steps = rest[1] if len(rest) > 1 else [1] * len(starts)
    return "slice", {"starts": starts, "ends": ends, "axes": [axis % rank for axis in axes], "steps": steps}


_MOVES: Mapping[str, Callable[[Node, _Constants, int, tuple[int, ...]], _Form | None]] = {
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
    "Transpose": _transpose,
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Slice": _slice,
}
"""The int8 operator and its attributes of a float operator that only moves data."""
