"""Older forms of ONNX's operators, rewritten to opset 17."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode

_AXES_AS_INPUT = {"Squeeze": "axes", "Unsqueeze": "axes", "ReduceSum": "axes", "Split": "split"}


def modernise(graph: OnnxGraph, opset: int) -> None:
    """Rewrite in place the nodes of a graph of `opset` that opset 17 writes in another way."""
    for node in list(graph.nodes):
        if node.domain:
            continue
        if node.op == "Upsample":
            _upsample(graph, node)
        elif node.op == "Dropout":
            node.attributes.clear()
            node.inputs = node.inputs[:1]
        elif node.op in ("BatchNormalization", "Clip", "Pad", "Slice", "TopK") and opset < 11:
            _attributes_to_inputs(graph, node)
        elif node.op == "Resize" and opset < 11:
            node.inputs = [node.inputs[0], "", node.inputs[1]]
            node.attributes["coordinate_transformation_mode"] = "asymmetric"
            node.attributes.setdefault("nearest_mode", "floor")
        elif node.op in _AXES_AS_INPUT and opset < 13 and _AXES_AS_INPUT[node.op] in node.attributes:
            _move(graph, node, _AXES_AS_INPUT[node.op], 1)
        elif node.op in ("Softmax", "LogSoftmax") and opset < 13:
            _flat_softmax(graph, node)


def _upsample(graph: OnnxGraph, node: OnnxNode) -> None:
    if "scales" in node.attributes:
        _move(graph, node, "scales", 1, np.float32)
    node.op = "Resize"
    node.inputs = [node.inputs[0], "", node.inputs[1]]
    node.attributes["coordinate_transformation_mode"] = "asymmetric"
    node.attributes["nearest_mode"] = "floor"


def _attributes_to_inputs(graph: OnnxGraph, node: OnnxNode) -> None:
    if node.op == "BatchNormalization":
        node.attributes.pop("spatial", None)
    elif node.op == "Clip":
        for place, key in ((1, "min"), (2, "max")):
            if key in node.attributes:
                _move(graph, node, key, place, np.float32, scalar=True)
    elif node.op == "Pad":
        key = "pads" if "pads" in node.attributes else "paddings"
        if key in node.attributes:
            _move(graph, node, key, 1)
            _move(graph, node, "value", 2, np.float32, scalar=True)
    elif node.op == "Slice":
        starts = node.attributes.get("starts")
        if starts is not None:
            node.attributes.setdefault("axes", list(range(len(starts))))
            for place, key in ((1, "starts"), (2, "ends"), (3, "axes")):
                _move(graph, node, key, place)
    elif "k" in node.attributes:
        _move(graph, node, "k", 1)


def _move(
    graph: OnnxGraph, node: OnnxNode, key: str, place: int, dtype: type = np.int64, *, scalar: bool = False
) -> None:
    """Make an attribute an input."""
    value: NDArray[Any] = np.asarray(node.attributes.pop(key, 0), dtype)
    name = graph.unique(f"{node.outputs[0]}_{key}")
    graph.constants[name] = value if scalar else value.reshape(-1)
    node.inputs += [""] * (place + 1 - len(node.inputs))
    node.inputs[place] = name


def _flat_softmax(graph: OnnxGraph, node: OnnxNode) -> None:
    """Rewrite a softmax of before opset 13: it runs over its axis and all later ones.

    Hilt writes one axis, the last.
    """
    axis = node.attributes.get("axis", 1)
    rank = len(graph.shapes.get(node.inputs[0], ())) or None
    if axis == -1 or (rank is not None and axis % rank == rank - 1):
        node.attributes["axis"] = -1
        return
    shape, flat, soft = (graph.unique(f"{node.outputs[0]}_{part}") for part in ("shape", "flat", "soft"))
    place = graph.nodes.index(node)
    graph.nodes[place : place + 1] = [
        OnnxNode(f"{node.name}_shape", "Shape", [node.inputs[0]], [shape]),
        OnnxNode(f"{node.name}_flat", "Flatten", [node.inputs[0]], [flat], {"axis": axis}),
        OnnxNode(node.name, node.op, [flat], [soft], {"axis": -1}),
        OnnxNode(f"{node.name}_back", "Reshape", [soft, shape], list(node.outputs)),
    ]
