"""The operator set that a quantised model is written in."""

from __future__ import annotations

from hilt.network.onnx_graph import CONSTANT_DOMAIN, OnnxGraph

_WIDELY_RUN = 20
"""ONNX Runtime's optimiser refuses some int8 models of newer sets: its QuantizeLinear has a type and a zero point."""
_OTHERWISE_BEFORE = ("GroupNormalization",)
"""Operators that compute something else at that set."""


def lower_opset(graph: OnnxGraph) -> None:
    """Write a canonical graph in the newest set that runtimes agree on, if all of its nodes are the same there."""
    import onnx

    if graph.opset <= _WIDELY_RUN:
        return
    for node in graph.nodes:
        if node.domain in ("", CONSTANT_DOMAIN):
            if node.op in _OTHERWISE_BEFORE or not onnx.defs.has(node.op):
                return
            try:
                schema = onnx.defs.get_schema(node.op, _WIDELY_RUN, "")
            except onnx.defs.SchemaError:
                return
            if not set(node.attributes) <= set(schema.attributes):
                return
    graph.opset = _WIDELY_RUN
