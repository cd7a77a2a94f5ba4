"""Products with one-hot rows as a look-up of the weights' rows, and functions of looked-up rows as other rows.

Exporters write an embedding as Equal with 0, 1, 2, ..., a Cast to float and a product: a matrix that is nearly all
zeros. A Gather reads one row instead, and what follows element by element is computed of the table, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reshape_node
from hilt_runtime import operators

_INTEGERS = frozenset(("int8", "uint8", "int16", "uint16", "int32", "int64"))
_INT64 = 7


def look_up_one_hot(graph: OnnxGraph) -> None:
    """Make in place a Gemm of one-hot rows a Gather. A row of zeros stands for numbers that are no place."""
    producers = graph.producers()
    graph.nodes = [each for node in graph.nodes for each in _looked_up(graph, node, producers) or [node]]
    graph.remove_unused()


def fold_into_tables(graph: OnnxGraph) -> None:
    """Compute in place element-wise functions of rows that a Gather takes from a constant: of the constant."""
    producers: dict[str, OnnxNode] = {}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        kept = _of_the_table(graph, node, producers) or node
        nodes.append(kept)
        producers.update((name, kept) for name in kept.outputs if name)
    graph.nodes = nodes
    graph.remove_unused()


def _looked_up(graph: OnnxGraph, node: OnnxNode, producers: Mapping[str, OnnxNode]) -> list[OnnxNode] | None:
    if node.op != "Gemm" or node.domain or node.inputs[1] not in graph.constants:
        return None
    if not node.attributes.get("transB", 0) or any(node.attributes.get(key, 1) != 1 for key in ("alpha", "beta")):
        return None
    weights = graph.constants[node.inputs[1]]
    bias = graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else np.zeros(1, np.float32)
    places = _places(graph, node.inputs[0], len(weights[0]), producers)
    if places is None or bias is None or node.attributes.get("transA", 0):
        return None
    rows, width = graph.shape(node.inputs[0])
    table = np.concatenate([weights.T, np.zeros((1, len(weights)), weights.dtype)]) + bias
    names = [graph.unique(f"{node.name}.{part}") for part in ("places", "wide", "row")]
    for name, kind in zip(names, (graph.dtypes[places], "int64", "int64"), strict=True):
        graph.shapes[name], graph.dtypes[name] = (rows,), kind
    bounds = [new_constant(graph, f"{node.name}.bound", np.array(value, np.int64)) for value in (-1, width)]
    rows_of = new_constant(graph, f"{node.name}.rows", table.astype(np.float32))
    return [
        reshape_node(graph, f"{node.name}.flat", places, names[0], (rows,)),
        OnnxNode(f"{node.name}.cast", "Cast", [names[0]], [names[1]], {"to": _INT64}),
        OnnxNode(f"{node.name}.inside", "Clip", [names[1], *bounds], [names[2]]),
        OnnxNode(node.name, "Gather", [rows_of, names[2]], list(node.outputs), {"axis": 0}),
    ]


def _places(graph: OnnxGraph, name: str, width: int, producers: Mapping[str, OnnxNode]) -> str | None:
    """Return the integers whose one-hot rows of this width a tensor has; None if it has others."""
    maker = producers.get(name)
    if maker is not None and maker.op == "Reshape" and graph.shape(maker.inputs[0])[-1:] == (width,):
        maker = producers.get(maker.inputs[0])
    equal = producers.get(maker.inputs[0]) if maker is not None and maker.op == "Cast" else None
    if equal is None or equal.op != "Equal" or equal.domain:
        return None
    for values, places in (equal.inputs, equal.inputs[::-1]):
        numbers = graph.constants.get(values)
        if numbers is None or places in graph.constants or graph.dtypes.get(places) not in _INTEGERS:
            continue
        if numbers.shape[-1:] == (width,) and np.array_equal(numbers.ravel(), np.arange(width)):
            shape = graph.shape(places)
            return places if shape[-1:] == (1,) and len(shape) >= numbers.ndim else None
    return None


def _of_the_table(graph: OnnxGraph, node: OnnxNode, producers: Mapping[str, OnnxNode]) -> OnnxNode | None:
    """Return a Gather from the function's table; None if the node is no function of one Gather's rows."""
    if node.domain or node.op not in UNARY | BINARY or len(node.outputs) > 1:
        return None
    operands: list[NDArray[Any] | None] = []
    places = set[str]()
    for name in node.inputs:
        maker = producers.get(name)
        if maker is not None and maker.op == "Gather" and maker.inputs[0] in graph.constants:
            table = graph.constants[maker.inputs[0]]
            if maker.attributes.get("axis", 0) != 0 or table.ndim != 2 or table.dtype != np.float32:
                return None
            places.add(maker.inputs[1])
            operands.append(table)
        elif not name:
            operands.append(None)
        elif name in graph.constants and graph.constants[name].size in (1, *graph.constants[name].shape[-1:]):
            operands.append(graph.constants[name].reshape(-1) if graph.constants[name].ndim else graph.constants[name])
        else:
            return None
    if len(places) != 1 or next(iter(places)) in graph.constants:
        return None
    with np.errstate(all="ignore"):
        made = operators.run(node.op, operands, node.attributes)[0]
    table = next(each for each in operands if each is not None and each.ndim == 2)
    if made.shape != table.shape or made.dtype != np.float32:
        return None
    rows_of = new_constant(graph, f"{node.name}.rows", made)
    return OnnxNode(node.name, "Gather", [rows_of, *places], list(node.outputs), {"axis": 0})
