"""Int8 weights of LSTM, GRU and RNN in an ONNX file: a DequantizeLinear by row, a Reshape, the operator.

ONNX Runtime computes such a file in floats. hilt's runtime reads the int8 weights and their scales themselves, behind
the operator's inputs of ONNX (hilt_runtime.operators_recurrent).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reshape_node
from hilt_runtime.operators_recurrent import MOST_DEPTH, RECURRENCE_SCALES, WEIGHT_SCALES, require_known

RECURRENT = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
"""The operators, with the names of the runtime's kernels."""
_SCALES = {1: WEIGHT_SCALES, 2: RECURRENCE_SCALES}

Array = NDArray[Any]


def takes_int8(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether the runtime can compute a node with int8 weights: they are constant, and its state is bounded."""
    if node.op not in RECURRENT or node.domain or not all(_is_real(graph, name) for name in node.inputs[1:3]):
        return False
    inputs: list[Any] = [np.zeros(graph.shape(node.inputs[0]), np.float32)]
    inputs += [np.zeros(graph.shape(name), np.int8) for name in node.inputs[1:3]]
    inputs += [graph.constants.get(name) for name in node.inputs[3:]]
    try:
        require_known(RECURRENT[node.op], inputs, node.attributes)
    except ValueError:
        return False
    return True


def _is_real(graph: OnnxGraph, name: str) -> bool:
    """Tell whether a tensor is constant, of finite floats, and short enough for sums of int8."""
    values = graph.constants.get(name)
    if values is None or values.dtype != np.float32 or values.shape[2] > MOST_DEPTH:
        return False
    return bool(np.isfinite(values).all())


def write_int8(graph: OnnxGraph, name: str) -> OnnxGraph:
    """Return a graph with the weights of one node, by its name, in int8: one scale a row, rounded half to even."""
    made = OnnxGraph(
        graph.name, graph.opset, list(graph.inputs), list(graph.outputs), [], dict(graph.constants),
        dict(graph.shapes), dict(graph.dtypes), dict(graph.decibels),
    )  # fmt: skip
    for node in graph.nodes:
        copy = OnnxNode(node.name, node.op, list(node.inputs), list(node.outputs), dict(node.attributes), node.domain)
        if node.name == name:
            for place in _SCALES:
                copy.inputs[place] = _write_rows(made, copy, place)
        made.nodes.append(copy)
    made.name_apart()
    made.remove_unused()
    infer_shapes(made)
    return made


def _write_rows(graph: OnnxGraph, node: OnnxNode, place: int) -> str:
    """Add the nodes that give a node's weights from int8; return the name of the weights."""
    values = graph.constants[node.inputs[place]]
    stem = f"{node.name}.{'weights' if place == 1 else 'recurrence'}"
    rows = values.reshape(-1, values.shape[2]).astype(np.float64)
    scales = (np.abs(rows).max(axis=1, initial=0) / 127).astype(np.float32)
    scales[~(scales > 0)] = 1.0
    integers = np.clip(np.rint(rows / scales[:, None].astype(np.float64)), -127, 127).astype(np.int8)
    parts = [
        new_constant(graph, f"{stem}_int8", integers),
        new_constant(graph, f"{stem}_scale", scales),
        new_constant(graph, f"{stem}_zero", np.zeros(scales.shape, np.int8)),
    ]
    flat, result = graph.unique(f"{stem}_rows"), graph.unique(f"{stem}_real")
    graph.nodes.append(OnnxNode(f"{stem}.dq", "DequantizeLinear", parts, [flat], {"axis": 0}))
    graph.nodes.append(reshape_node(graph, f"{stem}.reshape", flat, result, values.shape))
    return result


def int8_weights(graph: OnnxGraph, node: OnnxNode, producers: Mapping[str, OnnxNode]) -> dict[int, Array] | None:
    """Return int8 weights and scales of a node by their places among the runtime's inputs; None if it has none."""
    if node.op not in RECURRENT or node.domain:
        return None
    found: dict[int, Array] = {}
    for place, scales_place in _SCALES.items():
        rows = _read_rows(graph, producers.get(node.inputs[place]), producers)
        if rows is None:
            return None
        found[place], found[scales_place] = rows
    return found


def _read_rows(
    graph: OnnxGraph, reshape: OnnxNode | None, producers: Mapping[str, OnnxNode]
) -> tuple[Array, Array] | None:
    """Return int8 weights (directions, rows, depth) and their scales (directions, rows) behind a Reshape."""
    if reshape is None or reshape.op != "Reshape" or reshape.domain:
        return None
    source = producers.get(reshape.inputs[0])
    if source is None or source.op != "DequantizeLinear" or source.attributes.get("block_size", 0):
        return None
    values, scales, *zero = (graph.constants.get(name) for name in source.inputs)
    shape = graph.shape(reshape.outputs[0])
    if values is None or scales is None or values.dtype != np.int8 or values.ndim != 2 or len(shape) != 3:
        return None
    fits = scales.shape == values.shape[:1] and scales.dtype == np.float32 and values.shape[1] == shape[2] <= MOST_DEPTH
    if not fits or source.attributes.get("axis", 1) % 2 or any(each is None or each.any() for each in zero):
        return None
    return values.reshape(shape), scales.reshape(shape[:2])
