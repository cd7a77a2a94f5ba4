"""A model with fixed shapes, and nothing in it that does not depend on the input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.onnx_fused import split_fused
from hilt.network.onnx_graph import (
    CONSTANT_DOMAIN,
    OnnxError,
    OnnxGraph,
    OnnxNode,
    graph_of,
    infer_shapes,
    load_graph,
    parse_graph,
    rename_captured,
)
from hilt.network.onnx_pools import write_ceilings_as_pads
from hilt.network.onnx_unquantise import is_quantised, unquantise
from hilt_runtime import operators

_KEPT = frozenset(("DequantizeLinear", "QuantizeLinear", "RandomNormal", "RandomUniform", "Loop", "Scan", "If"))
"""Operators that are not computed ahead: weights stay int8 behind their DequantizeLinear."""
_MAX_ELEMENTS = 1 << 26
_MAX_ROUNDS = 64
_FLOAT32 = 1
_WITH_WEIGHTS = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul", "FusedConv", "FusedMatMul", "Einsum"))
_OTHER_FLOATS = {"float16": 10, "float64": 11}
"""Float types that become float32, with ONNX's numbers of them."""


def read_fixed(
    path: Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, float] | None = None,
) -> OnnxGraph:
    """Read a model and fix it: see `fix`.

    Raises:
        OnnxError: The file is no model, or an input's shape stays open.
    """
    graph = load_graph(path)
    fix(graph, shapes or {}, values or {})
    return graph


def fixed_model(model: Any, name: str) -> OnnxGraph:
    """Return a ModelProto as a fixed graph."""
    graph = graph_of(model, name)
    fix(graph, {}, {})
    return graph


def fix_float(graph: OnnxGraph, shapes: Mapping[str, Sequence[int]], values: Mapping[str, float]) -> bool:
    """Fix a graph in place, and take one that others quantised back to floats; return whether it was quantised.

    Raises OnnxError as `fix` and `unquantise` do.
    """
    fix(graph, shapes, values)
    if not is_quantised(graph):
        return False
    unquantise(graph)
    fix(graph, {}, {})
    return True


def fix(graph: OnnxGraph, shapes: Mapping[str, Sequence[int]], values: Mapping[str, float]) -> None:
    """Fix a graph's input shapes in place, compute its constant parts, inline its If branches.

    Args:
        graph: The graph.
        shapes: Shapes by input name; a batch that is left open is 1.
        values: Inputs that become constants, by name.

    Raises:
        OnnxError: No such input, or a dimension stays open.
    """
    _make_float32(graph)
    split_fused(graph)
    _fix_values(graph, values)
    _fix_shapes(graph, shapes)
    for _ in range(_MAX_ROUNDS):
        infer_shapes(graph)
        if write_ceilings_as_pads(graph):
            _forget_inferred(graph)
            continue
        changed = _fold(graph)
        changed = _inline_branches(graph) or changed
        changed = _drop_identities(graph) or changed
        if not changed:
            break
    graph.remove_unused()


def _make_float32(graph: OnnxGraph) -> None:
    """Make a model with float16 constants or float64 weights a float32 one, its inputs too."""
    read = {name for node in graph.nodes if node.op in _WITH_WEIGHTS for name in node.inputs[1:2]}
    kinds = {str(value.dtype) for name, value in graph.constants.items()
             if name in read or value.dtype == np.float16}  # fmt: skip
    for other, number in _OTHER_FLOATS.items():
        if other in kinds:
            _replace_float(graph, other, number)


def _replace_float(graph: OnnxGraph, other: str, number: int) -> None:
    """Let a graph hold float32 in place of another float, whose number in ONNX is given; inferred types go."""
    for name, value in graph.constants.items():
        if str(value.dtype) == other:
            graph.constants[name] = value.astype(np.float32)
    for node in graph.nodes:
        if node.op == "Cast" and node.attributes.get("to") == number:
            node.attributes["to"] = _FLOAT32
    declared = {name: graph.dtypes[name] for name in graph.inputs if name in graph.dtypes}
    graph.dtypes = {name: "float32" if kind == other else kind for name, kind in declared.items()}
    _forget_inferred(graph)


