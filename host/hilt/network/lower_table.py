"""The instructions that write the table on the way to the store, and the copy of a tensor by way of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilt.network.tile_writer import DATA, TileWriter
from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.vta.accelerator import TABLE_BYTES, Accelerator
from hilt.vta.isa import MemoryType, Opcode

_SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Elements of a tile."""


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


@dataclass(frozen=True)
class Copying:
    """A copy of so many consecutive elements."""

    elements: int

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves."""
        return self.elements


def copy_knobs(copying: Copying) -> list[dict[str, int]]:
    """Return the schedules of a copy: elements of a tile."""
    return [{"elements": size} for size in sorted({min(size, copying.elements) for size in _SIZES})]


class CopyWriter(TileWriter):
    """Writes a copy by an identity GEMM, tile by tile. Raises Rejected if a tile does not fit the accelerator."""

    def __init__(self, copying: Copying, elements: int, accelerator: Accelerator) -> None:
        super().__init__(accelerator)
        self._whole, self._size = copying.elements, elements
        self._tiles = -(-copying.elements // elements)
        parameters = accelerator.parameters
        taken = min(2, self._tiles) * elements
        if taken > min(parameters.inp_depth, parameters.acc_depth):
            raise Rejected("acc_overflow", f"a tile of {elements} takes {taken} input elements and accumulators")

    def write_micro_ops(self) -> None:
        self.uops = [(place * self._size, place * self._size) for place in range(min(2, self._tiles))]

    def write_tiles(self) -> None:
        for tile in range(self._tiles):
            first, uop = tile * self._size, tile % 2
            count = min(self._size, self._whole - first)
            self.load(DATA, uop * self._size, first, count)
            self.clear(uop, count)
            self.compute_with(Opcode.GEMM, uop, uop + 1, iter_in=count, dst_factor_in=1, src_factor_in=1)
            self.store(uop * self._size, first, count)
