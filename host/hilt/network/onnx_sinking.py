"""Reshapes behind a layer, moved behind the element-wise operators that follow.

A product of rank three is computed as one of rank two, and images lose a side of 1, or their batch of one. Biases,
batch norms and activations can only fuse if they follow the layer directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reshape_node

_Shape = tuple[int, ...]
_Producers = Mapping[str, OnnxNode]


def move_reshapes_back(graph: OnnxGraph) -> None:
    """Rewrite in place: Reshape and then an operator becomes the operator and then Reshape."""

    def moved(node: OnnxNode, producers: _Producers) -> list[OnnxNode] | None:
        return _moved(graph, node, producers, _changes_rows) or _padded(graph, node, producers, _side_of)

    _each_behind(graph, moved)


def move_lines_and_batches_back(graph: OnnxGraph) -> None:
    """Rewrite in place: do the same of Reshapes that drop a batch of one, or make a line of an image's rows.

    It is done before layouts are cancelled.
    """

    def moved(node: OnnxNode, producers: _Producers) -> list[OnnxNode] | None:
        return _moved(graph, node, producers, _drops_batch_or_makes_line) or _padded(graph, node, producers, _batch_of)

    _each_behind(graph, moved)


def _each_behind(graph: OnnxGraph, rewrite: Callable[[OnnxNode, _Producers], list[OnnxNode] | None]) -> None:
    """Let `rewrite` give each node's successors by the nodes in front of it; None keeps it."""
    producers: dict[str, OnnxNode] = {}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        for each in rewrite(node, producers) or [node]:
            nodes.append(each)
            producers.update((name, each) for name in each.outputs if name)
    graph.nodes = nodes
    graph.remove_unused()  # so that the layer has one reader again


def _moved(
    graph: OnnxGraph, node: OnnxNode, producers: _Producers, passes: Callable[[_Shape, _Shape], bool]
) -> list[OnnxNode] | None:
    """Return the operator on the tensor before the Reshape, and a Reshape; None where they do not commute.

    `passes` tells by the shapes before and after a Reshape whether it is one to move.
    """
    before = _before_reshapes(graph, node, producers)
    shapes = {(graph.shape(source), graph.shape(name)) for name, source in before.items()}
    if len(shapes) != 1:
        return None
    ((first, last),) = shapes
    if graph.shape(node.outputs[0]) != last or not passes(first, last):
        return None
    inputs = []
    for place, name in enumerate(node.inputs):
        moved = before.get(name) or _constant(graph, node, place, (first, last))
        if moved is None:
            return None
        inputs.append(moved)
    result = graph.unique(f"{node.name}.moved")
    graph.shapes[result], graph.dtypes[result] = first, graph.dtypes.get(node.outputs[0], "float32")
    return [
        OnnxNode(node.name, node.op, inputs, [result], dict(node.attributes)),
        reshape_node(graph, f"{node.name}.shape", result, node.outputs[0], last),
    ]


def _padded(
    graph: OnnxGraph, node: OnnxNode, producers: _Producers, dropped: Callable[[_Shape, _Shape], int | None]
) -> list[OnnxNode] | None:
    """Return the Pad of a tensor in front of the Reshape that drops an axis of 1, and the Reshape; None of others.

    `dropped` tells by the shapes before and after a Reshape which axis that is.
    """
    maker = producers.get(node.inputs[0]) if _pads_all_axes(graph, node) else None
    if maker is None or maker.op != "Reshape":
        return None
    place = dropped(graph.shape(maker.inputs[0]), graph.shape(node.inputs[0]))
    if place is None:
        return None
    last = graph.shape(node.outputs[0])
    wide = np.insert(graph.constants[node.inputs[1]].reshape(2, -1), place, 0, axis=1).reshape(-1).astype(np.int64)
    result = graph.unique(f"{node.name}.moved")
    graph.shapes[result] = (*last[:place], 1, *last[place:])
    graph.dtypes[result] = graph.dtypes.get(node.outputs[0], "float32")
    inputs = [maker.inputs[0], new_constant(graph, f"{node.name}.sides", wide), *node.inputs[2:]]
    return [
        OnnxNode(node.name, "Pad", inputs, [result], dict(node.attributes)),
        reshape_node(graph, f"{node.name}.shape", result, node.outputs[0], last),
    ]


