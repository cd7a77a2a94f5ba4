"""Centres tensors: takes a constant off them, so that int8 has as many steps below their middle as above it.

The results of a Relu or a HardSwish lie on one side of zero, where int8 has 127 steps; a mean apart from zero costs
range too, and so do values in front of a HardSwish that it makes zero. The layers that read a centred tensor take the
constant up in their biases, expressions add it again, and the layer, or the expression, that makes the tensor takes it
off. Floats and the caller read it as it was: they multiply and add, which a table of floats does where int8 ends.
The float network computes the same, but for less than a quarter of a step where an expression is nearly flat.
A convolution that pads its input reads zeros beside it, where a centred tensor has another number. Its input stays as
it is, or, with `borders`, a Pad puts that number around it; VTA takes a few cycles more for it
(`hilt.schedule.border`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant
from hilt.network.quantize.followers import following, restored_readers
from hilt.network.quantize.qdq import Scales
from hilt.network.quantize.regions import LayerRegion, Regions
from hilt.network.quantize.shifts import WEIGHTS_SHARES, Borders, Shift, choose_shifts, is_padded
from hilt.network.quantize.statistics import TensorStatistics


def centred(
    graph: OnnxGraph,
    regions: Regions,
    statistics: Mapping[str, TensorStatistics],
    scales: Scales,
    weights_share: float = WEIGHTS_SHARES[0],
    *,
    borders: Borders = Borders.NONE,
) -> OnnxGraph | None:
    """Return a canonical graph with the tensors centred that lose less by that; None if there are none.

    Args:
        graph: The float graph.
        regions: Its int8 part.
        statistics: Of the tensors of the int8 part.
        scales: Those of the graph as it is.
        weights_share: How much the error of weights counts beside that of tensors.
        borders: Padded convolutions whose inputs are centred, too.
    """
    shifts = choose_shifts(graph, regions, statistics, scales, weights_share, borders=borders)
    return _shifted(graph, regions, shifts) if any(shift.changes for shift in shifts.values()) else None


def _shifted(graph: OnnxGraph, regions: Regions, shifts: Mapping[str, Shift]) -> OnnxGraph:
    """Return a copy of a graph with constants taken off its tensors."""
    made = graph.copied()
    copies = dict(zip(map(id, graph.nodes), made.nodes, strict=True))
    producers = made.producers()
    outputs = {layer.output: layer for layer in regions.layers}
    restored, follow = restored_readers(graph, regions), following(graph, regions)
    for layer in regions.layers:
        _shift_layer(made, layer, copies[id(layer.node)], shifts)
    for name, (data, _) in regions.products.items():
        _add_to_data(made, producers[name], data, shifts[data])
    for name, shift in shifts.items():
        if not shift.changes:
            continue
        if name in outputs:
            _shift_clips(made, name, shift, producers)
        elif name in follow:
            _take_off(made, producers[name], name, shift)
        elif name not in regions.moved:
            _shift_results(made, producers[name], name, shift)
        readers = [node for node in graph.nodes if node.outputs[0] in restored[name] and name in node.inputs]
        if readers or name in graph.outputs:
            _restore(made, name, shift, [copies[id(node)] for node in readers])
    return made


def _shift_results(graph: OnnxGraph, maker: OnnxNode, name: str, shift: Shift) -> None:
    """Shift the results of an expression."""
    if shift.factor != 1:
        _put_behind(graph, maker, name, "Mul", [shift.factor])
    if shift.taken != 0:
        _put_behind(graph, maker, maker.outputs[0], "Add", [-float(shift.taken)])


def _add_to_data(graph: OnnxGraph, product: OnnxNode, data: str, shift: Shift) -> None:
    """Let a product add the constant that its data lacks; both have one factor."""
    if shift.taken != 0:
        whole = _like(graph, data, f"{data}.whole")
        added = _bound(graph, whole, float(shift.taken) * shift.factor)
        _insert(graph, OnnxNode(f"{whole}.add", "Add", [data, added], [whole]))
        product.inputs = [whole if each == data else each for each in product.inputs]


def _take_off(graph: OnnxGraph, maker: OnnxNode, name: str, shift: Shift) -> None:
    """Take its own constant off a result that has the factor of its data."""
    if shift.own != 0:
        _put_behind(graph, maker, name, "Add", [-shift.own * shift.factor])


def _shift_layer(graph: OnnxGraph, layer: LayerRegion, node: OnnxNode, shifts: Mapping[str, Shift]) -> None:
    """Let a layer's weights and bias take up the shifts of its data, its residual and its output."""
    read, made = shifts[layer.data], shifts[layer.output]
    weights = graph.constants[node.inputs[1]]
    if read.taken.any() and is_padded(node):
        _pad_data(graph, node, read)
    change = _lost(weights, node, read.taken) - made.taken
    if layer.residual:
        change = change + shifts[layer.residual].taken
    if made.factor != read.factor:
        scaled = (weights * (made.factor / read.factor)).astype(np.float32)
        node.inputs[1] = new_constant(graph, f"{node.name}.centred", scaled)
    has_bias = len(node.inputs) > 2 and bool(node.inputs[2])
    if np.any(change != 0) or (has_bias and made.factor != 1):
        count = graph.shape(node.outputs[0])[1]
        old = graph.constants[node.inputs[2]].reshape(-1) if has_bias else np.zeros(1)
        bias = np.broadcast_to((old.astype(np.float64) + change) * made.factor, (count,)).astype(np.float32)
        node.inputs[2:] = [new_constant(graph, f"{node.name}.centred_bias", bias)]


