"""Sequences between one-dimensional windows as images of height 1: (N, C, L) becomes (N, C, 1, L).

Quantisation, import and VTA know images. The operators between such windows follow them: element-wise ones, norms,
joins, cuts, pads, other sizes, reductions. A Reshape stands where another operator makes or reads a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, infer_shapes, new_constant, reduced_axes, reshape_node

_WINDOWS = frozenset(("Conv", "ConvTranspose", "MaxPool", "GlobalMaxPool", "AveragePool", "GlobalAveragePool"))
_NORMS = frozenset(("BatchNormalization", "InstanceNormalization", "GroupNormalization"))
_REDUCTIONS = frozenset(("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceSumSquare", "ReduceL2"))
_AXES_AS_INPUT = 18
"""The operator set from which on reductions have their axes as an input; ReduceSum has it earlier, and takes both."""
_SIDE = 2
"""The place of the axis of size 1."""


def lift_sequences(graph: OnnxGraph) -> None:
    """Rewrite a fixed float graph in place."""
    followers = [node for node in graph.nodes if not node.domain and _follows(graph, node)]
    lifted = _connected(graph, followers)
    if not lifted:
        return
    follows = {id(node) for node in followers if lifted.intersection(_sequences(graph, node))}
    images: dict[str, str] = {}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        if id(node) not in follows:
            nodes.append(node)
            continue
        for name in node.inputs:
            if name in lifted and name not in images:
                images[name] = graph.unique(f"{name}.image")
                nodes.append(reshape_node(graph, f"{name}.rows", name, images[name], _image(graph.shape(name))))
        nodes += _lifted(graph, node, images)
    graph.nodes = nodes
    graph.remove_unused()
    infer_shapes(graph)


def _connected(graph: OnnxGraph, followers: Sequence[OnnxNode]) -> set[str]:
    """Return the sequences that one-dimensional windows read and make, and those that others join to them."""
    found = {name for node in followers if node.op in _WINDOWS for name in _sequences(graph, node)}
    before = 0
    while before < len(found):
        before = len(found)
        for node in (*followers, *reversed(followers)):
            names = _sequences(graph, node)
            if found.intersection(names):
                found.update(names)
    return found


def _sequences(graph: OnnxGraph, node: OnnxNode) -> list[str]:
    return [name for name in (*node.inputs, *node.outputs) if _is_sequence(graph, name)]


def _is_sequence(graph: OnnxGraph, name: str) -> bool:
    """Tell whether a tensor is computed, of floats, of rank three, and of a known shape."""
    if not name or name in graph.constants or graph.dtypes.get(name, "float32") != "float32":
        return False
    shape = graph.shapes.get(name) or ()
    return len(shape) == 3 and None not in shape


def _follows(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether an operator on sequences can be one on images."""
    if node.op not in _FORMS:
        return False
    return any(_is_sequence(graph, name) for name in node.inputs) and _FORMS[node.op][0](graph, node)


def _makes_one(graph: OnnxGraph, node: OnnxNode) -> bool:
    return len(node.outputs) == 1


def _is_window(graph: OnnxGraph, node: OnnxNode) -> bool:
    has_weights = node.op in ("Conv", "ConvTranspose")
    return len(node.outputs) == 1 and (not has_weights or node.inputs[1] in graph.constants)


def _has_operands(graph: OnnxGraph, node: OnnxNode) -> bool:
    operands = (name in graph.constants or _is_sequence(graph, name) for name in node.inputs)
    return _is_sequence(graph, node.outputs[0]) and all(operands)


def _joins_sequences(graph: OnnxGraph, node: OnnxNode) -> bool:
    return all(_is_sequence(graph, name) for name in node.inputs)


def _cuts(graph: OnnxGraph, node: OnnxNode) -> bool:
    return True


def _has_axes(graph: OnnxGraph, node: OnnxNode) -> bool:
    return bool(reduced_axes(graph, node, 3))


def _has_all_pads(graph: OnnxGraph, node: OnnxNode) -> bool:
    return _is_constant(graph, node) and graph.constants[node.inputs[1]].size == 6 and not any(node.inputs[3:])


def _names_axes(graph: OnnxGraph, node: OnnxNode) -> bool:
    return _is_constant(graph, node) and len(node.inputs) > 3 and bool(node.inputs[3])


def _has_all_sizes(graph: OnnxGraph, node: OnnxNode) -> bool:
    return _is_constant(graph, node) and len(node.inputs) > 2 and not node.inputs[1] and "axes" not in node.attributes


def _is_constant(graph: OnnxGraph, node: OnnxNode) -> bool:
    """Tell whether an operator has operands besides its data, and all of them are constants."""
    return len(node.inputs) > 1 and all(name in graph.constants for name in node.inputs[1:] if name)


def _image(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:_SIDE], 1, *shape[_SIDE:])


