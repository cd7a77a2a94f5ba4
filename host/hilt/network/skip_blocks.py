"""Residuals that a Pad gives more blocks of channels, of zeros: layers read the blocks in front of them alone.

VTA's sums begin with the products of the residual (`hilt.schedule.residual`), and zeros add nothing. The residual is
the tensor that is padded, if its channels fill whole blocks; else it is that tensor padded to the end of its last
block, which moves nothing as a rule (`hilt.network.aliases`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hilt.network.graph import Graph, Node, without_unread
from hilt.network.graph_writer import GraphWriter
from hilt.network.packed_steps import adds_channels
from hilt.vta.layout import blocks


def with_given_blocks(graph: Graph, block: int, apart: Collection[str] = ()) -> Graph:
    """Return a graph with the same outputs whose convolutions read of padded residuals the blocks that are given.

    Args:
        graph: The integer graph.
        block: The channels of a block in VTA's memory.
        apart: Convolutions that keep their Pad.
    """
    makers, writer = graph.producer(), GraphWriter(graph)
    whole: dict[str, str] = {}
    for node in graph.nodes:
        residual = residual_of(node)
        pad = makers.get(residual)
        if pad is not None and node.name not in apart and _adds_blocks(graph, pad, block):
            given = pad.inputs[0]
            if given not in whole:
                whole[given] = _whole_blocks(writer, pad, block)
            node = replace(node, inputs=(*node.inputs[:3], whole[given]), source=(*pad.source, *node.source))
        writer.nodes.append(node)
    if not whole:
        return graph
    return without_unread(replace(graph, nodes=tuple(writer.nodes), tensors=writer.tensors))


def lacks_blocks(graph: Graph, node: Node) -> bool:
    """Return whether a convolution's residual has fewer channels than its output: VTA alone runs it."""
    residual = residual_of(node)
    return residual in graph.tensors and graph.tensors[residual].shape[1] < graph.tensors[node.outputs[0]].shape[1]


def residual_of(node: Node) -> str:
    """Return the residual of a conv2d or dense node; "" if it has none, and of others."""
    return node.inputs[3] if node.op in ("conv2d", "dense") and len(node.inputs) > 3 else ""


def _adds_blocks(graph: Graph, pad: Node, block: int) -> bool:
    """Return whether a node adds channels of zeros behind the last block of a tensor, and nothing else."""
    if pad.op != "pad" or pad.inputs[0] not in graph.tensors or not adds_channels(graph, pad):
        return False
    given, made = (graph.tensors[name].shape[1] for name in (pad.inputs[0], pad.outputs[0]))
    return 0 < blocks(given, block) < blocks(made, block)


def _whole_blocks(writer: GraphWriter, pad: Node, block: int) -> str:
    """Return the tensor in front of a Pad, or one that has it and zeros up to the end of its last block."""
    given = pad.inputs[0]
    channels = writer.tensors[given].shape[1]
    more = -channels % block
    if not more:
        return given
    output = writer.tensor(f"{given}.blocks", given, channels + more)
    attributes = {**pad.attributes, "pads": [0, 0, 0, 0, 0, more, 0, 0]}
    writer.nodes.append(Node(writer.name(f"{pad.name}.blocks"), "pad", (given,), (output,), attributes, pad.source))
    return output
