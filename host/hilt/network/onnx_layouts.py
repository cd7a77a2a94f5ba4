"""Transposes from channels first to channels last, moved behind the operators that follow, until two meet and cancel.

Converters from TensorFlow leave them around each window. Moved away, a layer's operators follow it directly and fuse.
A convolution of sequences is one of images with a side of 1: where that side is dropped, the Transpose goes on as one
of sequences, (N, C, L) to (N, L, C), until the side comes back. No other Transpose of rank three is moved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilt.network.elementwise import BINARY, UNARY
from hilt.network.onnx_graph import OnnxGraph, OnnxNode, new_constant, reduced_axes, reshape_node

LAST = [0, 2, 3, 1]
"""Channels first to channels last: axis a of the result is axis LAST[a] of the source."""
FIRST = [0, 3, 1, 2]
_ROWS = [0, 2, 1]
"""The same of sequences, both ways."""
_LAST = {4: LAST, 3: _ROWS}
_FIRST = {4: FIRST, 3: _ROWS}
_ROWS_MARK = ".rows_last"
"""How the name of a Transpose of sequences ends that began as one of images."""


def cancel_layouts(graph: OnnxGraph) -> None:
    """Rewrite in place."""
    producers: dict[str, OnnxNode] = {}
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        for made in _rewritten(graph, node, producers) or [node]:
            nodes.append(made)
            producers.update((name, made) for name in made.outputs if name)
    graph.nodes = [_plain(graph, node) for node in nodes]
    for node in [node for node in nodes if node.op == "Identity" and not node.domain]:
        if node.outputs[0] not in graph.outputs:
            graph.replace(node.outputs[0], node.inputs[0])
    _fold_into_products(graph)
    graph.remove_unused()


def _rewritten(graph: OnnxGraph, node: OnnxNode, producers: dict[str, OnnxNode]) -> list[OnnxNode] | None:
    if node.domain or len(node.outputs) != 1 or node.subgraphs():
        return None
    if node.op == "Transpose":
        return _joined(graph, node, producers)
    sources = [_source(graph, name, producers) for name in node.inputs]
    if _joins_channels(graph, node, sources):
        return _joined_first(graph, node, sources)
    if not any(sources):
        return None
    if node.op in ("ReduceMax", "ReduceMean"):
        return _reduced(graph, node, sources[0])
    return _moved(graph, node, sources)


def _source(graph: OnnxGraph, name: str, producers: dict[str, OnnxNode]) -> str:
    """Return the tensor with channels first behind a tensor with channels last, empty if there is none."""
    maker = producers.get(name)
    if maker is None or maker.domain or maker.op != "Transpose":
        return ""
    perm = list(maker.attributes["perm"])
    return maker.inputs[0] if perm == LAST or (perm == _ROWS and maker.name.endswith(_ROWS_MARK)) else ""


def _side(graph: OnnxGraph, node: OnnxNode, source: str) -> list[OnnxNode] | None:
    """Return a Reshape with channels first that drops or adds an image's side of 1, and the Transpose behind it."""
    if not source:
        return None
    first, after = graph.shape(source), graph.shape(node.outputs[0])
    images, channels, *sides = first
    lengths = after[1:-1]
    if len(after) not in (3, 4) or len(after) == len(first) or (after[0], after[-1]) != (images, channels):
        return None
    if sorted((*sides, *[1] * (3 - len(sides)))) != sorted((*lengths, *[1] * (3 - len(lengths)))):
        return None
    result, shape = graph.unique(f"{node.name}.first"), (images, channels, *lengths)
    graph.shapes[result], graph.dtypes[result] = shape, graph.dtypes.get(node.outputs[0], "float32")
    name, perm = (f"{node.name}.last", LAST) if len(after) == 4 else (f"{node.name}{_ROWS_MARK}", _ROWS)
    return [
        reshape_node(graph, node.name, source, result, shape),
        OnnxNode(name, "Transpose", [result], list(node.outputs), {"perm": list(perm)}),
    ]


def _joined(graph: OnnxGraph, node: OnnxNode, producers: dict[str, OnnxNode]) -> list[OnnxNode] | None:
    """Join a Transpose with the one before it."""
    source, perm = node.inputs[0], list(node.attributes.get("perm", range(len(graph.shape(node.inputs[0])))[::-1]))
    maker = producers.get(source)
    if maker is not None and maker.op == "Transpose" and not maker.domain:
        source, perm = maker.inputs[0], [maker.attributes["perm"][axis] for axis in perm]
    if perm == sorted(perm):
        return [OnnxNode(node.name, "Identity", [source], list(node.outputs))]
    made = OnnxNode(node.name, "Transpose", [source], list(node.outputs), {"perm": perm})
    return [made if perm == LAST else _plain(graph, made)]