def _axis(axis: int) -> int:
    """Return an axis of a sequence as one of an image."""
    return axis % 3 + (axis % 3 == _SIDE)


def _lifted(graph: OnnxGraph, node: OnnxNode, images: dict[str, str]) -> list[OnnxNode]:
    """Return the operator on images, and a Reshape of each sequence that it makes for others to read."""
    lifted = OnnxNode(node.name, node.op, list(node.inputs), list(node.outputs), dict(node.attributes))
    _FORMS[node.op][1](graph, lifted)
    lifted.inputs = [images.get(name, name) for name in lifted.inputs]
    back = []
    for place, name in enumerate(node.outputs):
        if _is_sequence(graph, name):
            images[name] = lifted.outputs[place] = graph.unique(f"{name}.image")
            graph.shapes[images[name]], graph.dtypes[images[name]] = _image(graph.shape(name)), "float32"
            back.append(reshape_node(graph, f"{name}.back", images[name], name, graph.shape(name)))
    return [lifted, *back]


def _window(graph: OnnxGraph, node: OnnxNode) -> None:
    if node.op in ("Conv", "ConvTranspose"):
        node.inputs[1] = new_constant(graph, f"{node.name}.weight", graph.constants[node.inputs[1]][:, :, None, :])
    for key in ("kernel_shape", "strides", "dilations", "output_shape", "output_padding"):
        if key in node.attributes:
            node.attributes[key] = [0 if key == "output_padding" else 1, node.attributes[key][-1]]
    if "pads" in node.attributes:
        node.attributes["pads"] = [0, node.attributes["pads"][0], 0, node.attributes["pads"][1]]


def _operands(graph: OnnxGraph, node: OnnxNode) -> None:
    """Give constants that vary along channels or further out the axis of size 1."""
    for place, name in enumerate(node.inputs):
        value = graph.constants.get(name)
        if value is not None and value.ndim > 1:
            node.inputs[place] = new_constant(graph, f"{name}.rows", np.expand_dims(value, value.ndim - 1))


def _along(graph: OnnxGraph, node: OnnxNode) -> None:
    node.attributes["axis"] = _axis(node.attributes.get("axis", 0))


def _reduction(graph: OnnxGraph, node: OnnxNode) -> None:
    """Reduce the axis of size 1 too where the length is reduced, and where it would be left."""
    axes = [_axis(axis) for axis in reduced_axes(graph, node, 3) or ()]
    if 3 in axes or not node.attributes.get("keepdims", 1):
        axes = sorted({*axes, _SIDE})
    by_input = len(node.inputs) > 1 or graph.opset >= _AXES_AS_INPUT
    node.inputs = node.inputs[:1]
    node.attributes.pop("axes", None)
    if by_input:
        node.inputs.append(_whole(graph, f"{node.name}.axes", axes))
    else:
        node.attributes["axes"] = axes


def _pad(graph: OnnxGraph, node: OnnxNode) -> None:
    pads = graph.constants[node.inputs[1]].reshape(2, 3)
    node.inputs[1] = _whole(graph, f"{node.name}.sides", np.insert(pads, _SIDE, 0, axis=1).reshape(-1))


def _resize(graph: OnnxGraph, node: OnnxNode) -> None:
    for place in range(2, len(node.inputs)):
        if name := node.inputs[place]:
            node.inputs[place] = new_constant(graph, f"{name}.rows", np.insert(graph.constants[name], _SIDE, 1))


def _slice(graph: OnnxGraph, node: OnnxNode) -> None:
    axes = graph.constants[node.inputs[3]].reshape(-1)  # of the type that the starts have
    lifted = np.array([_axis(int(axis)) for axis in axes], axes.dtype)
    node.inputs[3] = new_constant(graph, f"{node.name}.axes", lifted)


def _whole(graph: OnnxGraph, stem: str, values: Sequence[int] | NDArray[Any]) -> str:
    return new_constant(graph, stem, np.asarray(values, np.int64))


def _as_it_is(graph: OnnxGraph, node: OnnxNode) -> None:
    pass


_FORMS: dict[str, tuple[Callable[[OnnxGraph, OnnxNode], bool], Callable[[OnnxGraph, OnnxNode], None]]] = {
    **dict.fromkeys(UNARY | _NORMS, (_makes_one, _as_it_is)),
    **dict.fromkeys(BINARY, (_has_operands, _operands)),
    **dict.fromkeys(_WINDOWS, (_is_window, _window)),
    **dict.fromkeys(_REDUCTIONS, (_has_axes, _reduction)),
    "Concat": (_joins_sequences, _along),
    "Split": (_cuts, _along),
    "Slice": (_names_axes, _slice),
    "Pad": (_has_all_pads, _pad),
    "Resize": (_has_all_sizes, _resize),
}
"""The operators that follow: whether a node can, and its change."""