def _fix_values(graph: OnnxGraph, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        if name not in graph.inputs:
            raise OnnxError(f"{graph.name} has no input {name}; its inputs are {', '.join(graph.inputs)}")
        rank = len(graph.shapes.get(name, ()))
        graph.constants[name] = np.full((1,) * rank, value, graph.dtypes.get(name, "float32"))
        graph.inputs.remove(name)


def _fix_shapes(graph: OnnxGraph, shapes: Mapping[str, Sequence[int]]) -> None:
    for name, given in shapes.items():
        _take_shape(graph, name, given)
    for name in graph.inputs:
        shape = graph.shapes.get(name)
        if shape and shape[0] is None and None not in shape[1:]:
            graph.shapes[name] = (1, *shape[1:])
            _forget_inferred(graph)
        _require_closed(graph, name)


def _take_shape(graph: OnnxGraph, name: str, given: Sequence[int]) -> None:
    """Give an input a shape. Raises OnnxError if there is no such input, or its known sizes are others."""
    if name not in graph.inputs:
        raise OnnxError(f"{graph.name} has no input {name}; its inputs are {', '.join(graph.inputs)}")
    declared = graph.shapes.get(name)
    fits = declared is None or (
        len(declared) == len(given)
        and all(size is None or size == wanted for size, wanted in zip(declared, given, strict=True))
    )
    if not fits or min(given, default=1) < 1:
        raise OnnxError(
            f"input {name} is {_text(declared)} in {graph.name}, not {_text(given)}: give a shape that fits"
        )
    graph.shapes[name] = tuple(given)
    _forget_inferred(graph)


def _require_closed(graph: OnnxGraph, name: str) -> None:
    """Raise OnnxError if a size of an input is open."""
    shape = graph.shapes.get(name)
    if shape is None or None in shape:
        sizes = ["?" if size is None else str(size) for size in shape or (None,)]
        sizes[0] = "1" if sizes[0] == "?" and len(sizes) > 1 else sizes[0]
        raise OnnxError(
            f"input {name} of {graph.name} has the open shape {_text(shape)}; "
            f"give it with --shape {name}={','.join(sizes)} and your sizes for ?"
        )


def _text(shape: Sequence[int | None] | None) -> str:
    return "of unknown rank" if shape is None else "x".join("?" if size is None else str(size) for size in shape)


def _forget_inferred(graph: OnnxGraph) -> None:
    """Drop the shapes that the file noted for another input size."""
    graph.shapes = {name: shape for name, shape in graph.shapes.items() if name in graph.inputs}


def _fold(graph: OnnxGraph) -> bool:
    """Compute the nodes whose inputs are all known, and shapes of known shapes."""
    remaining, changed = [], False
    for node in graph.nodes:
        results = _known_outputs(graph, node)
        if results is None:
            remaining.append(node)
            continue
        changed = True
        for name, value in zip(node.outputs, results, strict=False):
            if name:
                graph.constants[name] = value
    graph.nodes = remaining
    if changed:
        _separate_outputs(graph)
    return changed


def _known_outputs(graph: OnnxGraph, node: OnnxNode) -> list[NDArray[Any]] | None:
    """Return a node's results if they are known ahead, and not too large."""
    if node.domain or node.op in _KEPT:
        return None
    if node.op in ("Shape", "Size"):
        return _known_sizes(graph, node)
    if not _is_of_constants(graph, node) or node.op not in operators.OPERATORS or _is_large(graph, node):
        return None
    inputs = [graph.constants[name] if name else None for name in node.inputs]
    try:
        return operators.run(node.op, inputs, node.attributes)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise OnnxError(f"node {node.label} cannot be computed from its constants: {error}") from error


def _is_of_constants(graph: OnnxGraph, node: OnnxNode) -> bool:
    return all(not name or name in graph.constants for name in node.inputs)


def _is_large(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether a node's first result is declared too large to be kept as a constant."""
    declared = graph.shapes.get(node.outputs[0])
    return declared is not None and math.prod(size or 1 for size in declared) > _MAX_ELEMENTS


def _known_sizes(graph: OnnxGraph, node: OnnxNode) -> list[NDArray[Any]] | None:
    """Return the result of a Shape or Size if its input's shape is known."""
    name = node.inputs[0]
    if name not in graph.constants and None in graph.shapes.get(name, (None,)):
        return None
    placeholder = np.broadcast_to(np.zeros((), np.int8), graph.shape(name))
    return operators.run(node.op, [placeholder], node.attributes)


def _separate_outputs(graph: OnnxGraph) -> None:
    """Keep constant outputs of the graph made by a node, as ONNX asks."""
    made = set(graph.producers()) | set(graph.inputs)
    for name in graph.outputs:
        if name in graph.constants and name not in made:
            copy = graph.unique(f"{name}_value")
            graph.constants[copy] = graph.constants.pop(name)
            graph.replace(name, copy)
            graph.outputs = [name if other == copy else other for other in graph.outputs]
            graph.nodes.append(OnnxNode(f"{name}_constant", "Identity", [copy], [name], {}, CONSTANT_DOMAIN))


def _inline_branches(graph: OnnxGraph) -> bool:
    """Put the branch of each If whose condition is constant in its place."""
    nodes, changed = [], False
    for node in graph.nodes:
        if node.op != "If" or node.inputs[0] not in graph.constants:
            nodes.append(node)
            continue
        changed = True
        holds = bool(graph.constants[node.inputs[0]].ravel()[0])
        nodes += _branch(graph, node, node.attributes["then_branch" if holds else "else_branch"])
    graph.nodes = nodes
    return changed


def _branch(graph: OnnxGraph, node: OnnxNode, proto: Any) -> list[OnnxNode]:
    """Return a branch's nodes, its own tensors renamed; its constants go into the graph."""
    inner = parse_graph(proto, node.name, graph.opset)
    if graph.opset == 17:
        from hilt.network.onnx_opsets import modernise

        modernise(inner, graph.opset)
    own = set(inner.constants) | {name for part in inner.nodes for name in part.outputs if name}
    names = {name: f"{node.name}/{name}" for name in own}
    graph.constants.update({names[name]: value for name, value in inner.constants.items()})
    for part in inner.nodes:
        part.name = f"{node.name}/{part.name}"
        part.inputs = [names.get(name, name) for name in part.inputs]
        part.outputs = [names.get(name, name) for name in part.outputs]
        for subgraph in part.subgraphs():
            rename_captured(subgraph, names)
    ends = [
        OnnxNode(f"{node.name}/end{place}", "Identity", [names.get(result, result)], [name])
        for place, (result, name) in enumerate(zip(inner.outputs, node.outputs, strict=True))
    ]
    return [*inner.nodes, *ends]


def _drop_identities(graph: OnnxGraph) -> bool:
    """Remove the nodes that change nothing."""
    changed = False
    for node in list(graph.nodes):
        if not _is_identity(graph, node):
            continue
        source, result = node.inputs[0], node.outputs[0]
        if result not in graph.outputs:
            graph.replace(result, source)
        elif source in graph.producers() and source not in graph.outputs:
            maker = graph.producers()[source]
            maker.outputs = [result if name == source else name for name in maker.outputs]
            graph.nodes.remove(node)
            graph.replace(source, result)
            changed = True
            continue
        else:
            continue
        graph.nodes.remove(node)
        changed = True
    return changed


def _is_identity(graph: OnnxGraph, node: OnnxNode) -> bool:
    if node.domain:
        return False
    if node.op in ("Identity", "Dropout"):
        return len(node.outputs) < 2 or not graph.reads(node.outputs[1])
    if node.op in ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand"):
        return _keeps_shape(graph, node)
    if node.op == "Slice":  # of a whole axis; a step of -1 turns it over
        return _keeps_shape(graph, node) and _steps_forwards(graph, node)
    if node.op == "Cast":
        kind = graph.dtypes.get(node.inputs[0])
        return kind is not None and kind == graph.dtypes.get(node.outputs[0])
    return node.op == "Concat" and len(node.inputs) == 1


def _keeps_shape(graph: OnnxGraph, node: OnnxNode) -> bool:
    source = graph.shapes.get(node.inputs[0]) if node.inputs else None
    return source is not None and None not in source and source == graph.shapes.get(node.outputs[0])


def _steps_forwards(graph: OnnxGraph, node: OnnxNode) -> bool:
    steps = node.inputs[4] if len(node.inputs) > 4 else ""
    return not steps or (steps in graph.constants and bool(np.all(graph.constants[steps] > 0)))