def _pad_data(graph: OnnxGraph, node: OnnxNode, read: Shift) -> None:
    """Let a layer read its padding from the data, where zeros are shifted as the rest is."""
    pads = node.attributes["pads"]
    half = len(pads) // 2
    around = new_constant(graph, f"{node.name}.pads", np.array([0, 0, *pads[:half], 0, 0, *pads[half:]], np.int64))
    value = new_constant(graph, f"{node.name}.pad_value", np.array(read.of(0.0), np.float32))
    padded = graph.unique(f"{node.name}.padded")
    shape = graph.shape(node.inputs[0])
    grown = [size + pads[axis] + pads[axis + half] for axis, size in enumerate(shape[2:])]
    graph.shapes[padded], graph.dtypes[padded] = (*shape[:2], *grown), "float32"
    place = next(place for place, each in enumerate(graph.nodes) if each is node)
    graph.nodes.insert(place, OnnxNode(padded, "Pad", [node.inputs[0], around, value], [padded]))
    node.inputs[0], node.attributes["pads"] = padded, [0] * len(pads)


def _lost(weights: NDArray[Any], node: OnnxNode, taken: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the part of each output channel's sums that is missing with a constant taken off the data."""
    if not taken.any():
        return np.zeros(())
    groups = node.attributes.get("group", 1) if node.op == "Conv" else 1
    taps = weights.astype(np.float64).reshape(*weights.shape[:2], -1).sum(axis=2)
    read = np.broadcast_to(taken, (taps.shape[1] * groups,)).reshape(groups, 1, -1)
    lost: NDArray[np.float64] = (taps.reshape(groups, -1, taps.shape[1]) * read).sum(axis=2).reshape(-1)
    return lost


def _shift_clips(graph: OnnxGraph, name: str, shift: Shift, producers: Mapping[str, OnnxNode]) -> None:
    """Let a layer's clips clip shifted values; clip those that no reader tells apart."""
    clip = producers[name]
    while clip.op in ("Relu", "Clip"):
        bounds = [float(graph.constants[each]) if each else None for each in [*clip.inputs[1:3], "", ""][:2]]
        if clip.op == "Relu":
            bounds, clip.op, clip.attributes = [0.0, None], "Clip", {}
        clip.inputs[1:] = [_bound(graph, clip.name, None if each is None else shift.of(each)) for each in bounds]
        clip = producers[clip.inputs[0]]
    if shift.low > -np.inf or shift.high < np.inf:
        ends = [shift.of(each) if np.isfinite(each) else None for each in (shift.low, shift.high)]
        _put_behind(graph, producers[name], name, "Clip", ends)


def _bound(graph: OnnxGraph, stem: str, value: float | None) -> str:
    """Return the name of a new scalar; empty for none."""
    return "" if value is None else new_constant(graph, f"{stem}.centre", np.array(value, np.float32))


def _put_behind(graph: OnnxGraph, maker: OnnxNode, name: str, op: str, scalars: Sequence[float | None]) -> None:
    """Put an operator behind the maker of a tensor; its readers read the result by the same name."""
    raw = _like(graph, name, f"{name}.uncentred")
    maker.outputs[maker.outputs.index(name)] = raw
    _insert(graph, OnnxNode(f"{raw}.{op.lower()}", op, [raw, *(_bound(graph, raw, each) for each in scalars)], [name]))


def _restore(graph: OnnxGraph, name: str, shift: Shift, readers: Sequence[OnnxNode]) -> None:
    """Let readers of a tensor, and the caller, read it with its shift taken back, by the same name."""
    shifted = _like(graph, name, f"{name}.shifted")
    for node in graph.nodes:
        node.outputs = [shifted if each == name else each for each in node.outputs]
        if not any(node is reader for reader in readers):
            node.inputs = [shifted if each == name else each for each in node.inputs]
    scaled = _like(graph, name, f"{name}.scaled")
    _insert(graph, OnnxNode(scaled, "Mul", [shifted, _bound(graph, scaled, 1 / shift.factor)], [scaled]))
    _insert(graph, OnnxNode(f"{name}.whole", "Add", [scaled, _bound(graph, scaled, float(shift.taken))], [name]))


def _like(graph: OnnxGraph, name: str, stem: str) -> str:
    """Return the name of a new tensor of another one's shape."""
    made = graph.unique(stem)
    graph.shapes[made], graph.dtypes[made] = graph.shapes[name], graph.dtypes.get(name, "float32")
    return made


def _insert(graph: OnnxGraph, node: OnnxNode) -> None:
    """Insert a node behind the maker of its data."""
    place = next(place for place, each in enumerate(graph.nodes) if node.inputs[0] in each.outputs)
    graph.nodes.insert(place + 1, node)
