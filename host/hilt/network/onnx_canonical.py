"""One form for each kind of layer, in ONNX's own operators: the only forms for quantisation and import to know."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_affine import fold_affine
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes
from hilt.network.onnx_transposed import lower_transposed
from hilt_runtime.operators_window import pads_of

_MAX_DILATED_TAPS = 4
"""A dilated kernel is written with its zeros up to so many times its taps."""


def canonicalise(graph: OnnxGraph) -> None:
    """Rewrite a fixed float graph in place.

    Afterwards: convolutions and pools are two-dimensional with pads; a matrix product with constant weights is a Gemm
    with weights (N, K) and a bias; strided ConvTranspose is a convolution and DepthToSpace; Flatten, Squeeze and
    Unsqueeze are Reshape; Split is Slice; means over the image are GlobalAveragePool; batch norms are folded.
    """
    for rewrite in (_reshapes, _splits, _products, _means, _flat_windows, _pads, lower_transposed, _dilations):
        _each_node(graph, rewrite)
        infer_shapes(graph)
    fold_affine(graph)
    _each_node(graph, _adjacent_reshapes)
    graph.remove_unused()
    infer_shapes(graph)


def _each_node(graph: OnnxGraph, rewrite: Callable[[OnnxGraph, OnnxNode], list[OnnxNode] | None]) -> None:
    """Let `rewrite` give each node's successors; None keeps it."""
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        successors = None if node.domain else rewrite(graph, node)
        nodes += [node] if successors is None else successors
    graph.nodes = nodes


def _constant(graph: OnnxGraph, stem: str, value: NDArray[Any]) -> str:
    name = graph.unique(stem)
    graph.constants[name] = value
    return name


def _reshape_node(graph: OnnxGraph, name: str, source: str, result: str, shape: tuple[int, ...]) -> OnnxNode:
    constant = _constant(graph, f"{name}.shape", np.array(shape, np.int64))
    graph.shapes[result] = shape
    graph.dtypes[result] = graph.dtypes.get(source, "float32")
    return OnnxNode(name, "Reshape", [source, constant], [result])


