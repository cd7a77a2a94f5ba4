"""A depthwise convolution by window GEMMs: no reset and no addition of a bias, one or a few cycles a pixel.

A tile is some output rows of one plane, or all rows of several planes. Its input lies in the input buffer plane by
plane, with zeros behind each row, and below a plane where windows of several rows go past it; above and to the left
a window GEMM has zeros of its own. Weight blocks come plane by plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.tile_writer import DATA, FIELD, WINDOWS, TileWriter
from hilt.network.window_tiles import Depthwise, Walk, Window
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType, Opcode
from hilt_runtime.isa import WINDOW_LINE

_PADS = 15


@dataclass(frozen=True)
class _Tile:
    """Output rows of some channel blocks of an image."""

    number: int
    image: int
    block: int
    planes: int
    row: int
    rows: int
    box: tuple[int, int, int]
    """Of a plane: the first input row, the rows that are loaded, and the rows of zeros behind them."""

    @property
    def high(self) -> int:
        return self.box[1] + self.box[2]


class DepthwiseWriter(TileWriter):
    """Writes a depthwise convolution whose tiles are `rows` output rows of one plane, or all rows of `planes` planes.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    constant, constant_blocks = WINDOWS, 0

    def __init__(self, work: Depthwise, rows: int, planes: int, accelerator: Accelerator) -> None:
        super().__init__(accelerator)
        self.work, self.rows, self.planes = work, rows, planes
        self._columns = [Walk.of(work.columns, window.columns, 0, work.columns.out) for window in work.windows]
        self._wide = max(walk.end(work.columns) for walk in self._columns)
        self._loaded = min(self._wide, work.columns.size)
        self._tiles = list(self._each_tile())
        self._box = max(tile.planes * tile.high for tile in self._tiles) * self._wide
        self._made = planes * rows * work.columns.out
        walks = [self._rows(window, tile) for tile in self._tiles for window in work.windows]
        high = max(walk.skip for walk in walks)
        self._before = max(high, 0) * work.columns.out + max(0, *(walk.skip for walk in self._columns))
        """Accumulators before the first tile: a window GEMM counts from the pixels that it does not write."""
        self._require(walks)

    def _require(self, walks: list[Walk]) -> None:
        parameters = self.accelerator.parameters
        self.places = min(2, len(self._tiles), parameters.inp_depth // self._box)
        taken = self._before + min(2, len(self._tiles)) * self._made
        blocks = 2 * self.planes * len(self.work.windows)
        if not self.places or taken > parameters.acc_depth or blocks > parameters.wgt_depth:
            raise Rejected(
                "acc_overflow",
                f"a tile of {self.rows} rows takes {self._box} input, {taken} accumulators and {blocks} weight blocks",
            )
        most = max(walk.count for walk in self._columns)
        pads = max(self._wide - self._loaded, *(tile.box[2] for tile in self._tiles))
        gemm = self.accelerator.formats.gemm.by_name
        step = max(self.work.rows.stride * self._wide, self.work.columns.stride)
        skip = max(0, *(walk.skip for walk in (*walks, *self._columns)))
        if (
            min(walk.count for walk in self._columns) < 2
            or most > WINDOW_LINE
            or pads > _PADS
            or max(self._box, self._made) >= FIELD
            or step > gemm["src_factor_out"].high
            or skip > gemm["wgt_factor_out"].high
        ):
            raise Rejected("field_overflow", f"a tile of {self.rows} rows has rows of {most} that no window goes over")

    def _each_tile(self) -> Iterator[_Tile]:
        work, number = self.work, 0
        for image in range(work.images):
            for block in range(0, len(work.shifts), self.planes):
                planes = min(self.planes, len(work.shifts) - block)
                for row in range(0, work.rows.out, self.rows):
                    rows = min(self.rows, work.rows.out - row)
                    yield _Tile(number, image, block, planes, row, rows, self._rows_read(row, rows))
                    number += 1

    def _rows_read(self, row: int, rows: int) -> tuple[int, int, int]:
        """Return the box of an output tile's input rows in a plane."""
        axis = self.work.rows
        walks = [Walk.of(axis, window.rows, row, rows) for window in self.work.windows]
        first = min(walk.start for walk in walks if walk.count)
        end = max(walk.end(axis) for walk in walks)
        if rows == axis.out:  # planes that are loaded whole are loaded together
            first, end = 0, max(end, axis.size)
        return first, min(end, axis.size) - first, max(end - axis.size, 0)

    def _rows(self, window: Window, tile: _Tile) -> Walk:
        return Walk.of(self.work.rows, window.rows, tile.row, tile.rows)

    def write_micro_ops(self) -> None:
        """Write the micro-ops, each once."""
        for tile in self._tiles:
            for plane in range(tile.planes):
                for number, window in enumerate(self.work.windows):
                    if self._rows(window, tile).count:  # else it names accumulators that the tile does not have
                        self.uop_number(*self._operands(tile, plane, number))
            self.uop_number(self._begin(tile), 0, 0)

    def write_tiles(self) -> None:
        """Add the loads, the computation and the store of each tile."""
        held = None
        for tile in self._tiles:
            if held != (tile.image, tile.block):
                held = (tile.image, tile.block)
                self._load_windows(tile)
            self._load(tile)
            for plane in range(tile.planes):
                for number in range(len(self.work.windows)):
                    self._multiply(tile, plane, number)
            self._shift_and_clip(tile)
            self._store(tile)

    def _begin(self, tile: _Tile) -> int:
        return self._before + tile.number % 2 * self._made

    def _weights(self, tile: _Tile) -> int:
        """Return the first weight block of a tile."""
        group = (tile.image * len(self.work.shifts) + tile.block) // self.planes
        return group % 2 * self.planes * len(self.work.windows)

    def _operands(self, tile: _Tile, plane: int, number: int) -> tuple[int, int, int]:
        """Return the micro-op of a window: of the first pixel that it goes over."""
        rows, columns = self._rows(self.work.windows[number], tile), self._columns[number]
        wide = self.work.columns.out
        made = plane * tile.rows * wide - rows.skip * wide - columns.skip
        row = plane * tile.high + rows.start - tile.box[0]
        source = tile.number % self.places * self._box + row * self._wide + columns.start
        return self._begin(tile) + made, source, self._weights(tile) + plane * len(self.work.windows) + number

    def _multiply(self, tile: _Tile, plane: int, number: int) -> None:
        rows, columns = self._rows(self.work.windows[number], tile), self._columns[number]
        if not rows.count:
            return
        uop = self.uop_number(*self._operands(tile, plane, number))
        self.add(
            "",
            Opcode.GEMM,
            window=1,
            reset=int(number == 0),
            uop_bgn=uop,
            uop_end=uop + 1,
            iter_out=rows.count,
            iter_in=columns.count,
            dst_factor_out=self.work.columns.out,
            dst_factor_in=1,
            src_factor_out=self.work.rows.stride * self._wide,
            src_factor_in=self.work.columns.stride,
            wgt_factor_out=max(rows.skip, 0),
            wgt_factor_in=max(columns.skip, 0),
        )

    def _shift_and_clip(self, tile: _Tile) -> None:
        """Shift and clip the planes of a tile, those of one shift together."""
        plane = 0
        shifts = self.work.shifts[tile.block : tile.block + tile.planes]
        while plane < tile.planes:
            end = plane + 1
            while end < tile.planes and shifts[end] == shifts[plane]:
                end += 1
            elements = tile.rows * self.work.columns.out
            uop = self.uop_number(self._begin(tile) + plane * elements, 0, 0)
            low, high = self.work.clip
            steps = [(AluOpcode.SHR, shifts[plane])] if shifts[plane] else []
            self.alu_with([*steps, (AluOpcode.MAX, low), (AluOpcode.MIN, high)], uop, (end - plane) * elements)
            plane = end

    def _load_windows(self, tile: _Tile) -> None:
        count = tile.planes * len(self.work.windows)
        self.add(
            WINDOWS,
            Opcode.LOAD,
            memory_type=MemoryType.WGT,
            sram_base=self._weights(tile),
            dram_base=tile.block * len(self.work.windows),
            y_size=1,
            x_size=count,
            x_stride=count,
        )

    def _load(self, tile: _Tile) -> None:
        """Load a tile's input rows: planes that are whole and need no zeros below come together."""
        work = self.work
        together = tile.box == (0, work.rows.size, 0)
        for plane in [0] if together else range(tile.planes):
            first = tile.image * len(work.shifts) + tile.block + plane
            self.add(
                DATA,
                Opcode.LOAD,
                memory_type=MemoryType.INP,
                sram_base=tile.number % self.places * self._box + plane * tile.high * self._wide,
                dram_base=(first * work.rows.size + tile.box[0]) * work.columns.size,
                y_size=tile.planes * tile.high if together else tile.box[1],
                x_size=self._loaded,
                x_stride=work.columns.size,
                y_pad_1=tile.box[2],
                x_pad_1=self._wide - self._loaded,
            )

    def _store(self, tile: _Tile) -> None:
        (high, wide), planes = self.work.out, tile.image * len(self.work.shifts) + tile.block
        self.store(self._begin(tile), (planes * high + tile.row) * wide, tile.planes * tile.rows * wide)
