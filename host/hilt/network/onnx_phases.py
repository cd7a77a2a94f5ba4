"""A long filter with a stride, of one channel, as a short convolution of blocks of the signal.

A block of B samples becomes the channels of one pixel. With a stride s, B / s outputs begin within a block: the phases,
which are the output's channels. out[i = q * B / s + r] adds w[k] * x[q * B + s * r + k]; sample s * r + k of block q is
sample j of block q + p. So phase r has weight w[B * p + j - s * r] for channel j and tap p. The blocks are the signal
itself in another shape, where folded columns would be copies of it, `taps / s` times as many bytes.
"""

from __future__ import annotations

import numpy as np

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reshape_node, slice_node

BLOCK = 16
"""Samples of a block: lanes of most accelerators."""
_LEAST_TAPS = 2 * BLOCK


def filter_by_phases(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return the nodes of a long filter; None of other nodes, and where an operator behind it would be its layer's."""
    if node.op != "Conv" or node.inputs[1] not in graph.constants:
        return None
    weights = graph.constants[node.inputs[1]]
    strides = node.attributes.get("strides", [1, 1])
    shape = graph.shape(node.inputs[0])
    if weights.ndim != 4 or weights.shape[:3] != (1, 1, 1) or shape[:3] != (1, 1, 1) or weights.shape[3] < _LEAST_TAPS:
        return None
    if BLOCK % strides[1] or node.attributes.get("dilations", [1, 1])[1] != 1 or _is_followed(graph, node):
        return None
    return _by_phases(graph, node, weights.reshape(-1), strides[1])


def _is_followed(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Return whether an element-wise operator behind the filter may become part of its layer."""
    readers = graph.consumers().get(node.outputs[0], [])
    return any(reader.op in UNARY | BINARY | {"BatchNormalization"} for reader in readers)


def _by_phases(graph: OnnxGraph, node: OnnxNode, weights: np.ndarray, stride: int) -> list[OnnxNode]:
    phases, taps = BLOCK // stride, -(-(len(weights) + BLOCK - stride) // BLOCK)
    length, made = graph.shape(node.inputs[0])[3], graph.shape(node.outputs[0])[3]
    pixels = -(-made // phases)
    whole = (pixels + taps - 1) * BLOCK
    left = node.attributes.get("pads", [0] * 4)[1]
    kept = min(length, whole - left)

    def name(what: str, *size: int) -> str:
        made = graph.unique(f"{node.name}.{what}")
        graph.shapes[made], graph.dtypes[made] = size, "float32"
        return made

    signal, blocks = name("signal", 1, 1, 1, whole), name("blocks", 1, 1, pixels + taps - 1, BLOCK)
    image = name("phases in", 1, BLOCK, 1, pixels + taps - 1)
    result, turned = name("phases out", 1, phases, 1, pixels), name("turned", 1, 1, pixels, phases)
    line, nodes, source = name("line", 1, 1, 1, pixels * phases), [], node.inputs[0]
    if kept < length:
        source = name("read", 1, 1, 1, kept)
        nodes.append(slice_node(graph, f"{node.name}.cut", node.inputs[0], source, {3: (0, kept)}))
    around = new_constant(graph, f"{node.name}.around", np.array([0, 0, 0, left, 0, 0, 0, whole - left - kept]))
    bias = [_repeated(graph, node, phases)] if len(node.inputs) > 2 and node.inputs[2] else []
    kernel = new_constant(graph, f"{node.name}.by phase", _phases(weights, stride, phases, taps))
    attributes = {**node.attributes, "kernel_shape": [1, taps], "strides": [1, 1], "pads": [0] * 4}
    return [
        *nodes,
        OnnxNode(f"{node.name}.pad", "Pad", [source, around], [signal]),
        reshape_node(graph, f"{node.name}.block", signal, blocks, (1, 1, pixels + taps - 1, BLOCK)),
        OnnxNode(f"{node.name}.turn", "Transpose", [blocks], [image], {"perm": [0, 3, 1, 2]}),
        OnnxNode(node.name, "Conv", [image, kernel, *bias], [result], attributes),
        OnnxNode(f"{node.name}.turn back", "Transpose", [result], [turned], {"perm": [0, 2, 3, 1]}),
        reshape_node(graph, f"{node.name}.unblock", turned, line, (1, 1, 1, pixels * phases)),
        slice_node(graph, f"{node.name}.end", line, node.outputs[0], {3: (0, made)}),
    ]


def _phases(weights: np.ndarray, stride: int, phases: int, taps: int) -> np.ndarray:
    """Return the weights (phases, BLOCK, 1, taps)."""
    made = np.zeros((phases, taps * BLOCK), weights.dtype)
    for phase in range(phases):
        made[phase, phase * stride : phase * stride + len(weights)] = weights
    return np.ascontiguousarray(made.reshape(phases, taps, BLOCK).transpose(0, 2, 1))[:, :, None, :]


def _repeated(graph: OnnxGraph, node: OnnxNode, phases: int) -> str:
    return new_constant(graph, f"{node.name}.biases", np.repeat(graph.constants[node.inputs[2]].reshape(-1), phases))
