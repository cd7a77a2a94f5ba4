"""The cost of a node besides its own time: its tensors packed, folded and unpacked, and one more start of VTA."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hilt.network.core_speed import StepWork, node_work, pack_work, packed_work, unpack_work
from hilt.network.graph import Graph, Node
from hilt.network.layer_forms import TiledLayer, VtaLayer
from hilt.network.packed_layout import PackedLayout
from hilt.network.packed_steps import OPERATORS
from hilt.network.processor import ProcessorSpeed

_TAKE_PACKED = OPERATORS | {"conv2d", "dense", "reshape"}
"""Operators that may run on VTA, or on its buffers."""


def crossing_seconds(
    graph: Graph,
    node: Node,
    layer: VtaLayer | TiledLayer,
    packed: set[str],
    written: set[str],
    speed: ProcessorSpeed,
    layout: PackedLayout,
) -> tuple[float, float]:
    """Return the seconds that a node costs more on VTA, and more on the processor.

    `packed` are the tensors that are in VTA's layout alone, `written` those that are in both. VTA is taken to read what
    the node makes, if anything can that reads it.
    """
    tensors = [graph.tensors[name] for name in dict.fromkeys(node.inputs) if name in graph.tensors]
    if isinstance(layer, VtaLayer) and layer.fold is not None:
        on_vta = speed.seconds(fold_work(layer, layout))
    else:
        plain = [each for each in tensors if each.name not in packed | written]
        on_vta = sum(speed.seconds(layout_work(each.shape, layout)) for each in plain)
    beside = sum(speed.seconds(plain_work(each.shape, layout)) for each in tensors if each.name in packed)
    output = graph.tensors[node.outputs[0]]
    if _is_read_plain(graph, output.name):
        on_vta += speed.seconds(plain_work(output.shape, layout))
    else:
        beside += speed.seconds(layout_work(output.shape, layout)) + speed.start_seconds
    return on_vta, beside


def packed_seconds(
    graph: Graph, node: Node, there: set[str], speed: ProcessorSpeed, layout: PackedLayout
) -> tuple[float, float]:
    """Return the processor's seconds for a node on packed tensors, and those of crossings and a start of VTA.

    `there` are the tensors that are in VTA's layout.
    """
    tensors = [graph.tensors[name] for name in dict.fromkeys(node.inputs) if name in graph.tensors]
    output = graph.tensors[node.outputs[0]]
    made = layout.bytes(output.shape)
    moved = made + sum(layout.bytes(each.shape) for each in tensors)
    crossings = sum(speed.seconds(layout_work(each.shape, layout)) for each in tensors if each.name not in there)
    if _is_read_plain(graph, output.name):
        crossings += speed.seconds(plain_work(output.shape, layout))
    else:
        crossings += speed.start_seconds
    return speed.seconds(packed_work(node_work(graph, node), made, moved)), crossings


def _is_read_plain(graph: Graph, name: str) -> bool:
    """Return whether a tensor is an output of the network, or none of its readers takes it in VTA's layout."""
    return name in graph.outputs or not any(name in node.inputs and node.op in _TAKE_PACKED for node in graph.nodes)


def layout_work(shape: Sequence[int], layout: PackedLayout) -> StepWork:
    """Return the work of packing a tensor."""
    return pack_work(shape, layout.bytes(shape))


def plain_work(shape: Sequence[int], layout: PackedLayout) -> StepWork:
    """Return the work of unpacking a tensor."""
    return unpack_work(shape, layout.bytes(shape))


def fold_work(layer: VtaLayer, layout: PackedLayout) -> StepWork:
    """Return the work of writing a folded layer's data."""
    shape, fold = layer.data_shape, layer.fold
    copied = math.prod(shape) // fold.kernel * fold.stride if fold is not None and fold.rows is not None else 0
    return pack_work(shape, layout.bytes(shape), fold=True, copied=copied)
