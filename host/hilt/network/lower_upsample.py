"""Nearest upsampling on VTA: an identity GEMM writes each input element to all its places in the output.

With factors of one it is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from hilt.network.tile_writer import DATA, FIELD, TileWriter
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import Opcode

_SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Output elements of a tile, about."""


@dataclass(frozen=True)
class Upsampling:
    """An upsampling of packed tensors: each element becomes `factors` (rows, columns) elements.

    `planes` is blocks of images times blocks of channels; `size` is the input's height and width.
    """

    planes: int
    size: tuple[int, int]
    factors: tuple[int, int]

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: one for each output element."""
        return self.planes * self.size[0] * self.size[1] * self.factors[0] * self.factors[1]


def upsample_knobs(work: Upsampling) -> list[dict[str, int]]:
    """Return the schedules of an upsampling: input rows of a tile, of all planes one behind another."""
    row = work.size[1] * work.factors[0] * work.factors[1]
    rows = {min(max(size // row, 1), work.planes * work.size[0]) for size in _SIZES}
    return [{"rows": each} for each in sorted(rows)]


class UpsampleWriter(TileWriter):
    """Writes an upsampling whose tiles are some input rows: in memory, planes are rows one behind another.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    def __init__(self, work: Upsampling, rows: int, accelerator: Accelerator) -> None:
        super().__init__(accelerator)
        self._work, self._rows = work, rows
        self._all_rows = work.planes * work.size[0]
        self._places = min(2, -(-self._all_rows // rows))
        self._read = rows * work.size[1]
        self._made = self._read * work.factors[0] * work.factors[1]
        parameters = accelerator.parameters
        if self._places * self._read > parameters.inp_depth or self._places * self._made > parameters.acc_depth:
            text = f"a tile of {rows} rows takes {self._read} input elements and {self._made} accumulators"
            raise Rejected("acc_overflow", text)
        if self._made >= FIELD:
            raise Rejected("field_overflow", f"a tile of {rows} rows has more elements than an instruction counts")

    def write_micro_ops(self) -> None:
        """Write, for each place of a tile, the output places of its first input element."""
        high, wide = self._work.factors
        row = self._work.size[1] * wide
        for place in range(self._places):
            first = place * self._made
            self.uops += [(first + y * row + x, place * self._read) for y in range(high) for x in range(wide)]

    def write_tiles(self) -> None:
        """Add the load, the copies and the store of each tile."""
        (high, wide), width = self._work.factors, self._work.size[1]
        copies = high * wide
        for number, row in enumerate(range(0, self._all_rows, self._rows)):
            rows, place = min(self._rows, self._all_rows - row), number % self._places
            made = rows * width * copies
            self.load(DATA, place * self._read, row * width, rows * width)
            self.clear(place * copies, made)
            self.compute_with(
                Opcode.GEMM,
                place * copies,
                (place + 1) * copies,
                iter_out=rows,
                iter_in=width,
                dst_factor_out=high * width * wide,
                dst_factor_in=wide,
                src_factor_out=width,
                src_factor_in=1,
            )
            self.store(place * self._made, row * width * copies, made)
