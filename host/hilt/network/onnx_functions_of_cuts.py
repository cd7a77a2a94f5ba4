"""A function of all parts of a layer's result, taken of the result before it is cut: VTA looks it up in its store.

A convolution makes the real and the imaginary part of a spectrum as channels, which Slices part and Pow squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hilt.network.elementwise import root_of
from hilt.network.onnx_graph import OnnxGraph, OnnxNode

_LAYERS = frozenset(("Conv", "Gemm"))


def functions_before_cuts(graph: OnnxGraph) -> None:
    """Rewrite in place: one function of each Slice of a layer's result becomes Slices of the function."""
    consumers, producers = graph.consumers(), graph.producers()
    for name in [*producers]:
        cuts = consumers.get(name, [])
        if name not in graph.outputs and _is_of_layer(name, producers) and _cover(graph, name, cuts):
            functions = [_function(graph, cut, consumers) for cut in cuts]
            if all(_alike(graph, functions[0], each) for each in functions):
                _exchange(graph, name, cuts, [each for each in functions if each])
                graph.remove_unused()
                functions_before_cuts(graph)
                return


def _is_of_layer(name: str, producers: Mapping[str, OnnxNode]) -> bool:
    """Tell whether a layer makes a tensor, Reshapes apart."""
    maker = producers.get(name)
    while maker is not None and maker.op == "Reshape":
        maker = producers.get(maker.inputs[0])
    return maker is not None and not maker.domain and maker.op in _LAYERS


def _cover(graph: OnnxGraph, name: str, cuts: Sequence[OnnxNode]) -> bool:
    """Tell whether two Slices or more alone read a tensor, and leave most of it."""
    if len(cuts) < 2 or any(cut.op != "Slice" or cut.domain or cut.inputs[0] != name for cut in cuts):
        return False
    left = sum(math.prod(graph.shape(cut.outputs[0])) for cut in cuts)
    return 2 * left > math.prod(graph.shape(name))


def _function(graph: OnnxGraph, cut: OnnxNode, consumers: Mapping[str, Sequence[OnnxNode]]) -> OnnxNode | None:
    """Return the function of each element that alone reads a Slice; None if there is none."""
    readers = {id(reader): reader for reader in consumers.get(cut.outputs[0], [])}
    if len(readers) != 1 or cut.outputs[0] in graph.outputs:
        return None
    (reader,) = readers.values()
    return reader if root_of(graph, reader, {}) == cut.outputs[0] else None


def _alike(graph: OnnxGraph, first: OnnxNode | None, other: OnnxNode | None) -> bool:
    """Tell whether two functions give the same of the same."""
    if first is None or other is None:
        return False
    return _meaning(graph, first) == _meaning(graph, other)


def _meaning(graph: OnnxGraph, node: OnnxNode) -> tuple[Any, ...]:
    """Return a key of a function of one tensor and scalars; two with one key compute the same."""
    scalars = [graph.constants[name].tolist() if name in graph.constants else None for name in node.inputs]
    return node.op, node.attributes, scalars


def _exchange(graph: OnnxGraph, name: str, cuts: Sequence[OnnxNode], functions: Sequence[OnnxNode]) -> None:
    """Write the function of a tensor in front of its Slices, which make the functions' results."""
    first = functions[0]
    result = graph.unique(f"{first.name}.whole")
    graph.shapes[result], graph.dtypes[result] = graph.shape(name), graph.dtypes.get(name, "float32")
    inputs = [name if each == cuts[0].outputs[0] else each for each in first.inputs]
    made = OnnxNode(f"{first.name}.whole", first.op, inputs, [result], dict(first.attributes))
    slices = {
        id(cut): OnnxNode(cut.name, "Slice", [result, *cut.inputs[1:]], list(function.outputs), dict(cut.attributes))
        for cut, function in zip(cuts, functions, strict=True)
    }
    dropped, nodes = {id(function) for function in functions}, []
    for node in graph.nodes:
        if id(node) == id(cuts[0]):
            nodes.append(made)
        if id(node) not in dropped:
            nodes.append(slices.get(id(node), node))
    graph.nodes = nodes
