"""Steps of the processor that work on tensors in VTA's packed layout, where they lie: nothing is unpacked or packed.

The packed shape is (N/batch, C/block, H, W, batch, block): the first four axes are the tensor's own, and an operator
whose attributes name only them, in whole blocks, computes the same on six axes. The lanes behind the tensor's last
channel hold anything: weights of zero and the reading back leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hilt.network.graph import Graph, Node
from hilt.network.packed_layout import PackedLayout

Attributes = Mapping[str, Any]
_WORD = 4
"""Lanes that are moved at once, at least."""


def packed_attributes(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    """Return a node's attributes for packed tensors; None if it must have them plain."""
    form = _FORMS.get(node.op)
    names = [name for name in (*node.inputs, *node.outputs) if name in graph.tensors]
    tensors = [graph.tensors[name] for name in names]
    if form is None or any(tensor.dtype != "int8" or len(tensor.shape) not in (2, 4) for tensor in tensors):
        return None
    attributes = form(graph, node, layout)
    if layout.bands and attributes is not None:
        heights = {(*tensor.shape, 1)[2] for tensor in tensors}
        return attributes if len(heights) == 1 and _within_rows(node, attributes) else None
    return attributes


def _within_rows(node: Node, attributes: Attributes) -> bool:
    """Return whether a row of the output is computed from the same row of the inputs: then no band needs another."""
    by_row = (
        node.op in _BY_ROW
        or (node.op == "pad" and "channels" in attributes)
        or (node.op == "normalization" and not attributes["groups"])
    )
    return by_row and 2 not in attributes.get("axes", ())


def _elementwise(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    """Two tensors of one shape, or one value a channel for all pixels of the other."""
    if any(name in graph.constants for name in node.inputs[:2]):
        return None
    output = graph.tensors[node.outputs[0]].shape
    fits = all(_has_all_channels(graph.tensors[name].shape, output) for name in node.inputs[:2])
    return dict(node.attributes) if fits else None


def _has_all_channels(shape: Sequence[int], output: Sequence[int]) -> bool:
    """Return whether a tensor has a value for each channel of an output, and for each pixel or all of them."""
    sizes = zip(shape[2:], output[2:], strict=False)
    return len(shape) == len(output) and shape[:2] == output[:2] and all(size in (1, full) for size, full in sizes)


def _multiply(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    """Two tensors as of a sum, or one value a pixel for all channels of the other: the first lane has it."""
    if any(name in graph.constants for name in node.inputs[:2]):
        return None
    output = graph.tensors[node.outputs[0]].shape
    shapes = [graph.tensors[name].shape for name in node.inputs[:2]]
    for place, shape in enumerate(shapes):
        if shape == (output[0], 1, *output[2:]) != output and _has_all_channels(shapes[1 - place], output):
            return {**node.attributes, "by_pixel": place}
    return _elementwise(graph, node, layout)


def _table(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    entries = graph.constants.get(node.inputs[1])
    return dict(node.attributes) if entries is not None and entries.dtype == "int8" else None


def _concat(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    if any(name not in graph.tensors for name in node.inputs):
        return None
    axis = int(node.attributes["axis"]) % len(graph.tensors[node.outputs[0]].shape)
    channels = [int(graph.tensors[name].shape[1]) for name in node.inputs]
    if axis >= 2 or (axis == 1 and all(count % layout.parameters.block == 0 for count in channels[:-1])):
        return {"axis": axis}
    return {"axis": 1, "channels": channels} if axis == 1 and _in_lanes(channels, layout) else None


def _in_lanes(channels: Sequence[int], layout: PackedLayout) -> bool:
    """Return whether channels are moved by words of at least four lanes."""
    return all(count > 0 and count % _WORD == 0 for count in (*channels, layout.parameters.block))


def _depth_to_space(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    shape, made = (graph.tensors[name].shape for name in (node.inputs[0], node.outputs[0]))
    if node.attributes["mode"] != "DCR" or len(shape) != 4 or not _in_lanes([int(made[1])], layout):
        return None
    return {**node.attributes, "channels": [int(shape[1])]}


def _slice(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    parameters, shape = layout.parameters, graph.tensors[node.inputs[0]].shape
    starts, ends, axes, steps = ([int(v) for v in node.attributes[key]] for key in ("starts", "ends", "axes", "steps"))
    axes = [axis % len(shape) for axis in axes]
    for place, axis in enumerate(axes):
        if axis > 1:
            continue
        lanes = (parameters.batch, parameters.block)[axis]
        first, last, _ = slice(starts[place], ends[place], steps[place]).indices(shape[axis])
        if steps[place] != 1 or first % lanes or last <= first or (layout.bands and axis == 0):
            return None
        starts[place], ends[place] = first // lanes, -(-last // lanes)
    return {"starts": starts, "ends": ends, "axes": axes, "steps": steps}


def _pad(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    channels = [int(graph.tensors[node.inputs[0]].shape[1])]
    if adds_channels(graph, node):
        return {**node.attributes, "channels": channels} if _in_lanes(channels, layout) else None
    pads = [int(pad) for pad in node.attributes["pads"]]
    if len(pads) != 8 or any(pads[axis] for axis in (0, 1, 4, 5)):
        return None
    return {**node.attributes, "pads": [*pads[:4], 0, 0, *pads[4:], 0, 0]}


def adds_channels(graph: Graph, node: Node) -> bool:
    """Return whether a Pad of an image adds channels of zeros behind the others, and nothing else."""
    pads = [int(pad) for pad in node.attributes["pads"]]
    if graph.tensors[node.inputs[0]].dtype != "int8" or len(pads) != 8 or node.attributes.get("value", 1):
        return False
    return pads.pop(5) > 0 and not any(pads)


def _prelu(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    return dict(node.attributes)


def _normalization(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    """An image's channels; images that lie beside each other have no means of their own."""
    plain = node.attributes["axis"] != 1 or (layout.parameters.batch > 1 and node.attributes["groups"])
    return None if plain else dict(node.attributes)


def _pool(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    return dict(node.attributes) if len(graph.tensors[node.inputs[0]].shape) == 4 else None


def _upsample(graph: Graph, node: Node, layout: PackedLayout) -> dict[str, Any] | None:
    return dict(node.attributes)


_FORMS: Mapping[str, Callable[[Graph, Node, PackedLayout], dict[str, Any] | None]] = {
    "add": _elementwise,
    "average_pool": _pool,
    "concat": _concat,
    "depth_to_space": _depth_to_space,
    "global_average_pool": _pool,
    "max_pool": _pool,
    "multiply": _multiply,
    "normalization": _normalization,
    "pad": _pad,
    "prelu": _prelu,
    "slice": _slice,
    "table": _table,
    "upsample": _upsample,
}
_BY_ROW = frozenset(("add", "concat", "multiply", "prelu", "slice", "table"))
OPERATORS = frozenset(_FORMS)
"""The operators with a packed form; hilt_runtime.manifest has the same."""