def _reshapes(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    if node.op not in ("Flatten", "Squeeze", "Unsqueeze", "Reshape"):
        return None
    return [_reshape_node(graph, node.name, node.inputs[0], node.outputs[0], graph.shape(node.outputs[0]))]


def _splits(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    if node.op != "Split":
        return None
    axis = node.attributes.get("axis", 0)
    axis += len(graph.shape(node.inputs[0])) if axis < 0 else 0
    slices, start = [], 0
    for place, output in enumerate(node.outputs):
        end = start + graph.shape(output)[axis]
        bounds = [
            _constant(graph, f"{node.name}.{key}{place}", np.array([value], np.int64))
            for key, value in (("start", start), ("end", end), ("axis", axis))
        ]
        slices.append(OnnxNode(f"{node.name}.{place}", "Slice", [node.inputs[0], *bounds], [output]))
        start = end
    return slices


def _products(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Make a MatMul or Gemm with constant weights a Gemm with weights (N, K), between reshapes where it needs them."""
    if node.op not in ("MatMul", "Gemm") or node.inputs[1] not in graph.constants:
        return None
    weights = graph.constants[node.inputs[1]]
    while weights.ndim > 2 and weights.shape[0] == 1:
        weights = weights[0]
    shape, result = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    if weights.ndim != 2 or weights.dtype != np.float32 or len(shape) < 2:
        return None
    bias = np.zeros(0)
    if node.op == "Gemm":
        if node.attributes.get("transA", 0):
            return None
        weights = weights if node.attributes.get("transB", 0) else weights.T
        weights = weights * np.float32(node.attributes.get("alpha", 1.0))
        if len(node.inputs) > 2 and node.inputs[2]:
            if node.inputs[2] not in graph.constants or graph.constants[node.inputs[2]].size not in (1, len(weights)):
                return None
            bias = graph.constants[node.inputs[2]].reshape(-1) * np.float32(node.attributes.get("beta", 1.0))
    else:
        weights = weights.T
    names = [_constant(graph, f"{node.name}.weight", np.ascontiguousarray(weights))]
    if bias.size:
        names.append(_constant(graph, f"{node.name}.bias", np.broadcast_to(bias, (len(weights),)).astype(np.float32)))
    if len(shape) == 2:
        return [OnnxNode(node.name, "Gemm", [node.inputs[0], *names], list(node.outputs), {"transB": 1})]
    rows = math.prod(shape[:-1])
    flat, product = graph.unique(f"{node.name}.flat"), graph.unique(f"{node.name}.product")
    graph.shapes[product], graph.dtypes[product] = (rows, len(weights)), "float32"
    return [
        _reshape_node(graph, f"{node.name}.rows", node.inputs[0], flat, (rows, shape[-1])),
        OnnxNode(node.name, "Gemm", [flat, *names], [product], {"transB": 1}),
        _reshape_node(graph, f"{node.name}.back", product, node.outputs[0], result),
    ]


def _means(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Make a mean over height and width a GlobalAveragePool."""
    if node.op != "ReduceMean" or len(graph.shape(node.inputs[0])) != 4:
        return None
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1:
        axes = graph.constants.get(node.inputs[1], np.zeros(0)).tolist()
    if axes is None or sorted(int(axis) % 4 for axis in axes) != [2, 3]:
        return None
    pooled = graph.unique(f"{node.name}.pooled")
    graph.shapes[pooled], graph.dtypes[pooled] = (*graph.shape(node.inputs[0])[:2], 1, 1), "float32"
    pool = OnnxNode(node.name, "GlobalAveragePool", [node.inputs[0]], [pooled])
    result = graph.shape(node.outputs[0])
    return [pool, _reshape_node(graph, f"{node.name}.shape", pooled, node.outputs[0], result)]


def _flat_windows(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Make a one-dimensional convolution or pool a two-dimensional one of height 1."""
    if node.op not in ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool"):
        return None
    shape = graph.shape(node.inputs[0])
    if len(shape) != 3 or len(node.outputs) > 1:
        return None
    inputs = list(node.inputs)
    attributes: dict[str, Any] = dict(node.attributes)
    if node.op in ("Conv", "ConvTranspose"):
        if inputs[1] not in graph.constants:
            return None
        weights = graph.constants[inputs[1]]
        inputs[1] = _constant(graph, f"{node.name}.weight", weights[:, :, None, :])
    for key in ("kernel_shape", "strides", "dilations", "output_shape", "output_padding"):
        if key in attributes:
            attributes[key] = [0 if key == "output_padding" else 1, attributes[key][-1]]
    if "pads" in attributes:
        attributes["pads"] = [0, attributes["pads"][0], 0, attributes["pads"][1]]
    image, result = graph.unique(f"{node.name}.image"), graph.unique(f"{node.name}.result")
    batch, channels, length = graph.shape(node.outputs[0])
    graph.shapes[result], graph.dtypes[result] = (batch, channels, 1, length), "float32"
    inputs[0] = image
    return [
        _reshape_node(graph, f"{node.name}.rows", node.inputs[0], image, (shape[0], shape[1], 1, shape[2])),
        OnnxNode(node.name, node.op, inputs, [result], attributes),
        _reshape_node(graph, f"{node.name}.back", result, node.outputs[0], (batch, channels, length)),
    ]


def _pads(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write pads for auto_pad, and strides, dilations and groups for their defaults."""
    if node.op not in ("Conv", "MaxPool", "AveragePool") or len(graph.shape(node.inputs[0])) != 4:
        return None
    attributes = dict(node.attributes)
    if node.op == "Conv":
        if node.inputs[1] not in graph.constants:
            return None
        attributes["kernel_shape"] = list(graph.constants[node.inputs[1]].shape[2:])
        attributes.setdefault("group", 1)
    kernel = attributes["kernel_shape"]
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    attributes["pads"] = pads_of(attributes, graph.shape(node.inputs[0])[2:], kernel, strides, dilations)
    attributes.pop("auto_pad", None)
    attributes["strides"] = list(strides)
    if node.op != "AveragePool":
        attributes["dilations"] = [1 if taps == 1 else gap for taps, gap in zip(kernel, dilations, strict=True)]
    return [OnnxNode(node.name, node.op, list(node.inputs), list(node.outputs), attributes)]


def _dilations(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Write a dilated kernel with its zeros, if they are few."""
    dilations = node.attributes.get("dilations", [1, 1])
    if node.op != "Conv" or max(dilations) == 1 or node.inputs[1] not in graph.constants or len(dilations) != 2:
        return None
    weights = graph.constants[node.inputs[1]]
    size = [(taps - 1) * gap + 1 for taps, gap in zip(weights.shape[2:], dilations, strict=True)]
    if math.prod(size) > _MAX_DILATED_TAPS * math.prod(weights.shape[2:]):
        return None
    spread = np.zeros((*weights.shape[:2], *size), weights.dtype)
    spread[:, :, :: dilations[0], :: dilations[1]] = weights
    attributes = {**node.attributes, "kernel_shape": size, "dilations": [1, 1]}
    inputs = [node.inputs[0], _constant(graph, f"{node.name}.spread", spread), *node.inputs[2:]]
    return [OnnxNode(node.name, node.op, inputs, list(node.outputs), attributes)]


def _adjacent_reshapes(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Let a Reshape read the input of the Reshape before it; remove_unused drops the first if nobody reads it."""
    if node.op != "Reshape":
        return None
    producers = graph.producers()
    source = node.inputs[0]
    while source in producers and producers[source].op == "Reshape":
        source = producers[source].inputs[0]
    if source == node.inputs[0]:
        return None
    if graph.shape(source) == graph.shape(node.outputs[0]) and node.outputs[0] not in graph.outputs:
        graph.replace(node.outputs[0], source)
        return []
    return [OnnxNode(node.name, "Reshape", [source, node.inputs[1]], list(node.outputs))]
