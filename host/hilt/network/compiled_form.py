"""The form of an integer graph that a board runs: the same outputs, fewer things to move."""

from __future__ import annotations

from collections.abc import Collection

from hilt.network.channel_moves import with_unmoved_channels
from hilt.network.constant_borders import with_borders
from hilt.network.graph import Graph
from hilt.network.joined_order import with_whole_blocks_first


def compiled_form(graph: Graph, block: int, apart: Collection[str] = ()) -> Graph:
    """Return the graph without moves of channels and Pads that VTA's layers take in.

    Args:
        graph: The integer graph.
        block: The channels of a block in VTA's memory.
        apart: Convolutions that keep their Pad.
    """
    unmoved = with_unmoved_channels(graph, block)
    return with_borders(unmoved if unmoved is graph else with_whole_blocks_first(unmoved), apart)
