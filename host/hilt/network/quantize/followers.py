"""Which tensors have the factor of others, and which readers of a tensor take a shift of it back."""

from __future__ import annotations

from collections.abc import Collection

from hilt.network.elementwise import root_of
from hilt.network.onnx_graph import OnnxGraph
from hilt.network.onnx_means import MEANS
from hilt.network.quantize.regions import Regions


def expression_roots(graph: OnnxGraph, tensors: Collection[str], made: Collection[str]) -> dict[str, str]:
    """Return for each result that no layer makes the tensor that it is a function of, unless that is a float input."""
    roots: dict[str, str] = {}
    inner: dict[str, str] = {}
    for node in graph.nodes:
        root, name = root_of(graph, node, inner), node.outputs[0]
        if root is not None and name not in made and (root in tensors or root not in graph.inputs):
            roots[name] = root
            if name not in tensors:
                inner[name] = root
    return roots


def restored_readers(graph: OnnxGraph, regions: Regions) -> dict[str, set[str]]:
    """Return for each int8 tensor the results of its readers that take a shift back first: functions, and floats."""
    tensors = set(regions.tensors)
    roots = expression_roots(graph, tensors, {layer.output for layer in regions.layers})
    inner = tensors | {layer.node.outputs[0] for layer in regions.layers} | set(_residual_sums(graph, regions))
    inner |= regions.shifted
    found: dict[str, set[str]] = {name: set() for name in tensors}
    for node in graph.nodes:
        for name in tensors.intersection(node.inputs):
            if inner.isdisjoint(node.outputs) or roots.get(node.outputs[0]) == name:
                found[name].add(node.outputs[0])
    return found


def _residual_sums(graph: OnnxGraph, regions: Regions) -> list[str]:
    """Return the results of the additions that are fused with a layer."""
    residuals = {layer.node.outputs[0]: layer.residual for layer in regions.layers if layer.residual}
    return [
        node.outputs[0]
        for node in graph.nodes
        if node.op == "Add" and any(residuals.get(name) in node.inputs for name in node.inputs)
    ]


def following(graph: OnnxGraph, regions: Regions) -> dict[str, tuple[str, ...]]:
    """Return for the results of int8 averages, sums, products and PRelus the tensors whose factor they have."""
    found: dict[str, tuple[str, ...]] = dict(regions.adds)
    found |= {name: (data,) for name, (data, _) in regions.products.items()}
    found |= {name: (data,) for name, data in regions.bends.items()}
    tensors = set(regions.tensors)
    pools = (node for node in graph.nodes if node.op in MEANS and tensors.issuperset((node.inputs[0], *node.outputs)))
    return found | {node.outputs[0]: (node.inputs[0],) for node in pools}
