"""The layers of one program: their links, and the tables that are written between them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hilt.network.layers import Tabled
from hilt.network.lower_table import table_bytes, table_code
from hilt.network.partition import Placement
from hilt.network.tile_writer import DATA
from hilt.schedule.chain import ChainLink, most_instructions
from hilt.schedule.residual import IDENTITY, identity_block
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import MAX_IMAGE_BYTES


@dataclass
class Linked:
    """The links of a program in order.

    The accelerator has one table: in front of a layer with another one than the last layer with any, a link writes it.
    """

    accelerator: Accelerator
    links: list[ChainLink] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    """The layers' placements. The link of a table has no placement."""
    constants: dict[str, NDArray[np.int8]] = field(default_factory=dict)
    """The tables and the steps that bring them, by buffer."""
    _ends: list[int] = field(default_factory=list)
    """The links up to each layer's own."""
    _held: str = ""
    """The buffer of the table that is written last."""

    def has_room(self, link: ChainLink, tabled: Tabled | None) -> bool:
        """Return whether a program may have this layer, and its table, besides those that it has."""
        most = MAX_IMAGE_BYTES // self.accelerator.instruction_bytes - 1  # FINISH
        more = [link, *self._table(tabled)]
        return not self.links or sum(most_instructions(each.code) for each in (*self.links, *more)) <= most

    def add(self, link: ChainLink, placement: Placement) -> None:
        """Add a layer, behind a link that writes its table if the table is another one now."""
        assert placement.layer is not None
        tabled = placement.layer.tabled
        for written in self._table(tabled):
            assert tabled is not None
            self.links.append(written)
            self._held = written.buffers[DATA]
            self.constants[self._held] = table_bytes(tabled.entries, self.accelerator)
            self.constants[written.buffers[IDENTITY]] = identity_block(0, self.accelerator)
        self.links.append(link)
        self.placements.append(placement)
        self._ends.append(len(self.links))

    def by_layer(self, lengths: Sequence[int]) -> list[int]:
        """Return the instructions of each layer, its table's included. `lengths`: of each link."""
        return [sum(lengths[begin:end]) for begin, end in zip([0, *self._ends], self._ends, strict=False)]

    def _table(self, tabled: Tabled | None) -> list[ChainLink]:
        """Return the link that writes a table; none if there is no table, or it is written."""
        if tabled is None:
            return []
        name = f"table {hashlib.sha256(tabled.entries.tobytes()).hexdigest()[:12]}"
        if name == self._held:
            return []
        return [ChainLink(table_code(self.accelerator), {DATA: name, IDENTITY: "identity of 1"})]
