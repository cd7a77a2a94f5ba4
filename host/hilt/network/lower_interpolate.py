"""Linear interpolation of images on VTA: window sums by GEMMs with multiples of the identity, shifted by the ALU.

Each pixel becomes `factors` pixels, each a sum of at most four neighbours. Neighbours outside of the image are the
nearest ones inside, so the pixels of an edge have micro-ops of their own: they name the same accumulators, and other
inputs. Successive GEMMs add to different accumulators; a second addition to one comes after all others of its tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hilt.network.tile_writer import DATA, FIELD, WINDOWS, TileWriter
from hilt.schedule.checks import Rejected
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, Opcode

_SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Output elements of a tile, about."""
_LARGEST_WEIGHT = 127

Tap = tuple[int, int, int]
"""Rows and columns from a pixel to the one that is added, and its weight."""


@dataclass(frozen=True)
class Interpolation:
    """A linear interpolation of packed tensors.

    Attributes:
        planes: Blocks of images times blocks of channels.
        size: The input's height and width.
        factors: Output rows and columns of each pixel, powers of two.
        centred: Whether pixels lie at their centres (ONNX's half_pixel), else at their begins (asymmetric).
        halo: Rows above and below that are read alone: 1 where these are those next to a band (hilt.network.bands).
    """

    planes: int
    size: tuple[int, int]
    factors: tuple[int, int]
    centred: bool
    halo: int = 0

    @property
    def rows(self) -> int:
        """Return the rows of pixels that outputs are made of."""
        return self.size[0] - 2 * self.halo

    @property
    def shift(self) -> int:
        """Return the logarithm of the sum of an output's weights."""
        return sum(round(math.log2(_whole(factor, self.centred))) for factor in self.factors)

    @cached_property
    def taps(self) -> dict[tuple[int, int], list[Tap]]:
        """Return the taps of each output of a pixel; a weight too large for int8 is several."""
        high, wide = (axis_taps(factor, self.centred) for factor in self.factors)
        found = {}
        for y, rows in enumerate(high):
            for x, columns in enumerate(wide):
                all_taps = [(dy, dx, ny * nx) for dy, ny in rows for dx, nx in columns]
                found[y, x] = [(dy, dx, part) for dy, dx, weight in all_taps for part in _parts(weight)]
        return found

    @property
    def weights(self) -> list[int]:
        """Return the weights, each once."""
        return sorted({weight for taps in self.taps.values() for _, _, weight in taps})

    @property
    def micro_ops(self) -> int:
        """Micro-ops that no schedule saves: one for each tap of each output element."""
        return self.planes * self.rows * self.size[1] * sum(map(len, self.taps.values()))

    def blocks(self, accelerator: Accelerator) -> NDArray[np.int8]:
        """Return the weight blocks (weights, block, block)."""
        identity = np.eye(accelerator.parameters.block, dtype=np.int8)
        return np.stack([identity * np.int8(weight) for weight in self.weights])


def axis_taps(factor: int, centred: bool) -> list[list[tuple[int, int]]]:
    """Return for each output of a pixel the offsets of the pixels that it is made of, and their weights.

    The weights of one add up to twice the factor if pixels lie at their centres, to the factor if at their begins.
    """
    found = []
    for place in range(factor):
        doubled = 2 * place + 1 - factor if centred else 2 * place
        beside = abs(doubled) if centred else abs(doubled) // 2
        taps = [(0, _whole(factor, centred) - beside), (1 if doubled > 0 else -1, beside)]
        found.append([tap for tap in taps if tap[1]])
    return found


def _whole(factor: int, centred: bool) -> int:
    return 2 * factor if centred and factor > 1 else factor