def _plain(graph: OnnxGraph, node: OnnxNode) -> OnnxNode:
    """Return a node, a Transpose that moves axes of size 1 only as a Reshape.

    One from channels first to last is none before all is moved: a gate's few numbers meet the image that they scale.
    """
    if node.op != "Transpose" or node.domain:
        return node
    shape, perm = graph.shape(node.inputs[0]), node.attributes["perm"]
    moved = [axis for axis in perm if shape[axis] != 1]
    if moved != sorted(moved):
        return node
    return reshape_node(graph, node.name, node.inputs[0], node.outputs[0], tuple(shape[axis] for axis in perm))


def _reduced(graph: OnnxGraph, node: OnnxNode, source: str) -> list[OnnxNode] | None:
    """Return the mean or maximum over height and width, or along a line, of the tensor with channels first."""
    rank = len(graph.shape(source)) if source else 0
    if not source or reduced_axes(graph, node, rank) != list(range(1, rank - 1)):
        return None
    sides = list(range(2, rank))
    inputs, attributes = [source], {**node.attributes, "axes": sides}
    if "axes" not in node.attributes:
        inputs.append(new_constant(graph, f"{node.name}.axes", np.array(sides, np.int64)))
        del attributes["axes"]
    if not node.attributes.get("keepdims", 1):
        return [OnnxNode(node.name, node.op, inputs, list(node.outputs), attributes)]
    result, ones = graph.unique(f"{node.outputs[0]}.first"), [1] * len(sides)
    graph.shapes[result], graph.dtypes[result] = (*graph.shape(source)[:2], *ones), "float32"
    name, perm = (f"{node.name}.last", LAST) if rank == 4 else (f"{node.name}{_ROWS_MARK}", _ROWS)
    return [
        OnnxNode(node.name, node.op, inputs, [result], attributes),
        OnnxNode(name, "Transpose", [result], list(node.outputs), {"perm": list(perm)}),
    ]


def _moved(graph: OnnxGraph, node: OnnxNode, sources: list[str]) -> list[OnnxNode] | None:
    """Return the operator on tensors with channels first, and the Transpose behind it; None if it cannot move."""
    if node.op == "Reshape":
        return _side(graph, node, sources[0])
    inputs = _moved_inputs(graph, node, sources)
    if inputs is None:
        return None
    shape = graph.shape(node.outputs[0])
    rank = len(shape)
    if {rank} != {len(graph.shape(source)) for source in sources if source}:
        return None
    attributes = dict(node.attributes)
    if node.op == "Concat":
        attributes["axis"] = _LAST[rank][attributes.get("axis", 0) % rank]
    result = graph.unique(f"{node.name}.first")
    graph.shapes[result] = tuple(shape[axis] for axis in _FIRST[rank])
    graph.dtypes[result] = graph.dtypes.get(node.outputs[0], "float32")
    return [
        OnnxNode(node.name, node.op, inputs, [result], attributes),
        OnnxNode(
            f"{node.name}{'.last' if rank == 4 else _ROWS_MARK}", "Transpose", [result], list(node.outputs),
            {"perm": list(_LAST[rank])},
        ),
    ]  # fmt: skip


def _joins_channels(graph: OnnxGraph, node: OnnxNode, sources: list[str]) -> bool:
    """Tell whether a Concat joins channels of images, and each operand that is not turned has one channel.

    One channel lies alike first and last. Where none is turned, a Transpose to channels first must follow.
    """
    if node.op != "Concat" or all(sources) or any(name in graph.constants for name in node.inputs):
        return False
    if len(graph.shape(node.inputs[0])) != 4 or node.attributes.get("axis", 0) % 4 != 3:
        return False
    channels = {graph.shape(name)[3] for name, source in zip(node.inputs, sources, strict=True) if not source}
    return channels == {1} and (any(sources) or _turned_later(graph, node.outputs[0]))


def _turned_later(graph: OnnxGraph, name: str) -> bool:
    """Tell whether a Transpose to channels first reads a tensor, or one that moves with it."""
    for reader in graph.nodes:
        if name not in reader.inputs or reader.domain:
            continue
        if reader.op == "Transpose" and list(reader.attributes.get("perm", ())) == FIRST:
            return True
        if reader.op in ("Slice", "Pad") and _turned_later(graph, reader.outputs[0]):
            return True
    return False


