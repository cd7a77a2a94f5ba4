"""A HardSigmoid behind a layer as a factor, a term and a Clip, which the layer takes up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant

_LAYERS = ("Conv", "Gemm")


def clip_hard_sigmoids(graph: OnnxGraph) -> None:
    """Rewrite in place each HardSigmoid, and each Clip with a positive factor behind it, that alone reads a layer."""
    producers, consumers = graph.producers(), graph.consumers()
    for node in list(graph.nodes):
        if node.domain or not _alone_reads_a_layer(graph, node, producers, consumers):
            continue
        if node.op == "HardSigmoid":
            alpha, beta = (float(node.attributes.get(key, value)) for key, value in (("alpha", 0.2), ("beta", 0.5)))
            _replace(graph, [node], [("Mul", alpha), ("Add", beta)], (0.0, 1.0))
        elif node.op == "Clip":
            _scale_before(graph, node, consumers)


def _alone_reads_a_layer(
    graph: OnnxGraph, node: OnnxNode, producers: Mapping[str, OnnxNode], consumers: Mapping[str, Sequence[OnnxNode]]
) -> bool:
    source = node.inputs[0] if node.inputs else ""
    layer = producers.get(source)
    if layer is None or layer.op not in _LAYERS or layer.domain or layer.inputs[1] not in graph.constants:
        return False
    return len(consumers[source]) == 1 and source not in graph.outputs


def _scale_before(graph: OnnxGraph, clip: OnnxNode, consumers: Mapping[str, Sequence[OnnxNode]]) -> None:
    """Let a positive factor that alone reads a Clip go before it."""
    readers = consumers.get(clip.outputs[0], ())
    bounds = [graph.constants.get(name) for name in clip.inputs[1:]]
    known = [float(bound.ravel()[0]) for bound in bounds if bound is not None]
    if len(readers) != 1 or clip.outputs[0] in graph.outputs or len(known) != 2:
        return
    (scaling,) = readers
    factor = _positive_factor(graph, scaling, clip.outputs[0])
    if factor is not None and graph.shape(clip.outputs[0]) == graph.shape(scaling.outputs[0]):
        _replace(graph, [clip, scaling], [("Mul", factor)], (factor * known[0], factor * known[1]))


def _positive_factor(graph: OnnxGraph, node: OnnxNode, name: str) -> float | None:
    """Return the positive number by which a node multiplies a tensor; None if it computes something else."""
    if node.domain or node.op not in ("Mul", "Div") or len(set(node.inputs)) != 2:
        return None
    place = node.inputs.index(name)
    constant = graph.constants.get(node.inputs[1 - place])
    if constant is None or constant.size != 1:
        return None
    value = float(constant.ravel()[0])
    if value <= 0 or (node.op == "Div" and place):
        return None
    return value if node.op == "Mul" else 1 / value


def _replace(
    graph: OnnxGraph, nodes: Sequence[OnnxNode], steps: Sequence[tuple[str, float]], bounds: tuple[float, float]
) -> None:
    """Put operators with a constant each, and a Clip, in the place of consecutive nodes."""
    first, source, made = nodes[0], nodes[0].inputs[0], []
    for op, value in steps:
        result = graph.unique(f"{first.name}.{op.lower()}")
        graph.shapes[result], graph.dtypes[result] = graph.shape(source), graph.dtypes.get(source, "float32")
        constant = new_constant(graph, f"{result}.constant", np.array(value, np.float32))
        made.append(OnnxNode(result, op, [source, constant], [result]))
        source = result
    ends = [new_constant(graph, f"{first.name}.bound", np.array(bound, np.float32)) for bound in bounds]
    made.append(OnnxNode(nodes[-1].name, "Clip", [source, *ends], list(nodes[-1].outputs)))
    place = graph.nodes.index(first)
    graph.nodes[place : place + 1] = made
    for node in nodes[1:]:
        graph.nodes.remove(node)
