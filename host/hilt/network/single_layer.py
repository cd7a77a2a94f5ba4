"""One layer of a network as a network of its own: its fused form is measured alone."""

from __future__ import annotations

from dataclasses import replace

from hilt.network.graph import Graph, Node, check
from hilt.network.layers import VtaLayer
from hilt.network.partition import Placement, shape_of
from hilt.schedule import Conv2d

Form = tuple[Conv2d, int, int]
"""A layer's shape, its residual's shift (-1: no residual), and how many of its channel blocks shift differently."""


def form_of(placement: Placement) -> Form | None:
    """Return the form in which VTA runs a node; None for a pooling, and for a node that does not run there."""
    layer = placement.layer
    if not isinstance(layer, VtaLayer) or layer.fold is not None:
        return None
    return shape_of(layer.workload), layer.residual_shift if layer.residual else -1, len(layer.shifts)


def single_layer(graph: Graph, node: Node) -> Graph:
    """Return a graph of this node alone; the tensors that it reads are the inputs."""
    data = tuple(dict.fromkeys(name for name in node.inputs if name in graph.tensors))
    made = replace(
        graph,
        inputs=data,
        outputs=node.outputs,
        nodes=(node,),
        tensors={name: graph.tensors[name] for name in (*data, *node.outputs)},
        constants={name: graph.constants[name] for name in node.inputs if name in graph.constants},
    )
    check(made)
    return made
