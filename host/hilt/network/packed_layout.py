"""The shape of a tensor in VTA's memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hilt.network.bands import band_rows
from hilt.network.graph import Graph, Tensor
from hilt.vta.layout import blocks
from hilt.vta.parameters import VTAParameters


def packable(graph: Graph) -> list[Tensor]:
    """Return the tensors that VTA can read or make: int8 (N, C, H, W) or (M, K)."""
    return [each for each in graph.tensors.values() if each.dtype == "int8" and len(each.shape) in (2, 4)]


@dataclass(frozen=True)
class PackedLayout:
    """The blocks of an accelerator, and whether its batch lanes hold bands of one image; else they hold images."""

    parameters: VTAParameters
    bands: bool = False

    def shape(self, tensor: Sequence[int]) -> list[int]:
        """Return the packed shape (N/batch, C/block, H, W, batch, block) of a tensor (N, C, H, W) or (M, K).

        Of one image in bands, H counts the rows of a band.
        """
        images, channels, height, width = (*tensor, 1, 1)[:4]
        if self.bands:
            height = band_rows(height, self.parameters.batch)
        batch, block = self.parameters.batch, self.parameters.block
        return [blocks(images, batch), blocks(channels, block), height, width, batch, block]

    def bytes(self, tensor: Sequence[int]) -> int:
        """Return the bytes of a packed tensor."""
        return math.prod(self.shape(tensor))
