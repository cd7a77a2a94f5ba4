"""Older forms of ONNX's operators, rewritten to opset 17."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode


def modernise(graph: OnnxGraph, opset: int) -> None:
    """Rewrite in place the nodes of a graph of `opset` that opset 17 writes in another way."""
    for node in list(graph.nodes):
        if node.op in _REWRITES and not node.domain:
            before, rewrite = _REWRITES[node.op]
            if opset < before:
                rewrite(graph, node)


def write_defaults(graph: OnnxGraph) -> None:
    """Write in place an STFT's default, which ONNX's shape inference takes for another one."""
    for node in graph.nodes:
        if node.op == "STFT" and not node.domain:
            node.attributes.setdefault("onesided", 1)


def _drop_out(graph: OnnxGraph, node: OnnxNode) -> None:
    node.attributes.clear()
    node.inputs = node.inputs[:1]


def _resize(graph: OnnxGraph, node: OnnxNode) -> None:
    node.inputs = [node.inputs[0], "", node.inputs[1]]
    node.attributes["coordinate_transformation_mode"] = "asymmetric"
    node.attributes.setdefault("nearest_mode", "floor")


def _axes_or_sizes(graph: OnnxGraph, node: OnnxNode) -> None:
    key = "split" if node.op == "Split" else "axes"
    if key in node.attributes:
        _move(graph, node, key, 1)


def _upsample(graph: OnnxGraph, node: OnnxNode) -> None:
    if "scales" in node.attributes:
        _move(graph, node, "scales", 1, np.float32)
    node.op = "Resize"
    node.inputs = [node.inputs[0], "", node.inputs[1]]
    node.attributes["coordinate_transformation_mode"] = "asymmetric"
    node.attributes["nearest_mode"] = "floor"


def _batch_norm(graph: OnnxGraph, node: OnnxNode) -> None:
    node.attributes.pop("spatial", None)


def _clip(graph: OnnxGraph, node: OnnxNode) -> None:
    for place, key in ((1, "min"), (2, "max")):
        if key in node.attributes:
            _move(graph, node, key, place, np.float32, scalar=True)


def _pad(graph: OnnxGraph, node: OnnxNode) -> None:
    key = "pads" if "pads" in node.attributes else "paddings"
    if key in node.attributes:
        _move(graph, node, key, 1)
        _move(graph, node, "value", 2, np.float32, scalar=True)


def _slice(graph: OnnxGraph, node: OnnxNode) -> None:
    starts = node.attributes.get("starts")
    if starts is not None:
        node.attributes.setdefault("axes", list(range(len(starts))))
        for place, key in ((1, "starts"), (2, "ends"), (3, "axes")):
            _move(graph, node, key, place)


def _top_k(graph: OnnxGraph, node: OnnxNode) -> None:
    if "k" in node.attributes:
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


_ANY = 1 << 30
_REWRITES: dict[str, tuple[int, Callable[[OnnxGraph, OnnxNode], None]]] = {
    "BatchNormalization": (11, _batch_norm),
    "Clip": (11, _clip),
    "Dropout": (_ANY, _drop_out),
    "LogSoftmax": (13, _flat_softmax),
    "Pad": (11, _pad),
    "ReduceSum": (13, _axes_or_sizes),
    "Resize": (11, _resize),
    "Slice": (11, _slice),
    "Softmax": (13, _flat_softmax),
    "Split": (13, _axes_or_sizes),
    "Squeeze": (13, _axes_or_sizes),
    "TopK": (11, _top_k),
    "Unsqueeze": (13, _axes_or_sizes),
    "Upsample": (_ANY, _upsample),
}
"""Operators by the opset before which a node is rewritten."""
