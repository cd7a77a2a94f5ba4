"""Transposed convolutions as plain ones: one of strides s, t is s * t small convolutions whose results interleave."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import UNARY
from hilt.network.kernels import spread
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reshape_node, slice_node
from hilt_runtime.operators_window import transposed_pads

_PHASE = ".phase"
"""Stands between a transposed convolution's name and the number of a phase from the second one on."""
_WHOLE_BLOCK = 32
"""Channels of the widest accelerators' blocks that hilt ships, a multiple of the others'."""


def lower_transposed(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return the nodes that compute a two-dimensional ConvTranspose with constant weights; None for any other node.

    Of stride 1 it is one convolution with the kernel turned round. Of strides s and t it is one convolution with s * t
    times the output channels on the input's own grid (no multiplication by inserted zeros), DepthToSpace, or a
    Transpose where the strides are unequal, and, if the sizes ask for it, Slice.
    """
    if node.op != "ConvTranspose" or node.inputs[1] not in graph.constants or len(graph.shape(node.inputs[0])) != 4:
        return None
    weights = spread(graph.constants[node.inputs[1]], node.attributes.get("dilations", [1, 1]))
    strides = node.attributes.get("strides", [1, 1])
    pads = transposed_pads(node.attributes, graph.shape(node.inputs[0])[2:], graph.constants[node.inputs[1]].shape[2:])
    if min(pads[:2]) < 0:
        return None
    groups = node.attributes.get("group", 1)
    plain = _turned(weights, groups)
    if list(strides) == [1, 1]:
        return _unstrided(graph, node, plain, pads, groups)
    apart = _apart(graph, node, plain, strides[0], pads) if groups == 1 and strides[0] == strides[1] else None
    return apart or _sub_pixel(graph, node, plain, (strides[0], strides[1]), pads, groups)


def with_phases(graph: OnnxGraph, names: Collection[str]) -> tuple[str, ...]:
    """Return the names of nodes, and of the further phases of those that are transposed convolutions' first ones."""
    further = (node.name for node in graph.nodes if node.op == "Conv" and node.name.rpartition(_PHASE)[0] in names)
    return (*names, *further)


def activate_before_shuffle(graph: OnnxGraph) -> None:
    """Move each activation behind a DepthToSpace, and a crop, in front of them: it joins the layer, or is a table."""
    producers, consumers = graph.producers(), graph.consumers()

    def maker(node: OnnxNode, op: str) -> OnnxNode | None:
        """Return the operator whose result a node alone reads."""
        found = producers.get(node.inputs[0])
        alone = len(consumers.get(node.inputs[0], [])) == 1 and node.inputs[0] not in graph.outputs
        return found if found is not None and alone and found.op == op and not found.domain else None

    for node in graph.nodes:
        if node.op not in UNARY or node.domain:
            continue
        activation, crop = node, maker(node, "Slice")
        if crop is not None and maker(crop, "DepthToSpace") is not None:
            _exchange(graph, crop, node, producers)
            activation = crop
        shuffle = maker(activation, "DepthToSpace")
        if shuffle is not None:
            _exchange(graph, shuffle, activation, producers)
            _activate_phases(graph, shuffle, producers.get(shuffle.inputs[0]))


def _exchange(graph: OnnxGraph, move: OnnxNode, activation: OnnxNode, producers: dict[str, OnnxNode]) -> None:
    """Let an activation be computed in front of a move, which takes its place; each node becomes the other."""
    source, between, result = move.inputs[0], move.outputs[0], activation.outputs[0]
    graph.shapes[between] = graph.shape(source)
    further = move.inputs[1:], activation.inputs[1:]
    move.op, activation.op = activation.op, move.op
    move.name, activation.name = activation.name, move.name
    move.attributes, activation.attributes = activation.attributes, move.attributes
    move.inputs, activation.inputs = [source, *further[1]], [between, *further[0]]
    producers[between], producers[result] = move, activation


def _activate_phases(graph: OnnxGraph, activation: OnnxNode, join: OnnxNode | None) -> None:
    """Activate the phases that a join alone has made of convolutions in front of it: each joins its layer."""
    if join is None or join.op != "Concat" or not _joins_layers(graph, join):
        return
    made = []
    for place, name in enumerate(join.inputs, start=1):
        result = graph.unique(f"{activation.name}.phase{place}")
        graph.shapes[result], graph.dtypes[result] = graph.shape(name), "float32"
        made.append(OnnxNode(result, activation.op, [name, *activation.inputs[1:]], [result], activation.attributes))
    join.inputs, join.outputs = [node.outputs[0] for node in made], activation.outputs
    graph.nodes[graph.nodes.index(join) : graph.nodes.index(join)] = made
    graph.nodes.remove(activation)


def _joins_layers(graph: OnnxGraph, join: OnnxNode) -> bool:
    """Tell whether convolutions make all that a node joins, for one reader."""
    layers = {name for node in graph.nodes for name in node.outputs if node.op == "Conv"}
    alone = len(graph.consumers()[join.outputs[0]]) == 1 and join.outputs[0] not in graph.outputs
    return alone and layers.issuperset(join.inputs)


def _turned(weights: NDArray[Any], groups: int) -> NDArray[Any]:
    """Return weights (CI, CO / groups, KH, KW) as those of a convolution: (CO, CI / groups, KH, KW), turned round."""
    inputs, outputs, height, width = weights.shape
    grouped = weights.reshape(groups, inputs // groups, outputs, height, width).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(grouped.reshape(groups * outputs, inputs // groups, height, width)[:, :, ::-1, ::-1])


def _unstrided(
    graph: OnnxGraph, node: OnnxNode, weights: NDArray[Any], pads: list[int], groups: int
) -> list[OnnxNode] | None:
    """Pad by the kernel's rest: an output at y sees the inputs y + pad - (k - 1) to y + pad."""
    height, width = weights.shape[2:]
    extra = node.attributes.get("output_padding", [0, 0])
    around = [
        height - 1 - pads[0],
        width - 1 - pads[1],
        height - 1 - pads[2] + extra[0],
        width - 1 - pads[3] + extra[1],
    ]
    if min(around) < 0:
        return None
    name = graph.unique(f"{node.name}.weight")
    graph.constants[name] = weights
    return [_convolution(node.name, [node.inputs[0], name, *node.inputs[2:]], node.outputs[0], weights, around, groups)]


def _convolution(
    name: str, inputs: list[str], output: str, weights: NDArray[Any], pads: list[int], groups: int
) -> OnnxNode:
    attributes = {
        "kernel_shape": list(weights.shape[2:]),
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads": pads,
        "group": groups,
    }
    return OnnxNode(name, "Conv", inputs, [output], attributes)


def _sub_pixel(
    graph: OnnxGraph, node: OnnxNode, weights: NDArray[Any], strides: tuple[int, int], pads: list[int], groups: int
) -> list[OnnxNode]:
    """Output row y * s + r (before cropping) sums inputs y - j over the taps r + j * s of the unturned kernel.

    With J = ceil(k / s) taps each, the small kernel of phase r has tap r + j * s at place J - 1 - j, so that padding
    J - 1 in front and J - 1 behind gives rows 0 to H + J - 2 of each phase.
    """
    (high, wide), phases = strides, strides[0] * strides[1]
    outputs, *_, height, width = weights.shape
    rows, columns = -(-height // high), -(-width // wide)
    mode = "DCR" if groups == 1 and high == wide else "CRD"
    small = _phases(weights, strides, mode)

    source, result = node.inputs[0], node.outputs[0]
    images, _, in_height, in_width = graph.shape(source)
    names = [graph.unique(f"{node.name}.{part}") for part in ("weight", "bias", "phases", "full")]
    graph.constants[names[0]] = small
    inputs = [source, names[0]]
    if len(node.inputs) > 2 and node.inputs[2] in graph.constants:
        bias = graph.constants[node.inputs[2]]
        graph.constants[names[1]] = np.tile(bias, phases) if mode == "DCR" else np.repeat(bias, phases)
        inputs.append(names[1])
    wanted = graph.shape(result)
    cut = [(pads[0], pads[0] + wanted[2]), (pads[1], pads[1] + wanted[3])]
    # Rows behind the last tap, which an output padding asks for, see nothing but padding.
    grid = [max(in_height + rows - 1, -(-cut[0][1] // high)), max(in_width + columns - 1, -(-cut[1][1] // wide))]
    around = [rows - 1, columns - 1, grid[0] - in_height, grid[1] - in_width]
    size = (grid[0] * high, grid[1] * wide)
    whole = cut == [(0, size[0]), (0, size[1])]
    shuffled = result if whole else names[3]
    graph.shapes[names[2]] = (images, outputs * phases, *grid)
    graph.shapes[shuffled] = (images, outputs, *size)
    graph.dtypes[names[2]] = graph.dtypes[shuffled] = "float32"
    nodes = [_convolution(node.name, inputs, names[2], small, around, groups)]
    nodes += _shuffle(graph, node.name, names[2], shuffled, strides, mode)
    if not whole:
        nodes.append(slice_node(graph, f"{node.name}.crop", shuffled, result, {2: cut[0], 3: cut[1]}))
    return nodes


class _Taps(NamedTuple):
    """The first of the taps that one phase of an axis reads, how many, and the padding of its convolution."""

    first: int
    taken: int
    before: int
    behind: int


def _apart(
    graph: OnnxGraph, node: OnnxNode, weights: NDArray[Any], stride: int, pads: list[int]
) -> list[OnnxNode] | None:
    """Return a convolution for each phase, with the taps and the padding that it alone needs: nothing is cropped.

    Their results are joined by whole blocks of channels, in place; None of others, and where nothing is to be cropped.
    """
    images, _, *image = graph.shape(node.inputs[0])
    wanted = graph.shape(node.outputs[0])[2:]
    sizes = zip(pads[:2], weights.shape[2:], image, wanted, strict=True)
    rows, columns = (_phases_of(pad, stride, kernel, size, made) for pad, kernel, size, made in sizes)
    cropped = any(pads) or [size * stride for size in image] != list(wanted)
    if len(weights) % _WHOLE_BLOCK or not (cropped and rows and columns):
        return None
    joined, small = graph.unique(f"{node.name}.phases"), [length // stride for length in wanted]
    graph.shapes[joined], graph.dtypes[joined] = (images, len(weights) * stride**2, *small), "float32"
    layers: list[OnnxNode] = []
    for taps in product(rows, columns):
        name = f"{node.name}{_PHASE}{len(layers) + 1}" if layers else node.name
        layers.append(_phase(graph, node, name, weights, stride, taps))
        graph.shapes[layers[-1].outputs[0]] = (images, len(weights), *small)
    join = OnnxNode(f"{node.name}.join", "Concat", [layer.outputs[0] for layer in layers], [joined], {"axis": 1})
    return [*layers, join, *_shuffle(graph, node.name, joined, node.outputs[0], (stride, stride), "DCR")]


def _phase(
    graph: OnnxGraph, node: OnnxNode, name: str, weights: NDArray[Any], stride: int, taps: tuple[_Taps, _Taps]
) -> OnnxNode:
    """Return the convolution of one phase, with every `stride`-th tap of the turned weights."""
    rows, columns = taps
    unturned = weights[:, :, ::-1, ::-1][:, :, rows.first :: stride, columns.first :: stride]
    kernel = np.ascontiguousarray(unturned[:, :, ::-1, ::-1])
    inputs = [node.inputs[0], new_constant(graph, f"{name}.weight", kernel), *node.inputs[2:]]
    made = graph.unique(f"{name}.phase")
    graph.dtypes[made] = "float32"
    return _convolution(name, inputs, made, kernel, [rows.before, columns.before, rows.behind, columns.behind], 1)


def _phases_of(pad: int, stride: int, kernel: int, image: int, wanted: int) -> list[_Taps]:
    """Return the inputs of each phase of an axis; nothing if one has none, or other inputs than of its own length."""
    found = [_taps(phase, pad, stride, kernel, image, wanted // stride) for phase in range(stride)]
    plain = wanted % stride == 0 and all(min(taps.taken - 1, taps.before, taps.behind) >= 0 for taps in found)
    return found if plain else []


def _taps(phase: int, pad: int, stride: int, kernel: int, image: int, wanted: int) -> _Taps:
    """Return what the outputs y * stride + phase of an axis read, y from 0 to `wanted` - 1.

    Before cropping they are (y + shift) * stride + first: their inputs are y + shift - count + 1 to y + shift.
    """
    shift, first = divmod(phase + pad, stride)
    count = -(-(kernel - first) // stride)
    before = count - 1 - shift
    return _Taps(first, count, before, wanted - image - before + count - 1)


def _phases(weights: NDArray[Any], strides: tuple[int, int], mode: str) -> NDArray[Any]:
    """Return the kernels of all phases, turned round: (phases * CO, CI, rows, columns) in the order of `mode`."""
    (high, wide), (outputs, depth, height, width) = strides, weights.shape
    rows, columns = -(-height // high), -(-width // wide)
    full = np.zeros((outputs, depth, rows * high, columns * wide), weights.dtype)
    full[:, :, :height, :width] = weights[:, :, ::-1, ::-1]
    phases = full.reshape(outputs, depth, rows, high, columns, wide)[:, :, ::-1, :, ::-1, :]
    order = (3, 5, 0, 1, 2, 4) if mode == "DCR" else (0, 3, 5, 1, 2, 4)
    return np.ascontiguousarray(phases.transpose(order).reshape(outputs * high * wide, depth, rows, columns))


def _shuffle(
    graph: OnnxGraph, stem: str, source: str, result: str, strides: tuple[int, int], mode: str
) -> list[OnnxNode]:
    """Return the nodes that put the phases, which are channels of `source`, beside each other in `result`."""
    high, wide = strides
    if high == wide:
        return [OnnxNode(f"{stem}.shuffle", "DepthToSpace", [source], [result], {"blocksize": high, "mode": mode})]
    (images, _, rows, columns), outputs = graph.shape(source), graph.shape(result)[1]
    parts, turned = graph.unique(f"{stem}.parts"), graph.unique(f"{stem}.turned")
    apart = (images, outputs, high, wide, rows, columns)
    graph.shapes[parts] = apart
    graph.shapes[turned] = (images, outputs, rows, high, columns, wide)
    graph.dtypes[parts] = graph.dtypes[turned] = "float32"
    return [
        reshape_node(graph, f"{stem}.part", source, parts, apart),
        OnnxNode(f"{stem}.turn", "Transpose", [parts], [turned], {"perm": [0, 1, 4, 2, 5, 3]}),
        reshape_node(graph, f"{stem}.join", turned, result, graph.shape(result)),
    ]
