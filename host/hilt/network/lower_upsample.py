"""Nearest upsampling and DepthToSpace on VTA: an identity GEMM writes each input element to its places in the output.

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

    `planes` is blocks of images times blocks of channels of the output; `size` is the input's height and width.
    `sources` are the input's planes for each of the output's: one, or for DepthToSpace one for each place among the
    factors. There are `planes` planes for a place, then those for the next.
    """

    planes: int
    size: tuple[int, int]
    factors: tuple[int, int]
    sources: int = 1

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: one for each output element."""
        return self.planes * self.size[0] * self.size[1] * self.factors[0] * self.factors[1]


def upsample_knobs(work: Upsampling) -> list[dict[str, int]]:
    """Return the schedules of an upsampling: input rows of a tile, of all planes one behind another, or of one."""
    row = work.size[1] * work.factors[0] * work.factors[1]
    most = work.size[0] * (1 if work.sources > 1 else work.planes)
    rows = {min(max(size // row, 1), most) for size in _SIZES}
    return [{"rows": each} for each in sorted(rows)]


class UpsampleWriter(TileWriter):
    """Writes an upsampling whose tiles are some input rows: in memory, planes are rows one behind another.

    Of several sources, a tile has these rows of each.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    def __init__(self, work: Upsampling, rows: int, accelerator: Accelerator) -> None:
        super().__init__(accelerator)
        self._work, self._rows = work, rows
        self._planes = work.planes if work.sources > 1 else 1
        self._all_rows = work.planes * work.size[0] // self._planes
        self._places = min(2, self._planes * -(-self._all_rows // rows))
        self._read = rows * work.size[1] * work.sources
        self._made = rows * work.size[1] * work.factors[0] * work.factors[1]
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
            first, step = place * self._made, self._rows * self._work.size[1] if self._work.sources > 1 else 0
            self.uops += [
                (first + y * row + x, place * self._read + (y * wide + x) * step)
                for y in range(high)
                for x in range(wide)
            ]

    def write_tiles(self) -> None:
        """Add the load, the copies and the store of each tile."""
        (high, wide), width = self._work.factors, self._work.size[1]
        copies = high * wide
        tiles = [(plane, row) for plane in range(self._planes) for row in range(0, self._all_rows, self._rows)]
        for number, (plane, row) in enumerate(tiles):
            rows, place = min(self._rows, self._all_rows - row), number % self._places
            made = rows * width * copies
            for source in range(self._work.sources):
                first = ((source * self._planes + plane) * self._all_rows + row) * width
                self.load(DATA, place * self._read + source * self._rows * width, first, rows * width)
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
            self.store(place * self._made, (plane * self._all_rows + row) * width * copies, made)
