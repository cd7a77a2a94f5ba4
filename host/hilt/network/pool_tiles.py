"""A pooling over packed tensors, and the instructions that all poolings share: a tile's loads and its store.

A tile is some output rows of one plane, or all rows of several planes. Its input lies in the input buffer plane by
plane, its output in the accumulators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hilt.network.tile_writer import DATA, FIELD, TileWriter
from hilt.schedule.checks import Rejected
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import MemoryType, Opcode

_PADS = 15


@dataclass(frozen=True)
class Averaging:
    """The end of an average: the sums are shifted right by `shift`, rounded half up; `offset` is added; then a clip."""

    shift: int
    clip: tuple[int, int]
    offset: int = 0


@dataclass(frozen=True)
class PoolingLayer:
    """A pooling over packed tensors: a maximum, or an average if `averaging` is there.

    `planes` is blocks of images times blocks of channels; sizes are (height, width), `pads` are before the first
    row and column. Elements outside the input are zeros. `runs` are how many of its rows, from the first on, lie in one
    band each, where the only window reaches over several.
    """

    planes: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pads: tuple[int, int]
    out: tuple[int, int]
    averaging: Averaging | None = None
    runs: tuple[int, ...] = ()

    @property
    def high(self) -> int:
        """Input rows that all output rows read."""
        return self.rows_read(self.out[0])

    @property
    def wide(self) -> int:
        """Input columns that an output row reads."""
        return (self.out[1] - 1) * self.stride[1] + self.kernel[1]

    def rows_read(self, rows: int) -> int:
        """Return the input rows that so many output rows read."""
        return (rows - 1) * self.stride[0] + self.kernel[0]

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: a lower bound of the cycles."""
        met, across = self._rows_met, min(self.size[1], self.wide - self.pads[1])
        copied = 0 if self.averaging else met * across
        own = None if self.averaging else own_position(self)
        apart = (-1, -1) if own is None else own
        rows, columns = (
            sum(self._taken(axis, place) for place in range(self.kernel[axis]) if place != apart[axis])
            for axis in (0, 1)
        )
        if own is None:
            return self.planes * (copied + rows * columns)
        return self.planes * (copied + met * columns + rows * self.out[1])

    @property
    def _rows_met(self) -> int:
        """Rows of the input that lie in a window: a stride larger than the window passes over others."""
        begins = range(-self.pads[0], self.out[0] * self.stride[0] - self.pads[0], self.stride[0])
        return len({row for begin in begins for row in range(begin, begin + self.kernel[0])} & {*range(self.size[0])})

    def _taken(self, axis: int, place: int) -> int:
        """Return the outputs of a column (axis 0) or row whose window's row or column `place` is in the input."""
        first, end = inside(place - self.pads[axis], self.stride[axis], self.size[axis], self.out[axis])
        return max(0, end - first)


