"""Sigmoid, Softmax and their like, computed before tensors are joined: on int8 each is a look-up then.

A detection head joins the results of several scales, and then takes Sigmoid or Softmax of all. Joined floats have no
table; the layers' results in int8 have one each.
"""

from __future__ import annotations

import math
from typing import Any

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, free_name, reshape_node

_ELEMENTWISE = frozenset(("Exp", "Sigmoid", "Softplus", "Tanh"))
_ALONG_AXIS = frozenset(("LogSoftmax", "Softmax"))


def functions_first(graph: OnnxGraph) -> None:
    """Rewrite in place: a function of tensors that a Concat joins, and moves behind it turn, is taken of each."""
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        mover = _Mover(graph, node)
        if mover.can_move(node.inputs[0] if node.inputs else "", mover.axis):
            mover.write(node.inputs[0], mover.axis, node.outputs[0])
            nodes += mover.nodes
        else:
            nodes.append(node)
    graph.nodes = nodes
    graph.name_apart()
    graph.remove_unused()


class _Mover:
    """Writes a function of the tensors that are joined in front of it."""

    def __init__(self, graph: OnnxGraph, node: OnnxNode) -> None:
        self._graph, self._node = graph, node
        self._producers, self._readers = graph.producers(), graph.consumers()
        self.nodes: list[OnnxNode] = []
        self._results: dict[tuple[str, int | None], str] = {}
        self.axis: int | None = None
        """Along which the function computes; None for each element alone."""
        if node.op in _ALONG_AXIS and not node.domain:
            self.axis = int(node.attributes.get("axis", -1)) % len(graph.shape(node.inputs[0]))

    def can_move(self, name: str, axis: int | None) -> bool:
        """Tell whether a tensor is one that the function can be computed in front of."""
        if self._node.domain or self._node.op not in _ELEMENTWISE | _ALONG_AXIS:
            return False
        maker = self._maker(name)
        if maker is None:
            return False
        if maker.op == "Concat":
            return axis != self._joined_axis(maker) and not any(each in self._graph.constants for each in maker.inputs)
        if maker.op == "Transpose":
            return self.can_move(maker.inputs[0], self._before(maker, axis))
        if maker.op != "Reshape":
            return False
        return self.can_move(maker.inputs[0], None) if axis is None else self._reshaped_axis(maker) not in (None, axis)

    def write(self, name: str, axis: int | None, result: str) -> None:
        """Add the nodes that make the function of a tensor, which `can_move` is true of."""
        graph, maker = self._graph, self._producers[name]
        graph.shapes[result], graph.dtypes[result] = graph.shape(name), graph.dtypes.get(name, "float32")
        if maker.op == "Concat":
            parts = [self._function(each, axis) for each in maker.inputs]
            self._add("joined", "Concat", parts, result, {"axis": self._joined_axis(maker)})
        elif maker.op == "Transpose":
            inner = graph.unique(f"{result}.{maker.name}")
            self.write(maker.inputs[0], self._before(maker, axis), inner)
            self._add("turned", "Transpose", [inner], result, {"perm": self._perm(maker)})
        elif axis is None:
            inner = graph.unique(f"{result}.{maker.name}")
            self.write(maker.inputs[0], None, inner)
            self.nodes.append(reshape_node(graph, f"{self._node.name}.shaped", inner, result, graph.shape(name)))
        else:
            self._write_reshaped(maker, axis, result)

    def _write_reshaped(self, reshape: OnnxNode, axis: int, result: str) -> None:
        """Add the function of each joined tensor in the shape that they have together behind a Reshape."""
        joined, place = self._producers[reshape.inputs[0]], self._reshaped_axis(reshape)
        assert place is not None
        parts = []
        for number, name in enumerate(joined.inputs):
            shape = list(self._graph.shape(reshape.outputs[0]))
            shape[place] = self._graph.shape(name)[self._joined_axis(joined)]
            part = self._new(f"{result}.part{number}", tuple(shape))
            self.nodes.append(reshape_node(self._graph, f"{part}.shaped", name, part, tuple(shape)))
            parts.append(self._function(part, axis))
        self._add("joined", "Concat", parts, result, {"axis": place})

    def _function(self, name: str, axis: int | None) -> str:
        """Add the function of a tensor, once; return its result."""
        if (name, axis) in self._results:
            return self._results[name, axis]
        made = self._results[name, axis] = self._new(f"{name}.{self._node.op}", self._graph.shape(name))
        if self.can_move(name, axis):
            self.write(name, axis, made)
            return made
        attributes = dict(self._node.attributes) if axis is None else {**self._node.attributes, "axis": axis}
        self._add(f"of {name}", self._node.op, [name], made, attributes)
        return made

    def _add(self, stem: str, op: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> None:
        self.nodes.append(OnnxNode(f"{self._node.name}.{stem}", op, inputs, [output], attributes))

    def _new(self, stem: str, shape: tuple[int, ...]) -> str:
        name = free_name(stem, {*self._graph.shapes, *self._graph.constants})
        self._graph.shapes[name], self._graph.dtypes[name] = shape, "float32"
        return name

    def _maker(self, name: str) -> OnnxNode | None:
        """Return the node that makes a tensor that one node alone reads."""
        alone = len(self._readers.get(name, ())) == 1 and name not in self._graph.outputs
        maker = self._producers.get(name)
        return maker if alone and maker is not None and not maker.domain else None

    def _joined_axis(self, concat: OnnxNode) -> int:
        return int(concat.attributes["axis"]) % len(self._graph.shape(concat.outputs[0]))

    def _perm(self, transpose: OnnxNode) -> list[int]:
        rank = len(self._graph.shape(transpose.inputs[0]))
        return list(transpose.attributes.get("perm", range(rank)[::-1]))

    def _before(self, transpose: OnnxNode, axis: int | None) -> int | None:
        """Return the axis in front of a Transpose."""
        return None if axis is None else self._perm(transpose)[axis]

    def _reshaped_axis(self, reshape: OnnxNode) -> int | None:
        """Return the axis along which tensors are joined, behind a Reshape of the joined tensor; None if it is lost."""
        maker = self._maker(reshape.inputs[0])
        if maker is None or maker.op != "Concat" or any(each in self._graph.constants for each in maker.inputs):
            return None
        axis = self._joined_axis(maker)
        before, after = self._graph.shape(reshape.inputs[0]), self._graph.shape(reshape.outputs[0])
        places = [
            place
            for place in range(len(after))
            if after[place] == before[axis] and math.prod(after[:place]) == math.prod(before[:axis])
        ]
        return places[0] if places else None
