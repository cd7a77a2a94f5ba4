"""Int8 weights of LSTM, GRU and RNN in an ONNX file: a DequantizeLinear by row, a Reshape, the operator.

ONNX Runtime computes such a file in floats. hilt's runtime reads the int8 weights and their scales themselves, behind
the operator's inputs of ONNX (hilt_runtime.operators_recurrent).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reshape_node
from hilt_runtime.fixed_point import MOST_DEPTH
from hilt_runtime.operators_recurrent import RECURRENCE_SCALES, WEIGHT_SCALES, require_known

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


def in_floats(inputs: Sequence[Array | None]) -> list[Array | None]:
    """Return the runtime's inputs of an operator with int8 weights as ONNX Runtime has them: the weights as floats."""
    made = list(inputs[: min(_SCALES.values())])
    for place, scales_place in _SCALES.items():
        values, scales = inputs[place], inputs[scales_place]
        assert values is not None and scales is not None
        made[place] = values.astype(np.float32) * scales[..., None]
    return made


def _read_rows(
    graph: OnnxGraph, reshape: OnnxNode | None, producers: Mapping[str, OnnxNode]
) -> tuple[Array, Array] | None:
    """Return int8 weights (directions, rows, depth) and their scales (directions, rows) behind a Reshape."""
    if reshape is None or reshape.op != "Reshape" or reshape.domain:
        return None
    source = producers.get(reshape.inputs[0])
    rows = None if source is None else _dequantised_rows(graph, source)
    if rows is None:
        return None
    (values, scales), shape = rows, graph.shape(reshape.outputs[0])
    if len(shape) != 3 or not values.shape[1] == shape[2] <= MOST_DEPTH:
        return None
    return values.reshape(shape), scales.reshape(shape[:2])


def _dequantised_rows(graph: OnnxGraph, node: OnnxNode) -> tuple[Array, Array] | None:
    """Return the int8 matrix (rows, depth) and the scales (rows) that a DequantizeLinear reads; None for others."""
    attributes = node.attributes
    if node.op != "DequantizeLinear" or attributes.get("block_size", 0) or attributes.get("axis", 1) % 2:
        return None
    arrays = [graph.constants[name] for name in node.inputs if name in graph.constants]
    if len(arrays) < len(node.inputs):
        return None
    values, scales, *zero = arrays
    fits = values.dtype == np.int8 and values.ndim == 2
    fits = fits and scales.shape == values.shape[:1] and scales.dtype == np.float32
    return (values, scales) if fits and not np.any(zero) else None
