"""Products with one-hot rows as a look-up of the weights' rows, and functions of looked-up rows as other rows.

Exporters write an embedding as Equal with 0, 1, 2, ..., a Cast to float and a product: a matrix that is nearly all
zeros. A Gather reads one row instead, and functions of each element that follow are computed of the table, once.
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
    table = None if node.domain or node.op != "Gemm" else _rows_of_product(graph, node)
    if table is None:
        return None
    rows, width = graph.shape(node.inputs[0])
    places = _places(graph, node.inputs[0], width, producers)
    if places is None:
        return None
    names = [graph.unique(f"{node.name}.{part}") for part in ("places", "wide", "row")]
    for name, kind in zip(names, (graph.dtypes[places], "int64", "int64"), strict=True):
        graph.shapes[name], graph.dtypes[name] = (rows,), kind
    bounds = [new_constant(graph, f"{node.name}.bound", np.array(value, np.int64)) for value in (-1, width)]
    rows_of = new_constant(graph, f"{node.name}.rows", table)
    return [
        reshape_node(graph, f"{node.name}.flat", places, names[0], (rows,)),
        OnnxNode(f"{node.name}.cast", "Cast", [names[0]], [names[1]], {"to": _INT64}),
        OnnxNode(f"{node.name}.inside", "Clip", [names[1], *bounds], [names[2]]),
        OnnxNode(node.name, "Gather", [rows_of, names[2]], list(node.outputs), {"axis": 0}),
    ]


def _rows_of_product(graph: OnnxGraph, node: OnnxNode) -> NDArray[np.float32] | None:
    """Return a Gemm's results for each one-hot row, and for one of zeros; None if it is no dense layer."""
    plain = {"transA": 0, "transB": 1, "alpha": 1.0, "beta": 1.0}
    given = {"transB": 0, **node.attributes}
    if node.inputs[1] not in graph.constants or any(given.get(key, value) != value for key, value in plain.items()):
        return None
    weights = graph.constants[node.inputs[1]].T
    table = np.concatenate([weights, np.zeros_like(weights[:1])])
    if len(node.inputs) < 3 or not node.inputs[2]:
        return table.astype(np.float32)
    bias = graph.constants.get(node.inputs[2])
    return None if bias is None else (table + bias).astype(np.float32)


def _places(graph: OnnxGraph, name: str, width: int, producers: Mapping[str, OnnxNode]) -> str | None:
    """Return the integers whose one-hot rows of this width a tensor has; None if it has others."""
    cast = producers.get(name)
    if cast is not None and cast.op == "Reshape" and graph.shape(cast.inputs[0])[-1:] == (width,):
        cast = producers.get(cast.inputs[0])
    equal = producers.get(cast.inputs[0]) if cast is not None and cast.op == "Cast" else None
    return None if equal is None else _compared_places(graph, equal, width)


def _compared_places(graph: OnnxGraph, equal: OnnxNode, width: int) -> str | None:
    """Return the integers that an Equal compares with 0, 1, ... of one-hot rows; None if it compares others."""
    if equal.op != "Equal" or equal.domain:
        return None
    for values, places in (equal.inputs, equal.inputs[::-1]):
        if values in graph.constants and places not in graph.constants:
            return places if _are_rows(graph, graph.constants[values], places, width) else None
    return None


def _are_rows(graph: OnnxGraph, numbers: NDArray[Any], places: str, width: int) -> bool:
    """Return whether a comparison of places with these numbers gives one-hot rows of this width."""
    shape = graph.shape(places)
    return (
        graph.dtypes.get(places) in _INTEGERS
        and numbers.shape[-1:] == (width,)
        and np.array_equal(numbers.ravel(), np.arange(width))
        and shape[-1:] == (1,)
        and len(shape) >= numbers.ndim
    )


def _of_the_table(graph: OnnxGraph, node: OnnxNode, producers: Mapping[str, OnnxNode]) -> OnnxNode | None:
    """Return a Gather from the function's table; None if the node is no function of one Gather's rows."""
    if node.domain or node.op not in UNARY | BINARY or len(node.outputs) > 1:
        return None
    gathers = {
        name: producers[name] for name in node.inputs if name in producers and _takes_rows(graph, producers[name])
    }
    places = {gather.inputs[1] for gather in gathers.values()}
    if len(places) != 1:
        return None
    tables = {name: graph.constants[gather.inputs[0]] for name, gather in gathers.items()}
    made = _table_of(graph, node, tables)
    if made is None:
        return None
    rows_of = new_constant(graph, f"{node.name}.rows", made)
    return OnnxNode(node.name, "Gather", [rows_of, *places], list(node.outputs), {"axis": 0})


def _table_of(graph: OnnxGraph, node: OnnxNode, tables: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
    """Return a function of tables (by the name of their rows) and constant rows; None if it is no such table."""
    if not all(_is_row(graph, name) for name in node.inputs if name and name not in tables):
        return None
    operands = [tables[name] if name in tables else _row(graph, name) for name in node.inputs]
    with np.errstate(all="ignore"):
        made = operators.run(node.op, operands, node.attributes)[0]
    alike = made.shape == next(iter(tables.values())).shape and made.dtype == np.float32
    return made if alike else None


def _takes_rows(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Return whether a node takes rows of a constant matrix by places that are computed."""
    if node.op != "Gather" or node.domain or node.attributes.get("axis", 0) != 0:
        return False
    table = graph.constants.get(node.inputs[0])
    return table is not None and table.ndim == 2 and table.dtype == np.float32 and node.inputs[1] not in graph.constants


def _is_row(graph: OnnxGraph, name: str) -> bool:
    """Return whether a constant is the same for every row of a table."""
    value = graph.constants.get(name)
    return value is not None and value.size in (1, *value.shape[-1:])


def _row(graph: OnnxGraph, name: str) -> NDArray[Any] | None:
    value = graph.constants.get(name)
    return value.reshape(-1) if value is not None and value.ndim else value
