"""Operators that ONNX Runtime's optimiser fuses, and Einsum, as the plain operators that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant
from hilt.network.onnx_unquantise import float_lstm

_DOMAIN = "com.microsoft"
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": ("min", "max"),
}
"""Activations by name, with the meaning of their numbers."""


def split_fused(graph: OnnxGraph) -> None:
    """Rewrite in place; a form that no plain operators express stays as it is."""
    for node in list(graph.nodes):
        split = _FORMS.get((node.domain, node.op))
        plain = split(graph, node) if split else None
        if plain:
            place = graph.nodes.index(node)
            graph.nodes[place : place + 1] = plain


def _fused_layer(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a convolution or Gemm, the addition of its fourth input, and its activation."""
    attributes = {key: value for key, value in node.attributes.items() if not key.startswith("activation")}
    activation, numbers = _activation_of(node)
    if activation and (activation not in _PARAMETERS or len(numbers) < len(_PARAMETERS[activation])):
        return None
    output = node.outputs[0]
    steps = [OnnxNode(node.name, node.op.removeprefix("Fused"), node.inputs[:3], [output], attributes)]
    if len(node.inputs) > 3 and node.inputs[3]:
        steps.append(_behind(graph, steps[-1], "Add", [node.inputs[3]], {}))
    if activation:
        named: dict[str, Any] = dict(zip(_PARAMETERS[activation], numbers, strict=False))
        steps.append(_activation(graph, steps[-1], activation, named))
    return steps


def _activation_of(node: OnnxNode) -> tuple[str, list[float]]:
    """Return the activation of a fused node, or an empty name, and its numbers."""
    given = node.attributes.get("activation_params")
    keys = ("activation_alpha", "activation_beta")
    numbers = [node.attributes[key] for key in keys if key in node.attributes] if given is None else list(given)
    return str(node.attributes.get("activation", "")), numbers


def _activation(graph: OnnxGraph, before: OnnxNode, activation: str, numbers: dict[str, Any]) -> OnnxNode:
    if activation != "Clip":
        return _behind(graph, before, activation, [], numbers)
    stem = before.outputs[0]
    bounds = [new_constant(graph, f"{stem}_{key}", np.asarray(value, np.float32)) for key, value in numbers.items()]
    return _behind(graph, before, activation, bounds, {})


def _behind(graph: OnnxGraph, before: OnnxNode, op: str, inputs: list[str], attributes: dict[str, Any]) -> OnnxNode:
    """Return a node that takes over the output of the one before it."""
    output = before.outputs[0]
    before.outputs = [graph.unique(f"{output}_before_{op}")]
    return OnnxNode(f"{before.name}_{op}", op, [before.outputs[0], *inputs], [output], attributes)


def _fused_product(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a MatMul of constant weights; transposed inputs that are computed stay."""
    values = node.attributes
    if values.get("transA", 0) or values.get("transBatchA", 0) or values.get("transBatchB", 0):
        return None
    weights = node.inputs[1]
    if values.get("transB", 0) or values.get("alpha", 1.0) != 1.0:
        if weights not in graph.constants:
            return None
        array = graph.constants[weights] * np.float32(values.get("alpha", 1.0))
        weights = graph.unique(f"{weights}_scaled")
        graph.constants[weights] = np.ascontiguousarray(np.swapaxes(array, -1, -2) if values.get("transB") else array)
    return [OnnxNode(node.name, "MatMul", [node.inputs[0], weights], list(node.outputs))]


def _einsum(graph: OnnxGraph, node: OnnxNode) -> list[OnnxNode] | None:
    """Return a MatMul where the equation is one with constant weights, as `abc,cd->abd` or `abc,dc->abd`."""
    name = node.inputs[1]
    transposed = _of_product(str(node.attributes.get("equation", "")).replace(" ", ""))
    if transposed is None or name not in graph.constants:
        return None
    if transposed:
        name = new_constant(graph, f"{name}_transposed", np.ascontiguousarray(graph.constants[name].T))
    return [OnnxNode(node.name, "MatMul", [node.inputs[0], name], list(node.outputs))]


def _of_product(equation: str) -> bool | None:
    """Return whether the weights of a matrix product's equation are transposed; None for another equation."""
    terms, arrow, result = equation.partition("->")
    names = terms.split(",")
    if not arrow or "." in equation or len(names) != 2 or len(names[1]) != 2:
        return None
    data, weights = names
    summed = data[-1]
    kept = weights.replace(summed, "")
    if summed not in weights or len(kept) != 1 or kept in data or result != data[:-1] + kept:
        return None
    return None if len(set(data)) != len(data) else weights[1] == summed


_Split = Callable[[OnnxGraph, OnnxNode], "list[OnnxNode] | None"]
_FORMS: dict[tuple[str, str], _Split] = {
    ("com.microsoft", "DynamicQuantizeLSTM"): float_lstm,
    (_DOMAIN, "FusedConv"): _fused_layer,
    (_DOMAIN, "FusedGemm"): _fused_layer,
    (_DOMAIN, "FusedMatMul"): _fused_product,
    ("", "Einsum"): _einsum,
}
