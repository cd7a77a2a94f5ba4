"""Dilated convolutions along a line, as convolutions down the columns of an image without dilation.

The taps of a kernel lie a dilation apart. A line that is cut in rows of that length has them in one column. No tile on
chip holds a reach of some thousand elements; in a column the reach is the number of taps. Memory holds the line and the
rows in one order, so that the Reshapes move nothing.
"""

from __future__ import annotations

import math

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reshape_node, slice_node

_LARGEST_REACH = 1 << 14
"""Elements of all channels that one kernel reaches over: half of the smallest buffer. With more, a line is padded to
whole rows, if need be."""


def fold_dilated_line(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return such a convolution on rows, with the Reshapes around it; None for another node."""
    axis = _axis(graph, node)
    if axis is None:
        return None
    weights, step = graph.constants[node.inputs[1]], node.attributes["dilations"][axis]
    pads = node.attributes.get("pads", [0] * 4)
    before, after = pads[axis], pads[2 + axis]
    shape, made = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    length, result, taps = math.prod(shape[2:]), math.prod(made[2:]), weights.shape[2 + axis]
    source, nodes = node.inputs[0], list[OnnxNode]()
    if any(size % step for size in (before, length, after)):
        if (taps - 1) * step * shape[1] < _LARGEST_REACH:
            return None
        padded = (-(-result // step) + taps - 1) * step
        nodes, source = _padded(graph, node, axis, before, padded - length - before)
        length, before, after = padded, 0, 0
    rows, down = (*shape[:2], length // step, step), graph.unique(f"{node.name}.rows")
    columns = (*made[:2], (length + before + after) // step - taps + 1, step)
    result_rows = graph.unique(f"{node.name}.columns")
    graph.shapes[result_rows], graph.dtypes[result_rows] = columns, "float32"
    kernel = new_constant(graph, f"{node.name}.down", weights.reshape(*weights.shape[:2], taps, 1))
    changed = {"kernel_shape": [taps, 1], "dilations": [1, 1], "pads": [before // step, 0, after // step, 0]}
    nodes += [
        reshape_node(graph, f"{node.name}.fold", source, down, rows),
        OnnxNode(node.name, "Conv", [down, kernel, *node.inputs[2:]], [result_rows], {**node.attributes, **changed}),
    ]
    return nodes + _line(graph, node, result_rows, math.prod(columns[2:]), axis)


def _axis(graph: OnnxGraph, node: OnnxNode) -> int | None:
    """Return along which axis of an image a node is a dilated convolution of a line, with constant weights."""
    weights = graph.constants.get(node.inputs[1]) if node.op == "Conv" else None
    dilations, strides = node.attributes.get("dilations", [1, 1]), node.attributes.get("strides", [1, 1])
    if weights is None or weights.ndim != 4 or max(strides) > 1:
        return None
    sides, pads = graph.shape(node.inputs[0])[2:], node.attributes.get("pads", [0] * 4)
    for axis, other in ((0, 1), (1, 0)):
        is_line = sides[other] == weights.shape[2 + other] == 1 and not pads[other] and not pads[2 + other]
        if is_line and dilations[axis] > 1 and weights.shape[2 + axis] > 1:
            return axis
    return None


def _padded(graph: OnnxGraph, node: OnnxNode, axis: int, before: int, after: int) -> tuple[list[OnnxNode], str]:
    """Return a Pad of the line that a node reads, and its result."""
    shape, padded = list(graph.shape(node.inputs[0])), graph.unique(f"{node.name}.padded")
    shape[2 + axis] += before + after
    graph.shapes[padded], graph.dtypes[padded] = tuple(shape), "float32"
    pads = np.zeros((2, 4), np.int64)
    pads[:, 2 + axis] = before, after
    around = new_constant(graph, f"{node.name}.pads", pads.reshape(-1))
    return [OnnxNode(f"{node.name}.pad", "Pad", [node.inputs[0], around], [padded])], padded


def _line(graph: OnnxGraph, node: OnnxNode, rows: str, length: int, axis: int) -> list[OnnxNode]:
    """Return a Reshape of rows to the line that a node makes, and a Slice where they are longer."""
    made = graph.shape(node.outputs[0])
    if length == made[2 + axis]:
        return [reshape_node(graph, f"{node.name}.unfold", rows, node.outputs[0], made)]
    whole, shape = graph.unique(f"{node.name}.whole"), list(made)
    shape[2 + axis] = length
    return [
        reshape_node(graph, f"{node.name}.unfold", rows, whole, tuple(shape)),
        slice_node(graph, f"{node.name}.cut", whole, node.outputs[0], {2 + axis: (0, made[2 + axis])}),
    ]
