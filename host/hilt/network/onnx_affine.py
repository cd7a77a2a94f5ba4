"""Batch norms and constant factors and terms, folded into the convolutions and dense layers before them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_graph import OnnxGraph, OnnxNode

_LAYERS = {"Conv": 0, "ConvTranspose": 1, "Gemm": 0}
"""Operators by the axis of their weights on which the output channels lie (a Gemm's weights are (N, K) by then)."""

LEAST_CHANNELS = 8
"""Channels of an image with which a depthwise convolution is worth it; fewer are an input's colours."""


def fold_affine(graph: OnnxGraph, layers: Collection[str] = tuple(_LAYERS)) -> None:
    """Fold in place into layers of these operators, until nothing more can be."""
    changed = True
    while changed:
        changed = False
        consumers = graph.consumers()
        for node in list(graph.nodes):
            if node.op not in layers or node.domain or node.inputs[1] not in graph.constants:
                continue
            readers = consumers.get(node.outputs[0], [])
            if len(readers) != 1 or node.outputs[0] in graph.outputs:
                continue
            affine = _affine(graph, node, readers[0])
            if affine is not None and _apply(graph, node, *affine):
                graph.nodes.remove(readers[0])
                node.outputs = [readers[0].outputs[0]]
                changed = True
                break
    graph.remove_unused()


def write_norms_as_layers(graph: OnnxGraph) -> None:
    """Fold in place; a batch norm of an image that no layer takes in becomes a depthwise convolution of 1 x 1.

    So does a product with a constant of each channel, with a sum behind it. Networks that activate in front of their
    layers have them: DenseNets, the second ResNets.
    """
    fold_affine(graph)
    producers, consumers = graph.producers(), graph.consumers()
    for place, node in enumerate(graph.nodes):
        data = graph.computed_inputs(node) if node.op in ("BatchNormalization", "Mul") and not node.domain else []
        maker = producers.get(data[0]) if len(data) == 1 else None
        readers = consumers.get(node.outputs[0], []) if maker is not None else []
        taken = maker is not None and not _is_normal(producers, maker)
        affine = _of_image(graph, maker, node, readers) if maker is not None and taken else None
        if affine is not None:
            weights, bias = (graph.unique(f"{node.name}.{part}") for part in ("weight", "bias"))
            graph.constants[weights] = affine[0].reshape(-1, 1, 1, 1).astype(np.float32)
            graph.constants[bias] = affine[1].astype(np.float32)
            attributes = {"kernel_shape": [1, 1], "group": len(affine[0])}
            graph.nodes[place] = OnnxNode(node.name, "Conv", [data[0], weights, bias], node.outputs, attributes)
    fold_affine(graph)


def _is_normal(producers: Mapping[str, OnnxNode], maker: OnnxNode) -> bool:
    """Tell whether a node makes the normal values of groups: the normalization takes their factors in."""
    made = producers.get(maker.inputs[0]) if maker.op == "Reshape" else maker
    return made is not None and made.op == "InstanceNormalization"


def _of_image(
    graph: OnnxGraph, maker: OnnxNode, node: OnnxNode, readers: Sequence[OnnxNode]
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return factor and term of a norm or product of an image of many channels that `maker` makes; None of others."""
    shape = graph.shape(node.outputs[0])
    if len(shape) != 4 or shape[1] < LEAST_CHANNELS or maker.outputs[0] not in node.inputs:
        return None
    if graph.shape(maker.outputs[0]) != shape:
        return None
    if node.op == "BatchNormalization":
        return _affine(graph, maker, node)
    factor = _affine(graph, maker, node)
    added = len(readers) == 1 and _affine(graph, node, readers[0]) is not None
    return factor if added and factor is not None and np.ptp(factor[0]) > 0 else None


def _affine(graph: OnnxGraph, layer: OnnxNode, node: OnnxNode) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return factor and term by output channel of a node that reads a layer; None if it has no such form."""
    if node.domain:
        return None
    if node.op == "BatchNormalization":
        return _of_batch_norm(graph, node)
    if node.op in ("Add", "Sub", "Mul", "Div"):
        return _of_constant(graph, layer, node)
    return None


def _of_batch_norm(graph: OnnxGraph, node: OnnxNode) -> tuple[NDArray[Any], NDArray[Any]] | None:
    if node.attributes.get("training_mode", 0):
        return None
    parts = [graph.constants.get(name) for name in node.inputs[1:5]]
    if any(part is None for part in parts):
        return None
    scale, shift, mean, variance = (np.asarray(part, np.float64) for part in parts)
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    return factor, shift - mean * factor


def _of_constant(graph: OnnxGraph, layer: OnnxNode, node: OnnxNode) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return factor and term of a sum, difference, product or quotient of a layer and a constant."""
    shape = graph.shape(layer.outputs[0])
    ones, zeros = np.ones(shape[1], np.float64), np.zeros(shape[1], np.float64)
    place = node.inputs.index(layer.outputs[0])
    constant = graph.constants.get(node.inputs[1 - place]) if len(set(node.inputs)) == 2 else None
    value = None if constant is None else _by_channel(constant, shape)
    if value is None:
        return None
    if node.op == "Add":
        return ones, value
    if node.op == "Mul":
        return value, zeros
    if node.op == "Sub":
        return (ones, -value) if place == 0 else (-ones, value)
    return (1 / value, zeros) if place == 0 and np.all(value != 0) else None


def _by_channel(constant: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any] | None:
    """Return a constant as one value a channel; None if it varies along another axis."""
    if constant.ndim > len(shape):
        return None
    full = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
    if any(size != 1 for axis, size in enumerate(full.shape) if axis != 1) or full.shape[1] not in (1, shape[1]):
        return None
    return np.broadcast_to(full.reshape(-1), (shape[1],)).astype(np.float64)


def _apply(graph: OnnxGraph, layer: OnnxNode, factor: NDArray[Any], term: NDArray[Any]) -> bool:
    """Multiply and add to a layer's weights and bias; the weights get a copy, since others may read them."""
    weights = graph.constants[layer.inputs[1]].astype(np.float64)
    has_bias = len(layer.inputs) > 2 and layer.inputs[2]
    if has_bias and layer.inputs[2] not in graph.constants:
        return False
    if layer.op == "ConvTranspose":
        groups = layer.attributes.get("group", 1)
        grouped = weights.reshape(groups, weights.shape[0] // groups, *weights.shape[1:])
        weights = (grouped * factor.reshape(groups, 1, -1, *(1,) * (weights.ndim - 2))).reshape(weights.shape)
    else:
        weights = weights * factor.reshape(-1, *(1,) * (weights.ndim - 1))
    bias = graph.constants[layer.inputs[2]].astype(np.float64).reshape(-1) if has_bias else np.zeros_like(factor)
    names = [graph.unique(f"{layer.name}.{part}") for part in ("weight", "bias")]
    graph.constants[names[0]] = weights.astype(np.float32)
    graph.constants[names[1]] = np.broadcast_to(bias * factor + term, factor.shape).astype(np.float32)
    layer.inputs = [layer.inputs[0], *names]
    return True
