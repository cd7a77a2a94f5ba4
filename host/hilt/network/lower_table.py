"""The instructions that write the table on the way to the store."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hilt.network.tile_writer import DATA, TileWriter
from hilt.schedule.code import Code
from hilt.vta.accelerator import TABLE_BYTES, Accelerator
from hilt.vta.isa import MemoryType, Opcode


def table_bytes(entries: NDArray[np.int8], accelerator: Accelerator) -> NDArray[np.int8]:
    """Return the elements that are written to the table: the entry of 0 first, of -1 last.

    Args:
        entries: int8 (256,), that of -128 first.
        accelerator: The accelerator; an element may be larger than the table.
    """
    elements = accelerator.table_elements * accelerator.parameters.out_element_bytes
    found = np.zeros(elements, dtype=np.int8)
    found[:TABLE_BYTES] = np.roll(entries, TABLE_BYTES // 2)
    return found


def table_code(accelerator: Accelerator) -> Code:
    """Return the code that writes the table from a buffer DATA, which holds `table_bytes`.

    It is a layer of its own in a chain, in front of that which uses the table.
    """
    return _TableWriter(accelerator).code()


class _TableWriter(TileWriter):
    """Writes the table: its bytes pass through the accumulators, since a STORE takes nothing else."""

    def write_micro_ops(self) -> None:
        self.uops = [(0, 0)]

    def write_tiles(self) -> None:
        elements = self.accelerator.table_elements
        self.clear(0, elements)  # before the load: so the micro-ops come with those of the layer before
        self.load(DATA, 0, 0, elements)
        self.compute_with(Opcode.GEMM, 0, 1, iter_in=elements, dst_factor_in=1, src_factor_in=1)
        self.add("", Opcode.STORE, memory_type=MemoryType.TABLE, y_size=1, x_size=elements, x_stride=elements)
