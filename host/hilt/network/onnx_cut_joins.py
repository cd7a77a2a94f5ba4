"""Slices along the axis of a Concat, taken of its operands: the joined tensor is made in its last size at once.

A Slice of a Slice is one of both. Where channels are cut in whole blocks, VTA takes the Slice as an
address; that one stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from hilt.network.onnx_graph import OnnxGraph, OnnxNode, slice_node

_BLOCK = 16
"""Channels of a block, or a part of one: a Slice at a multiple may be an address."""


def cut_before_joining(graph: OnnxGraph) -> None:
    """Rewrite in place: a Slice that alone reads a Concat, along its axis, becomes Slices of the operands it cuts."""
    producers, consumers = graph.producers(), graph.consumers()
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        maker = producers.get(node.inputs[0]) if node.op == "Slice" and not node.domain else None
        alone = maker is not None and len(consumers[node.inputs[0]]) == 1 and node.inputs[0] not in graph.outputs
        nodes += (_cut(graph, node, maker) if maker is not None and alone else None) or [node]
    graph.nodes = nodes
    graph.remove_unused()


def cut_at_once(graph: OnnxGraph) -> None:
    """Rewrite in place: a Slice that alone reads a Slice becomes one that cuts the axes of both."""
    changed = True
    while changed:
        producers, consumers = graph.producers(), graph.consumers()
        changed = False
        for place, node in enumerate(graph.nodes):
            maker = producers.get(node.inputs[0]) if node.op == "Slice" and not node.domain else None
            alone = maker is not None and len(consumers[node.inputs[0]]) == 1 and node.inputs[0] not in graph.outputs
            both = _both(graph, node, maker) if maker is not None and alone else None
            if both is not None:
                graph.nodes[place], changed = both, True
                break
    graph.remove_unused()


def turn_before_joining(graph: OnnxGraph) -> None:
    """Rewrite in place: a Transpose that alone reads a Concat, and makes an output, is taken of each operand.

    A detection head joins floats of several scales and turns them; apart, bytes are turned in front of their look-up.
    """
    producers, consumers = graph.producers(), graph.consumers()
    nodes: list[OnnxNode] = []
    for node in graph.nodes:
        maker = producers.get(node.inputs[0]) if node.op == "Transpose" and not node.domain else None
        joins = maker is not None and maker.op == "Concat" and set(maker.inputs) <= set(producers)
        if maker is None or not joins or node.outputs[0] not in graph.outputs or len(consumers[node.inputs[0]]) > 1:
            nodes.append(node)
            continue
        shape = graph.shape(node.inputs[0])
        perm = [int(axis) for axis in node.attributes.get("perm", range(len(shape))[::-1])]
        turned = [graph.unique(f"{node.name}.{name}") for name in maker.inputs]
        for name, result in zip(maker.inputs, turned, strict=True):
            graph.shapes[result] = tuple(graph.shape(name)[axis] for axis in perm)
            graph.dtypes[result] = graph.dtypes.get(name, "float32")
            nodes.append(OnnxNode(result, "Transpose", [name], [result], {"perm": perm}))
        axis = perm.index(int(maker.attributes["axis"]) % len(shape))
        nodes.append(OnnxNode(node.name, "Concat", turned, list(node.outputs), {"axis": axis}))
    graph.nodes = nodes
    graph.remove_unused()


def _both(graph: OnnxGraph, node: OnnxNode, maker: OnnxNode) -> OnnxNode | None:
    """Return the Slice of two, one behind the other; None if they stay."""
    if maker.op != "Slice" or maker.domain:
        return None
    source = maker.inputs[0]
    first = _ranges(graph, maker, graph.shape(source))
    second = _ranges(graph, node, graph.shape(node.inputs[0]))
    if not first or not second or _is_address(first, graph.shape(source)):
        return None
    parts = dict(first)
    for axis, (start, end) in second.items():
        begin = first[axis][0] if axis in first else 0
        parts[axis] = begin + start, begin + end
    return slice_node(graph, node.name, source, node.outputs[0], parts)


def _is_address(ranges: Mapping[int, tuple[int, int]], shape: tuple[int, ...]) -> bool:
    """Tell whether whole blocks of channels alone are cut."""
    start, end = ranges.get(1, (1, 0))
    return set(ranges) == {1} and start % _BLOCK == 0 and (end % _BLOCK == 0 or end == shape[1])


def _cut(graph: OnnxGraph, node: OnnxNode, maker: OnnxNode) -> list[OnnxNode] | None:
    """Return Slices of the operands that the range cuts, and the Concat of the parts; None if the Slice stays."""
    if maker.op != "Concat" or maker.domain:
        return None
    shape = graph.shape(node.inputs[0])
    axis = int(maker.attributes["axis"]) % len(shape)
    ranges = _ranges(graph, node, shape)
    if set(ranges) != {axis}:
        return None
    if _is_address(ranges, shape):
        return None
    made, kept = _cut_operands(graph, node, maker, axis, ranges[axis])
    if len(kept) < 2:  # the Slice of one operand alone
        return [OnnxNode(node.name, "Slice", [*made[0].inputs], list(node.outputs))] if made else None
    return [*made, OnnxNode(node.name, "Concat", kept, list(node.outputs), {"axis": axis})]


def _cut_operands(
    graph: OnnxGraph, node: OnnxNode, maker: OnnxNode, axis: int, part: tuple[int, int]
) -> tuple[list[OnnxNode], list[str]]:
    """Return the Slices of operands that a range cuts, and the tensors that it leaves."""
    made: list[OnnxNode] = []
    kept: list[str] = []
    at = 0
    for place, name in enumerate(maker.inputs):
        size = graph.shape(name)[axis]
        first, last = max(part[0] - at, 0), min(part[1] - at, size)
        at += size
        if first >= last:
            continue
        if (first, last) != (0, size):
            made.append(_slice(graph, f"{node.name}.{place}", name, axis, (first, last)))
        kept.append(name if (first, last) == (0, size) else made[-1].outputs[0])
    return made, kept


def _ranges(graph: OnnxGraph, node: OnnxNode, shape: tuple[int, ...]) -> Mapping[int, tuple[int, int]]:
    """Return the ranges that a Slice in steps of one leaves of its axes; nothing if it is no such Slice."""
    given = [graph.constants[name].ravel().tolist() for name in node.inputs[1:] if name in graph.constants]
    if len(given) != len(node.inputs) - 1 or set(*given[3:]) - {1}:
        return {}
    axes = [axis % len(shape) for axis in (given[2] if len(given) > 2 else range(len(given[0])))]
    bounds = zip(axes, given[0], given[1], strict=True)
    parts = {axis: slice(start, end).indices(shape[axis])[:2] for axis, start, end in bounds}
    return {axis: part for axis, part in parts.items() if part != (0, shape[axis])}


def _slice(graph: OnnxGraph, stem: str, name: str, axis: int, part: tuple[int, int]) -> OnnxNode:
    return slice_node(graph, f"{stem}.cut", name, graph.unique(f"{stem}.cut"), {axis: part})
