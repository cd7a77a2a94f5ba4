"""The layers of an ONNX model that a compiled network runs, as workloads to tune."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hilt.network.onnx_canonical import canonicalise
from hilt.network.onnx_graph import OnnxError as GraphError
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, load_graph, to_model
from hilt.network.onnx_simplify import fix
from hilt.network.onnx_unquantise import is_quantised, unquantise
from hilt.schedule.onnx_model import Layer, Network, OnnxError, network_of


def read_layers(
    path: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> Network:
    """Return the layers of a model in the form in which hilt compiles them.

    Constants are folded, If branches with a constant condition inlined, one-dimensional and transposed convolutions
    written as plain ones, and models that others quantised read as float ones. Weights are not needed.

    Args:
        path: The model.
        shapes: Shapes of inputs that it leaves open.
        values: Inputs that become constants.

    Raises:
        OnnxError: The file is no model that can be read, or an input's shape stays open.
    """
    try:
        graph = load_graph(path, weights=False)
        fix(graph, shapes or {}, values or {})
        if is_quantised(graph):
            unquantise(graph)
            fix(graph, {}, {})
        canonicalise(graph)
        network = network_of(to_model(graph, shapes_only=True), graph.name)
    except GraphError as error:
        raise OnnxError(str(error)) from error
    nodes = {node.name: node for node in graph.nodes}
    layers = [
        _checked(graph, layer, [nodes[name] for name in layer.nodes if name in nodes]) for layer in network.layers
    ]
    return Network(network.name, tuple(layers), network.others)


def _checked(graph: OnnxGraph, layer: Layer, nodes: Sequence[OnnxNode]) -> Layer:
    """Return a layer with its multiply-accumulates; one whose weights are computed is the processor's."""
    reason = layer.reason
    if any(node.inputs[1] not in graph.constants for node in nodes):
        reason = f"{nodes[0].op}: both of its operands are computed"
    if not reason:
        return layer
    return replace(layer, workload="", reason=reason, macs=max((_macs(graph, node) for node in nodes), default=0))


def _macs(graph: OnnxGraph, node: OnnxNode) -> int:
    """Return the multiply-accumulates of a product or convolution; 0 of any other node."""
    if node.op == "MatMul":
        return math.prod(graph.shape(node.outputs[0])) * graph.shape(node.inputs[0])[-1]
    if node.op in ("Conv", "ConvTranspose"):
        place = 0 if node.op == "ConvTranspose" else -1
        grid = graph.shape(node.inputs[0] if place == 0 else node.outputs[0])
        weights = graph.shape(node.inputs[1])
        channels = weights[1] if place == 0 else math.prod(weights[1:]) // math.prod(weights[2:])
        return math.prod(grid) * channels * math.prod(weights[2:])
    return 0


def coverage(network: Network) -> float:
    """Return the share of a network's multiply-accumulates that VTA can run, from 0 to 1."""
    if not network.unsupported:
        return 1.0
    whole = sum(layer.macs * layer.count for layer in network.layers)
    return sum(layer.macs * layer.count for layer in network.supported) / whole if whole else 0.0


def coverage_text(network: Network) -> str:
    """Return in one line how much of a network is tuned."""
    whole = sum(layer.macs * layer.count for layer in network.layers)
    if not network.unsupported:
        return f"VTA can run all convolutions and dense layers of {network.name}: {whole:,} multiply-accumulates"
    missing = sum(layer.count for layer in network.unsupported)
    share = 100 * coverage(network)
    return (
        f"VTA can run {share:.1f} % of the {whole:,} multiply-accumulates of {network.name}; "
        f"{missing} layers stay on the processor, and no time below counts them"
    )
