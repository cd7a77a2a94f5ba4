"""Nodes that hilt cannot compute, refused by name before any work."""

from __future__ import annotations

from hilt.network.onnx_graph import CONSTANT_DOMAIN, OnnxError, OnnxGraph, OnnxNode
from hilt_runtime import operators

_WINDOWS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")
_SEVERAL_OUTPUTS = ("Split", "TopK", "LSTM", "GRU", "RNN")
_INSTEAD = "replace it in the model, or cut the model in front of it with onnx.utils.extract_model"


def require_computable(graph: OnnxGraph) -> None:
    """Refuse a graph with a node that neither VTA nor the processor computes.

    Raises:
        OnnxError: The line names the first such node.
    """
    read = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    for node in graph.nodes:
        if node.op not in ("QuantizeLinear", "DequantizeLinear"):
            _require_operator(node)
            _require_form(graph, node, read)


def _require_operator(node: OnnxNode) -> None:
    if node.domain == CONSTANT_DOMAIN or (node.op in operators.OPERATORS and not node.domain):
        return
    kind = f"{node.domain}.{node.op}" if node.domain else node.op
    raise OnnxError(f"node {node.name} is {kind}, which neither VTA nor the processor's operators compute; {_INSTEAD}")


def _require_form(graph: OnnxGraph, node: OnnxNode, read: set[str]) -> None:
    if node.op in _WINDOWS and len(graph.shape(node.inputs[0])) not in (3, 4):
        dimensions = len(graph.shape(node.inputs[0])) - 2
        computed = "one and two, and three of one volume without groups and auto_pad"
        raise OnnxError(f"node {node.label} has {dimensions} dimensions; hilt computes {computed}; {_INSTEAD}")
    if node.op == "BatchNormalization" and node.attributes.get("training_mode", 0):
        raise OnnxError(f"node {node.label} is in training mode; export the model for inference")
    more = [name for name in node.outputs[1:] if name in read and name]
    if more and node.op not in _SEVERAL_OUTPUTS:
        raise OnnxError(f"node {node.label} has a further output {more[0]}, which hilt does not compute; {_INSTEAD}")