def _pads_all_axes(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether a node is a Pad of all axes of a tensor, by constants."""
    if node.op != "Pad" or node.domain or any(node.inputs[3:]):
        return False
    pads = graph.constants.get(node.inputs[1])
    return pads is not None and pads.size == 2 * len(graph.shape(node.inputs[0]))


def _side_of(first: _Shape, last: _Shape) -> int | None:
    """Return which side of an image a Reshape drops."""
    return (2 if first[2] == 1 else 3) if _drops_side(first, last) else None


def _batch_of(first: _Shape, last: _Shape) -> int | None:
    """Return the axis of the batch if a Reshape drops it."""
    return 0 if _drops_batch(first, last) else None


def _before_reshapes(graph: OnnxGraph, node: OnnxNode, producers: _Producers) -> dict[str, str]:
    """Return for each tensor that an element-wise operator reads the one before its Reshape; none if one has none."""
    if node.domain or node.op not in UNARY | BINARY | {"BatchNormalization"} or len(node.outputs) > 1:
        return {}
    before: dict[str, str] = {}
    for name in node.inputs:
        if name and name not in graph.constants:
            maker = producers.get(name)
            if maker is None or maker.op != "Reshape":
                return {}
            before[name] = maker.inputs[0]
    return before


def _changes_rows(first: _Shape, last: _Shape) -> bool:
    return _adds_rows(first, last) or _drops_side(first, last)


def _drops_batch(first: _Shape, last: _Shape) -> bool:
    """Tell whether (1, ...) becomes (...)."""
    return len(last) > 1 and first == (1, *last)


def _drops_batch_or_makes_line(first: _Shape, last: _Shape) -> bool:
    return _drops_batch(first, last) or _makes_line(first, last)


def _makes_line(first: _Shape, last: _Shape) -> bool:
    """Tell whether (N, C, H, W) becomes (N, C, H * W), or an image with a side of 1."""
    if len(first) != 4 or 1 in first[2:] or len(last) not in (3, 4) or first[:2] != last[:2]:
        return False
    return len(last) == 3 or 1 in last[2:]


def _adds_rows(first: _Shape, last: _Shape) -> bool:
    """Tell whether (rows, N) becomes (..., N)."""
    return len(first) == 2 and len(last) > 2 and first[-1] == last[-1]


def _drops_side(first: _Shape, last: _Shape) -> bool:
    """Tell whether (N, C, 1, L) or (N, C, L, 1) becomes (N, C, L)."""
    return len(first) == 4 and 1 in first[2:] and last == (*first[:2], first[2] * first[3])


def _constant(graph: OnnxGraph, node: OnnxNode, place: int, shapes: tuple[_Shape, _Shape]) -> str | None:
    """Return the name of a constant operand for the tensor before the Reshape; None if it varies along its axes."""
    first, last = shapes
    name = node.inputs[place]
    if node.op in UNARY or not name:  # a bound
        return name
    if node.op == "BatchNormalization":
        return name if _drops_side(first, last) or _makes_line(first, last) else None
    if _drops_batch(first, last):
        return name
    value = graph.constants[name]
    if value.size == 1:
        return new_constant(graph, f"{name}.scalar", value.reshape(()))
    shape = (1,) * (len(last) - value.ndim) + value.shape
    axis = 1 if len(first) == 4 else len(last) - 1
    if len(shape) != len(last) or any(size != 1 for other, size in enumerate(shape) if other != axis):
        return None
    along = np.ones(len(first), np.int64)
    along[1] = -1
    return new_constant(graph, f"{name}.moved", value.reshape(along))
