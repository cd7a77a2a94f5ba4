"""Sums over a sequence of looked-up rows, of how often each row is looked up; and its look-up row by row.

An embedding has few rows, a sequence many places: each row is counted, and multiplied by its count. The rows themselves
are looked up in the shape that the operators behind them have, so that they follow strip by strip.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilt.network.graph import Graph, Node, Tensor
from hilt.network.onnx_graph import free_name
from hilt_runtime.operators_reduce import reduced_axes


class _LookUp(NamedTuple):
    """A Gather of the rows of a constant table, and the Reshapes behind it, the last one's tensor first."""

    gather: Node
    table: NDArray[np.float32]
    shapes: dict[str, Node]


def with_counted_sums(graph: Graph) -> Graph:
    """Return a graph with the same outputs, but for the rounding of sums."""
    for gather in graph.nodes:
        found = _looked_up(graph, gather)
        if found is not None:
            graph = _by_rows(_counted(graph, found), found)
    return graph


def _looked_up(graph: Graph, node: Node) -> _LookUp | None:
    """Return the look-up that a node is; None if it is none, or of values that are no numbers."""
    if node.op != "Gather" or node.attributes.get("axis", 0) != 0:
        return None
    places, table = graph.tensors.get(node.inputs[1]), graph.constants.get(node.inputs[0])
    if places is None or places.dtype != "int64" or table is None or not _is_of_numbers(table):
        return None
    shapes = {node.outputs[0]: node}
    for each in graph.nodes:
        if each.op == "Reshape" and each.inputs[0] in shapes:
            shapes[each.outputs[0]] = each
    return _LookUp(node, table, shapes)


def _is_of_numbers(table: NDArray[np.generic]) -> bool:
    return table.dtype == np.float32 and table.ndim == 2 and bool(np.isfinite(table.astype(np.float64)).all())


def _counted(graph: Graph, found: _LookUp) -> Graph:
    """Return the graph with the sums over the rows of a look-up as counted ones."""
    constants, nodes = dict(graph.constants), []
    for node in graph.nodes:
        rows = _summed_rows(graph, found, node)
        if rows is None:
            nodes.append(node)
            continue
        name = found.gather.inputs[0]
        if node.op == "ReduceSumSquare":
            name = f"{name}.squares"
            constants[name] = found.table * found.table
        attributes = {"rows": rows, "shape": list(graph.tensors[node.outputs[0]].shape)}
        inputs = (found.gather.inputs[1], name)
        nodes.append(replace(node, op="counted_sum", inputs=inputs, attributes=attributes))
    return replace(graph, nodes=tuple(nodes), constants=constants)


def _summed_rows(graph: Graph, found: _LookUp, node: Node) -> int | None:
    """Return over how many places a node sums looked-up rows; None if it does not, or if counting takes longer."""
    if node.op not in ("ReduceSum", "ReduceSumSquare") or node.inputs[0] not in found.shapes:
        return None
    shape = graph.tensors[node.inputs[0]].shape
    axis = _only_axis(graph, node, len(shape))
    if axis is None or math.prod(shape[:axis]) != 1:
        return None
    rows, inner = int(shape[axis]), math.prod(shape[axis + 1 :])
    entries, columns = found.table.shape
    return rows if inner > 0 and inner % columns == 0 and rows >= entries else None


def _only_axis(graph: Graph, node: Node, rank: int) -> int | None:
    """Return the axis that a reduction is over; None if there are more, or if it is computed."""
    axes = reduced_axes([None, *(graph.constants.get(name) for name in node.inputs[1:])], node.attributes)
    found = {axis % rank for axis in axes or ()}
    return found.pop() if len(found) == 1 else None


def _by_rows(graph: Graph, found: _LookUp) -> Graph:
    """Return the graph with a look-up in the shape in which it is read, right before it is read."""
    moves = _reshapes_behind(graph, found)
    if not moves:
        return graph
    width = found.table.shape[1]
    *outer, inner = graph.tensors[moves[-1].outputs[0]].shape
    if inner % width:
        return graph
    taken = {*graph.tensors, *graph.constants}
    places, rows, sizes = (free_name(f"{found.gather.name}.{stem}", taken) for stem in ("places", "taken", "sizes"))
    shape = (*outer, inner // width)
    source, reason = found.gather.source, moves[-1].reason
    made = [
        Node(places, "Reshape", (found.gather.inputs[1], sizes), (places,), {}, source, reason),
        replace(found.gather, inputs=(found.gather.inputs[0], places), outputs=(rows,)),
        replace(moves[-1], inputs=(rows, *moves[-1].inputs[1:])),
    ]
    between = {found.gather.outputs[0], *(node.outputs[0] for node in moves[:-1])}
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in between} | {
        places: Tensor(places, shape, "int64"), rows: Tensor(rows, (*shape, width), "float32")
    }  # fmt: skip
    kept = [node for node in graph.nodes if node is not found.gather and node not in moves]
    reading = (place for place, node in enumerate(kept) if moves[-1].outputs[0] in node.inputs)
    first = next(reading, len(kept))
    constants = dict(graph.constants) | {sizes: np.array(shape, np.int64)}
    return replace(graph, nodes=(*kept[:first], *made, *kept[first:]), tensors=tensors, constants=constants)


def _reshapes_behind(graph: Graph, found: _LookUp) -> list[Node]:
    """Return the Reshapes that a look-up goes through, each the only reader of the one before."""
    readers = graph.consumers()
    moves: list[Node] = []
    name = found.gather.outputs[0]
    while name not in graph.outputs and len(readers.get(name, ())) == 1 and readers[name][0].op == "Reshape":
        moves.append(readers[name][0])
        name = moves[-1].outputs[0]
    return moves
