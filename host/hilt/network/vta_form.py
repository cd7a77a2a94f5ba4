"""The graph that VTA runs in place of a network's own, with the same outputs."""

from __future__ import annotations

from collections.abc import Collection

from hilt.network.channel_moves import with_unmoved_channels
from hilt.network.constant_borders import with_borders
from hilt.network.graph import Graph
from hilt.network.group_parts import with_groups_in_parts
from hilt.network.skip_blocks import with_given_blocks
from hilt.vta.parameters import VTAParameters


def in_vta_form(graph: Graph, parameters: VTAParameters, padded: Collection[str] = ()) -> Graph:
    """Return a graph whose convolutions read channels where they are made, borders included, in whole blocks.

    `padded`: convolutions whose border, and whose residual's channels of zeros, stay a Pad.
    """
    bordered = with_borders(with_unmoved_channels(graph, parameters.block), padded)
    return with_given_blocks(with_groups_in_parts(bordered, parameters), parameters.block, padded)
