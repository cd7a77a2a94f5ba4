"""Pools whose last windows are cut off, as pools with whole windows; the largest of an image as a pool."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes, reshape_node


def write_ceilings_as_pads(graph: OnnxGraph) -> bool:
    """Rewrite in place the pools with ceil_mode whose input has a known size; tell whether there were any.

    A window that would start in the padding behind the data is left out. Shape inference counts it before opset 22, so
    the shapes behind such a pool are only right afterwards.
    """
    changed = False
    for node in list(graph.nodes):
        if node.domain or node.op not in ("MaxPool", "AveragePool") or not node.attributes.get("ceil_mode", 0):
            continue
        shape = graph.shapes.get(node.inputs[0])
        if shape is None or None in shape:
            continue
        place = graph.nodes.index(node)
        graph.nodes[place : place + 1] = _whole_windows(graph, node, graph.shape(node.inputs[0])[2:])
        changed = True
    return changed


def _whole_windows(graph: OnnxGraph, node: OnnxNode, size: tuple[int, ...]) -> list[OnnxNode]:
    """Return a pool with pads behind the data that make its last windows whole.

    These pads never count in a mean. Where the model's own pads do, a Pad in front of the pool makes them data.
    """
    attributes: dict[str, Any] = dict(node.attributes)
    attributes["ceil_mode"] = 0
    if attributes.get("auto_pad", "NOTSET") != "NOTSET":  # it decides the number of windows by itself
        return [OnnxNode(node.name, node.op, list(node.inputs), list(node.outputs), attributes)]
    rank = len(size)
    pads = list(attributes.get("pads", [0] * (2 * rank)))
    source, nodes = node.inputs[0], []
    more = _pads_behind(attributes, size, pads)
    counted = node.op == "AveragePool" and bool(attributes.get("count_include_pad", 0))
    if counted and any(more) and any(pads):
        source = graph.unique(f"{node.name}.padded")
        around = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
        names = [node.inputs[0], new_constant(graph, f"{node.name}.pads", np.array(around, np.int64))]
        nodes.append(OnnxNode(f"{node.name}.pad", "Pad", names, [source]))
        pads = [0] * (2 * rank)
    if counted and any(more):
        attributes["count_include_pad"] = 0
    attributes["pads"] = [*pads[:rank], *(pad + extra for pad, extra in zip(pads[rank:], more, strict=True))]
    return [*nodes, OnnxNode(node.name, node.op, [source, *node.inputs[1:]], list(node.outputs), attributes)]


def _pads_behind(attributes: dict[str, Any], size: tuple[int, ...], pads: list[int]) -> list[int]:
    """Return by how much the last window of each axis reaches over the padded data."""
    rank, more = len(size), []
    strides, dilations = attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank)
    for axis, taps in enumerate(attributes["kernel_shape"]):
        reach = (taps - 1) * dilations[axis] + 1
        length = size[axis] + pads[axis] + pads[rank + axis]
        count = -(-(length - reach) // strides[axis]) + 1
        if (count - 1) * strides[axis] >= size[axis] + pads[axis]:
            count -= 1
        more.append(max((count - 1) * strides[axis] + reach - length, 0))
    return more


def pool_largest(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a maximum over the whole image (N, C, ...) as a pool, and a Reshape if it drops the axes."""
    shape = graph.shape(node.inputs[0]) if node.op == "ReduceMax" else ()
    if len(shape) < 3 or graph.dtypes.get(node.inputs[0], "float32") != "float32":
        return None
    if reduced_axes(graph, node, len(shape)) != list(range(2, len(shape))):
        return None
    pool = OnnxNode(node.name, "GlobalMaxPool", [node.inputs[0]], list(node.outputs))
    return in_shape_of(graph, node, pool, (*shape[:2], *[1] * (len(shape) - 2)))


def in_shape_of(graph: OnnxGraph, node: OnnxNode, pool: OnnxNode, shape: tuple[int, ...]) -> list[OnnxNode]:
    """Return a pool that makes `shape` in place of a reduction, and a Reshape where that drops axes."""
    result = graph.shape(node.outputs[0])
    if len(result) == len(shape):
        return [pool]
    pooled = graph.unique(f"{node.name}.pooled")
    graph.shapes[pooled], graph.dtypes[pooled] = shape, "float32"
    pool.outputs = [pooled]
    return [pool, reshape_node(graph, f"{node.name}.shape", pooled, node.outputs[0], result)]
