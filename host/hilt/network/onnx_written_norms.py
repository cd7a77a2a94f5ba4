"""Normalizations that are written as a mean, a difference, its square's mean, a root and a quotient are one operator.

Exporters write LayerNormalization so before operator set 17, and models their own norms over the channels of images.
hilt computes the one operator from integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes

_RANKS = range(2, 6)
_LARGEST_EPSILON = 1.0


class _Norm(NamedTuple):
    """A normalization: the tensor, the axes of its means, and the number that is added to the variance."""

    data: str
    axes: list[int]
    epsilon: float


def join_written_norms(graph: OnnxGraph) -> None:
    """Rewrite in place each such quotient of a float graph as a LayerNormalization or an InstanceNormalization.

    Factors behind it stay as they are. The nodes in front of it go if nobody else reads them.
    """
    matcher, nodes = _Matcher(graph), list[OnnxNode]()
    for node in graph.nodes:
        norm = matcher.norm_of(node)
        nodes += (None if norm is None else _written(graph, node, norm)) or [node]
    graph.nodes = nodes
    graph.remove_unused()


class _Matcher:
    """Finds quotients of differences and roots of variances."""

    def __init__(self, graph: OnnxGraph) -> None:
        self._graph, self._producers = graph, graph.producers()

    def norm_of(self, node: OnnxNode) -> _Norm | None:
        """Return the normalization whose result a node computes."""
        for difference, root in self._quotients(node):
            centred = self._centred(difference)
            squares = None if centred is None else self._variance(root)
            if centred is not None and squares is not None and self._centred(squares.data) == centred:
                data, axes = centred
                return _Norm(data, axes, squares.epsilon) if squares.axes == axes else None
        return None

    def _quotients(self, node: OnnxNode) -> list[tuple[str, str]]:
        """Return the tensors that a node may divide, with the roots by which it does."""
        if node.domain:
            return []
        if node.op == "Div":
            root = self._made_by(node.inputs[1], "Sqrt")
            return [(node.inputs[0], root.inputs[0])] if root is not None else []
        found = []
        if node.op == "Mul":
            for place in (0, 1):
                inverse = self._made_by(node.inputs[place], "Reciprocal")
                root = None if inverse is None else self._made_by(inverse.inputs[0], "Sqrt")
                if root is not None:
                    found.append((node.inputs[1 - place], root.inputs[0]))
        return found

    def _centred(self, name: str) -> tuple[str, list[int]] | None:
        """Return the tensor that a tensor is, less its mean over some axes."""
        difference = self._made_by(name, "Sub")
        mean = None if difference is None else self._made_by(difference.inputs[1], "ReduceMean")
        if difference is None or mean is None or mean.inputs[0] != difference.inputs[0]:
            return None
        axes = self._axes(mean)
        return None if axes is None else (difference.inputs[0], axes)

    def _variance(self, name: str) -> _Norm | None:
        """Return the tensor whose squares' mean a tensor is, a small number added."""
        variance, epsilon = self._less_a_number(name)
        mean = self._made_by(variance, "ReduceMean")
        if mean is None or not 0 < epsilon < _LARGEST_EPSILON:
            return None
        axes, square = self._axes(mean), self._producers.get(mean.inputs[0])
        return None if axes is None or not self._is_square(square) else _Norm(square.inputs[0], axes, epsilon)

    def _less_a_number(self, name: str) -> tuple[str, float]:
        """Return the tensor to which a number is added, and the number; an empty name of other sums."""
        added = self._made_by(name, "Add")
        numbers = [] if added is None else [each for each in added.inputs if each in self._graph.constants]
        if added is None or len(numbers) != 1 or self._graph.constants[numbers[0]].size != 1:
            return "", 0.0
        (other,) = (each for each in added.inputs if each not in numbers)
        return other, float(self._graph.constants[numbers[0]].reshape(()))

    def _is_square(self, node: OnnxNode | None) -> TypeGuard[OnnxNode]:
        if node is None:
            return False
        if node.op == "Pow" and node.inputs[1] in self._graph.constants:
            return bool(np.all(self._graph.constants[node.inputs[1]] == 2))
        return node.op == "Mul" and node.inputs[0] == node.inputs[1]

    def _axes(self, mean: OnnxNode) -> list[int] | None:
        """Return the axes of a mean that keeps them."""
        rank = len(self._graph.shape(mean.inputs[0]))
        return reduced_axes(self._graph, mean, rank) if mean.attributes.get("keepdims", 1) else None

    def _made_by(self, name: str, op: str) -> OnnxNode | None:
        maker = self._producers.get(name)
        return maker if maker is not None and maker.op == op and not maker.domain else None


def _written(graph: OnnxGraph, node: OnnxNode, norm: _Norm) -> list[OnnxNode] | None:
    """Return the one operator, between Transposes where its channels are not last; None for other axes."""
    shape, result = graph.shape(norm.data), node.outputs[0]
    rank = len(shape)
    if rank not in _RANKS or graph.dtypes.get(norm.data, "float32") != "float32" or shape != graph.shape(result):
        return None
    if norm.axes == [rank - 1]:
        return [_layer_norm(graph, node, norm.data, result, shape[-1], norm.epsilon)]
    if norm.axes == list(range(2, rank)):
        parts = {"ones": np.ones(shape[1], np.float32), "zeros": np.zeros(shape[1], np.float32)}
        inputs = [norm.data, *(new_constant(graph, f"{node.name}.{part}", value) for part, value in parts.items())]
        return [OnnxNode(node.name, "InstanceNormalization", inputs, [result], {"epsilon": norm.epsilon})]
    if norm.axes != [1]:
        return None
    last = [0, *range(2, rank), 1]
    turned, normal = (
        _like(graph, f"{node.name}.{part}", [shape[axis] for axis in last]) for part in ("turned", "normal")
    )
    return [
        OnnxNode(turned, "Transpose", [norm.data], [turned], {"perm": last}),
        _layer_norm(graph, node, turned, normal, shape[1], norm.epsilon),
        OnnxNode(f"{normal}.back", "Transpose", [normal], [result], {"perm": [0, rank - 1, *range(1, rank - 1)]}),
    ]


def _layer_norm(graph: OnnxGraph, node: OnnxNode, data: str, result: str, channels: int, epsilon: float) -> OnnxNode:
    ones = new_constant(graph, f"{node.name}.ones", np.ones(channels, np.float32))
    return OnnxNode(node.name, "LayerNormalization", [data, ones], [result], {"axis": -1, "epsilon": epsilon})


def _like(graph: OnnxGraph, stem: str, shape: Sequence[int]) -> str:
    """Return the name of a new float tensor."""
    name = graph.unique(stem)
    graph.shapes[name], graph.dtypes[name] = tuple(shape), "float32"
    return name
