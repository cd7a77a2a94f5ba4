"""Two Transposes with functions, constants and sums along one axis between them, that undo each other, are left out.

TensorFlow's converter turns a spectrum's time and bins, squares and sums its two parts, and turns it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes

_SUMS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare")


def cancel_meeting_turns(graph: OnnxGraph) -> None:
    """Rewrite in place: each such pair goes, and nodes between them take the order in front of the first."""
    for turn in [node for node in graph.nodes if node.op == "Transpose" and not node.domain]:
        consumers = graph.consumers()
        path = _path(graph, turn, consumers)
        if path is not None:
            _cancel(graph, turn, path)
    graph.remove_unused()


def _path(
    graph: OnnxGraph, turn: OnnxNode, consumers: Mapping[str, Sequence[OnnxNode]]
) -> list[tuple[OnnxNode, list[int]]] | None:
    """Return the nodes from behind a Transpose to the one that undoes it, each with the order of its input's axes."""
    order: list[int] | None = _perm(graph, turn)
    name = turn.outputs[0]
    path: list[tuple[OnnxNode, list[int]]] = []
    while order is not None:
        node = _only_reader(graph, name, consumers)
        if node is None:
            return None
        path.append((node, order))
        if node.op == "Transpose":
            together = [order[axis] for axis in _perm(graph, node)]
            return path if together == sorted(together) and len(path) > 1 else None
        order, name = _passed(graph, node, name, order), node.outputs[0]
    return None


def _only_reader(graph: OnnxGraph, name: str, consumers: Mapping[str, Sequence[OnnxNode]]) -> OnnxNode | None:
    """Return the one node of ONNX's that reads a tensor, and makes one; None if there is another reader, or none."""
    readers = {id(reader): reader for reader in consumers.get(name, ())}
    if len(readers) != 1 or name in graph.outputs:
        return None
    (node,) = readers.values()
    return None if node.domain or len(node.outputs) != 1 else node


def _passed(graph: OnnxGraph, node: OnnxNode, name: str, order: list[int]) -> list[int] | None:
    """Return the order of axes behind a node; None of one that no Transpose passes."""
    if _is_of_elements(graph, node, name, len(order)):
        return order
    axis = _axis(graph, node, len(order))
    if axis is None or node.attributes.get("keepdims", 1):
        return None if axis is None else order
    return [each - (each > order[axis]) for place, each in enumerate(order) if place != axis]


def _is_of_elements(graph: OnnxGraph, node: OnnxNode, name: str, rank: int) -> bool:
    """Tell whether a node computes each element of a tensor alone, or with an element of a constant."""
    others = set(node.inputs) - {name, ""}
    if not others <= set(graph.constants):
        return False
    if node.op in UNARY:
        return all(graph.constants[each].size == 1 for each in others)
    return node.op in BINARY - {"PRelu"} and all(graph.constants[each].ndim <= rank for each in others)


def _axis(graph: OnnxGraph, node: OnnxNode, rank: int) -> int | None:
    """Return the one axis that a node sums up; None of others."""
    axes = reduced_axes(graph, node, rank) if node.op in _SUMS else None
    return axes[0] if axes is not None and len(axes) == 1 else None


def _perm(graph: OnnxGraph, node: OnnxNode) -> list[int]:
    rank = len(graph.shape(node.inputs[0]))
    return [int(axis) for axis in node.attributes.get("perm", range(rank - 1, -1, -1))]


def _cancel(graph: OnnxGraph, turn: OnnxNode, path: Sequence[tuple[OnnxNode, list[int]]]) -> None:
    """Let the nodes between two Transposes read the first one's input, and all others the last one's output."""
    before, name = turn.outputs[0], turn.inputs[0]
    for (node, order), (_, behind) in pairwise(path):
        node.inputs = [_unturned(graph, node, each, order, {before: name}) for each in node.inputs]
        if node.op in _SUMS:
            _sum_along(graph, node, order)
        before = node.outputs[0]
        name = graph.unique(f"{before}.unturned")
        shape = graph.shape(before)
        graph.shapes[name] = tuple(shape[behind.index(axis)] for axis in range(len(behind)))
        graph.dtypes[name] = graph.dtypes.get(before, "float32")
        node.outputs[0] = name
    last = path[-1][0]
    graph.nodes = [node for node in graph.nodes if node is not last]
    if last.outputs[0] in graph.outputs:
        path[-2][0].outputs[0] = last.outputs[0]
    else:
        graph.replace(last.outputs[0], name)


def _unturned(graph: OnnxGraph, node: OnnxNode, name: str, order: Sequence[int], moved: Mapping[str, str]) -> str:
    """Return an input of a node, or a constant of it with its axes as they are in front of the first Transpose."""
    if name in moved or node.op not in BINARY or not graph.constants[name].ndim:
        return moved.get(name, name)
    values = graph.constants[name]
    full = values.reshape((1,) * (len(order) - values.ndim) + values.shape)
    return new_constant(graph, f"{node.name}.unturned", np.ascontiguousarray(full.transpose(np.argsort(order))))


def _sum_along(graph: OnnxGraph, node: OnnxNode, order: Sequence[int]) -> None:
    axis = order[_axis(graph, node, len(order)) or 0]
    if "axes" in node.attributes:
        node.attributes["axes"] = [axis]
    else:
        node.inputs[1] = new_constant(graph, f"{node.name}.axis", np.array([axis], np.int64))