def _joined_first(graph: OnnxGraph, node: OnnxNode, sources: list[str]) -> list[OnnxNode] | None:
    """Return Reshapes of the images of one channel, the Concat of channels first, and the Transpose behind it."""
    made, firsts = [], []
    for place, (name, source) in enumerate(zip(node.inputs, sources, strict=True)):
        first = source
        if not source:
            images, *sides, channels = graph.shape(name)
            first = graph.unique(f"{node.name}.{place}.first")
            made.append(reshape_node(graph, f"{node.name}.{place}", name, first, (images, channels, *sides)))
        firsts.append(first)
    moved = _moved(graph, node, firsts)
    return None if moved is None else [*made, *moved]


def _moved_inputs(graph: OnnxGraph, node: OnnxNode, sources: list[str]) -> list[str] | None:
    """Return an operator's inputs with channels first; None if it cannot move."""
    if node.op in UNARY or node.op in BINARY or node.op in ("Identity", "Where"):
        return _turned_all(graph, node, sources)
    if node.op == "Concat":
        return sources if all(sources) else None
    if node.op == "Pad" and (len(node.inputs) < 4 or not node.inputs[3]):
        return _padded(graph, node, sources[0])
    return _sliced(graph, node, sources[0]) if node.op == "Slice" else None


def _turned_all(graph: OnnxGraph, node: OnnxNode, sources: list[str]) -> list[str] | None:
    """Return an element-wise operator's inputs with channels first; None if one is neither turned nor constant."""
    inputs = []
    rank = max(len(graph.shape(source)) for source in sources if source)
    for name, source in zip(node.inputs, sources, strict=True):
        constant = graph.constants.get(name)
        if source or not name:
            inputs.append(source)
        elif constant is None or constant.ndim > rank:
            return None
        elif constant.size == 1:
            inputs.append(name)
        else:
            full = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
            inputs.append(new_constant(graph, f"{name}.first", full.transpose(_FIRST[rank])))
    return inputs


def _padded(graph: OnnxGraph, node: OnnxNode, source: str) -> list[str] | None:
    pads = graph.constants.get(node.inputs[1])
    if pads is None or not source:
        return None
    rank = len(graph.shape(source))
    turned: NDArray[Any] = pads.reshape(2, rank)[:, _FIRST[rank]].reshape(-1)
    return [source, new_constant(graph, f"{node.name}.pads_first", turned), *node.inputs[2:]]


def _sliced(graph: OnnxGraph, node: OnnxNode, source: str) -> list[str] | None:
    if not source or len(node.inputs) < 3:
        return None
    starts = graph.constants.get(node.inputs[1])
    axes = graph.constants.get(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] else None
    if starts is None or (axes is None and len(node.inputs) > 3 and node.inputs[3]):
        return None
    given = np.arange(len(starts)) if axes is None else axes
    last = _LAST[len(graph.shape(source))]
    turned = np.array([last[int(axis) % len(last)] for axis in given], np.int64)
    return [source, *node.inputs[1:3], new_constant(graph, f"{node.name}.axes_first", turned), *node.inputs[4:]]


def _fold_into_products(graph: OnnxGraph) -> None:
    """Let a dense layer behind a flattened image with channels last read channels first: its columns change places."""
    producers, consumers = graph.producers(), graph.consumers()
    for node in graph.nodes:
        source = _flattened(graph, node, producers)
        readers = consumers.get(node.outputs[0], [])
        if not source or not readers or not all(_is_dense(graph, reader, node.outputs[0]) for reader in readers):
            continue
        _, channels, *sides = graph.shape(source)
        places = np.moveaxis(np.arange(math.prod(sides) * channels).reshape(*sides, channels), -1, 0).reshape(-1)
        node.inputs[0] = source
        for reader in readers:
            turned = np.ascontiguousarray(graph.constants[reader.inputs[1]][:, places])
            reader.inputs[1] = new_constant(graph, f"{reader.name}.columns", turned)


def _flattened(graph: OnnxGraph, node: OnnxNode, producers: dict[str, OnnxNode]) -> str:
    """Return the tensor with channels first of an image that a Reshape makes a row; "" if it does something else."""
    if node.op != "Reshape" or node.domain or node.outputs[0] in graph.outputs:
        return ""
    source, after = _source(graph, node.inputs[0], producers), graph.shape(node.outputs[0])
    return source if source and len(after) == 2 and after[0] == graph.shape(source)[0] else ""


def _is_dense(graph: OnnxGraph, node: OnnxNode, data: str) -> bool:
    return node.op == "Gemm" and node.inputs[0] == data and node.inputs[1] in graph.constants and bool(
        node.attributes.get("transB", 0)
    )  # fmt: skip