def _parts(weight: int) -> list[int]:
    return [*[_LARGEST_WEIGHT] * (weight // _LARGEST_WEIGHT), *filter(None, [weight % _LARGEST_WEIGHT])]


def interpolation_knobs(work: Interpolation) -> list[dict[str, int]]:
    """Return the schedules: input rows of a plane that a tile has."""
    row = work.size[1] * work.factors[0] * work.factors[1]
    return [{"rows": rows} for rows in sorted({min(max(size // row, 1), work.rows) for size in _SIZES})]


@dataclass(frozen=True)
class _Span:
    """Pixels of an axis that have the same neighbours: `count` from `first` on, the tile's first one being 0."""

    first: int
    count: int
    at_begin: bool
    at_end: bool

    def source(self, offset: int) -> int:
        """Return where a neighbour of the first pixel lies."""
        outside = (self.at_begin and offset < 0) or (self.at_end and offset > 0)
        return self.first + (0 if outside else offset)


@dataclass(frozen=True)
class _Tile:
    number: int
    plane: int
    row: int
    rows: int


class InterpolationWriter(TileWriter):
    """Writes an interpolation whose tiles are `rows` input rows of one plane.

    Raises:
        Rejected: A tile does not fit the accelerator.
    """

    constant = WINDOWS

    def __init__(self, work: Interpolation, rows: int, accelerator: Accelerator) -> None:
        super().__init__(accelerator)
        self._work, self._rows = work, rows
        self._weights = {weight: number for number, weight in enumerate(work.weights)}
        self.constant_blocks = len(self._weights)
        self._width, (self._high, self._wide) = work.size[1], work.factors
        tiles = [(plane, row) for plane in range(work.planes) for row in range(0, work.rows, rows)]
        self._tiles = [
            _Tile(number, plane, row, min(rows, work.rows - row)) for number, (plane, row) in enumerate(tiles)
        ]
        self._places = min(2, len(tiles))
        self._read = (rows + 2) * self._width
        self._made = rows * self._width * self._high * self._wide
        self._first: dict[tuple[tuple[int, int, int], ...], int] = {}
        self._require()

    def _require(self) -> None:
        parameters, fields = self.accelerator.parameters, self.accelerator.formats.gemm.by_name
        places = self._places
        if (
            places * self._read > parameters.inp_depth
            or places * self._made > parameters.acc_depth
            or self.constant_blocks > parameters.wgt_depth
        ):
            text = f"a tile of {self._rows} rows takes {self._read} input elements and {self._made} accumulators"
            raise Rejected("acc_overflow", text)
        step = self._high * self._width * self._wide
        if self._made >= FIELD or step > fields["dst_factor_out"].high or self._width > fields["src_factor_out"].high:
            raise Rejected(
                "field_overflow", f"a tile of {self._rows} rows has more elements than an instruction counts"
            )
        least = min(tile.rows for tile in self._tiles) * self._width * self._high * self._wide
        if least < HAZARD_DISTANCE and self.accelerator.hazards != "interlock":
            raise Rejected("acc_hazard", f"a tile of {self._rows} rows adds to an accumulator too soon")

    def write_micro_ops(self) -> None:
        """Write the micro-ops of all tiles, those of tiles with the same ones once."""
        for tile in self._tiles:
            for _, _, uops in self._sums(tile):
                if uops not in self._first:
                    self._first[uops] = len(self.uops)
                    self.uops += uops

    def _sums(self, tile: _Tile) -> Iterator[tuple[_Span, _Span, tuple[tuple[int, int, int], ...]]]:
        """Yield the GEMMs of a tile: rows, columns, and the micro-ops of their first pixel."""
        taps, place = self._work.taps, tile.number % self._places
        width = self._width
        row, made = width * self._wide, place * self._made
        whole = _Span(0, tile.rows, False, False)
        spans = [whole] if self._work.halo else _spans(tile.row, tile.rows, self._work.rows)
        for number in range(max(map(len, taps.values()))):
            for rows in spans:
                for columns in _spans(0, width, width):
                    begin = made + rows.first * self._high * row + columns.first * self._wide
                    yield (
                        rows,
                        columns,
                        tuple(
                            (
                                begin + y * row + x,
                                self._source(place, rows, columns, each[number]),
                                self._weights[each[number][2]],
                            )
                            for (y, x), each in taps.items()
                            if number < len(each)
                        ),
                    )

    def _source(self, place: int, rows: _Span, columns: _Span, tap: Tap) -> int:
        """Return the input element of a tap; the row before a tile's first one comes first."""
        return place * self._read + (rows.source(tap[0]) + 1) * self._width + columns.source(tap[1])

    def write_tiles(self) -> None:
        """Add the load, the sums, the shift and the store of each tile."""
        height, width = self._work.size
        for tile in self._tiles:
            row = tile.row + self._work.halo
            first, end = max(row - 1, 0), min(row + tile.rows + 1, height)
            place = tile.number % self._places * self._read + (first - row + 1) * width
            self.load(DATA, place, (tile.plane * height + first) * width, (end - first) * width)
            sums = list(self._sums(tile))
            begin, made = self._first[sums[0][2]], tile.rows * width * self._high * self._wide
            self.clear(begin, made)
            for rows, columns, uops in sums:
                self.compute_with(
                    Opcode.GEMM,
                    self._first[uops],
                    self._first[uops] + len(uops),
                    iter_out=rows.count,
                    iter_in=columns.count,
                    dst_factor_out=self._high * width * self._wide,
                    dst_factor_in=self._wide,
                    src_factor_out=width,
                    src_factor_in=1,
                )
            shift = self._work.shift
            self.alu_with([(AluOpcode.ADD, 1 << shift >> 1), (AluOpcode.SHR, shift)], begin, made)
            above = tile.plane * self._work.rows + tile.row
            self.store(tile.number % self._places * self._made, above * self._high * width * self._wide, made)


def _spans(first: int, count: int, size: int) -> list[_Span]:
    """Return pixels from `first` on, of an axis of `size`, in spans of the same neighbours."""
    cuts = sorted({0, count} | {cut - first for cut in (1, size - 1) if 0 < cut - first < count})
    return [_Span(begin, end - begin, first + begin == 0, first + end == size) for begin, end in pairwise(cuts)]