def inside(shift: int, stride: int, size: int, outputs: int) -> tuple[int, int]:
    """Return the first output whose element at output * stride + shift is in the input, and the one behind the last."""
    first = -(-max(-shift, 0) // stride)
    return first, min(outputs, (size - 1 - shift) // stride + 1)


def own_position(pool: PoolingLayer) -> tuple[int, int] | None:
    """Return a row and a column of the window that lie in no other window and always in the input, if there are any."""
    found = []
    for axis in (0, 1):
        kernel, stride, outputs = pool.kernel[axis], pool.stride[axis], pool.out[axis]
        places = range(max(kernel - stride, 0), min(kernel, stride))
        own = [
            place
            for place in places
            if inside(place - pool.pads[axis], stride, pool.size[axis], outputs) == (0, outputs)
        ]
        found += own[:1]
    return (found[0], found[1]) if len(found) == 2 else None


@dataclass(frozen=True)
class PoolTile:
    """Output rows of some planes, from plane `plane` and row `row` on."""

    number: int
    plane: int
    planes: int
    row: int
    rows: int


class PoolWriter(TileWriter):
    """Writes a pooling's instructions; a subclass adds those between the loads and the store.

    Args:
        pool: The pooling.
        rows: Output rows of a tile.
        planes: Planes of a tile; above 1 with all rows only.
        accelerator: The accelerator.
        copied: Accumulators that a tile takes beside its output.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    outputs = 2
    """Places in the accumulators for a tile's output, behind its copies of the input."""

    def __init__(self, pool: PoolingLayer, rows: int, planes: int, accelerator: Accelerator, copied: int) -> None:
        super().__init__(accelerator)
        self.pool, self.rows, self.planes, self.copied = pool, rows, planes, copied
        parameters = accelerator.parameters
        self.box = pool.rows_read(rows) * pool.wide
        """Input elements of a plane's tile."""
        self.made = planes * rows * pool.out[1]
        """Output elements of a tile."""
        self.tiles = -(-pool.planes // planes) * -(-pool.out[0] // rows)
        self.places = min(2, self.tiles, parameters.inp_depth // (planes * self.box))
        accumulators = copied + self.outputs * self.made
        if not self.places or accumulators > parameters.acc_depth:
            raise Rejected(
                "acc_overflow",
                f"a tile of {rows} rows takes {planes * self.box} input and {accumulators} accumulators",
            )
        if max(pool.pads) > _PADS or max(planes * self.box, copied, pool.wide) >= FIELD:
            raise Rejected("field_overflow", f"a tile of {rows} rows has more elements than an instruction counts")

    def write_tiles(self) -> None:
        """Add the loads, the computation and the store of each tile."""
        for tile in self.each_tile():
            self.load_tile(tile)
            self.compute(tile)
            self._store(tile)

    def compute(self, tile: PoolTile) -> None:
        """Add a tile's GEMM and ALU instructions."""
        raise NotImplementedError

    def begin(self, tile: int) -> int:
        """Return the first accumulator of a tile's output."""
        return self.copied + tile % 2 * self.made

    def each_tile(self) -> Iterator[PoolTile]:
        """Yield the tiles in the order in which they are computed."""
        number = 0
        for plane in range(0, self.pool.planes, self.planes):
            for row in range(0, self.pool.out[0], self.rows):
                planes, rows = min(self.planes, self.pool.planes - plane), min(self.rows, self.pool.out[0] - row)
                yield PoolTile(number, plane, planes, row, rows)
                number += 1

    def rows_loaded(self, tile: PoolTile) -> tuple[int, int]:
        """Return the input rows that a tile loads, first and behind the last.

        They count from the first window's first row, which may lie in the padding.
        """
        first = tile.row * self.pool.stride[0]
        return first, first + self.pool.rows_read(tile.rows)

    def load_tile(self, tile: PoolTile) -> None:
        """Load a tile's input rows, with zeros where it reaches past the input."""
        pool = self.pool
        (height, width), left = pool.size, pool.pads[1]
        place = tile.number % self.places * self.planes * self.box
        first, end = self.rows_loaded(tile)
        high = end - first
        if not high:
            return
        if pool.pads == (0, 0) and pool.wide == width and high == height:
            self.load(DATA, place, tile.plane * height * width, tile.planes * height * width)
            return
        top = first - pool.pads[0]
        before, after = max(-top, 0), max(top + high - height, 0)
        columns = min(width, pool.wide - left)
        for number in range(tile.planes):
            self.add(
                DATA,
                Opcode.LOAD,
                memory_type=MemoryType.INP,
                sram_base=place + number * self.box,
                dram_base=(tile.plane + number) * height * width + max(top, 0) * width,
                y_size=high - before - after,
                x_size=columns,
                x_stride=width,
                y_pad_0=before,
                y_pad_1=after,
                x_pad_0=left,
                x_pad_1=pool.wide - left - columns,
            )

    def _store(self, tile: PoolTile) -> None:
        high, wide = self.pool.out
        made = tile.planes * tile.rows * wide
        self.store(self.begin(tile.number), tile.plane * high * wide + tile.row * wide, made)


class CopyingPoolWriter(PoolWriter):
    """Writes a maximum whose tiles copy input rows to the accumulators, each row once for all tiles of a plane."""

    def rows_loaded(self, tile: PoolTile) -> tuple[int, int]:
        """Return the rows within the input that no tile above has copied, first and behind the last."""
        pool = self.pool
        first, end = super().rows_loaded(tile)
        if tile.row:
            first += max(pool.kernel[0] - pool.stride[0], 0)
        first, end = max(first, pool.pads[0]), min(end, pool.pads[0] + pool.size[0])
        return first, max(first, end)
