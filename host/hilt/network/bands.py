"""A layer of one image in the batch lanes of VTA: lane k computes the band k of output rows.

A tensor of H rows lies in memory as `lanes` images of ceil(H / lanes) rows. A layer is lowered as one of `lanes`
images, each as high as the rows that a band reads, and `with_bands` makes its LOADs of input bring each lane the rows
of the image that it needs, of whatever band they are: a LOAD for the rows that most lanes find in their own band, and
one for each run of rows that comes from another band, or is outside of the image. Planes that are brought whole, one
behind another, come by one LOAD.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hilt.schedule.checks import Rejected
from hilt.schedule.code import Code
from hilt.vta.isa import LANES, MemoryType, Opcode

_SHIFTS = {0: 0, 1: 1, 2: 2, -1: 3}
"""The field of a LOAD by the lanes between a lane and its source."""
_MOST_PADS = 15
_FARTHEST = 1 << 16
"""Elements between two rows of a LOAD that it cannot count."""
_THERE = "there"
"""The need of a lane for a row that a LOAD has brought."""
Source = tuple[int, int]
"""Lanes and rows from a lane's row of input to where it lies in memory."""
ZEROS, ANY = "zeros", "any"
"""The need of a lane for a row outside of the image, or one that no output depends on."""
Need = Source | str


@dataclass(frozen=True)
class Bands:
    """The rows of an image in the bands of a layer's input and output.

    Attributes:
        lanes: Bands of a tensor.
        rows: Rows of the image that is read.
        width: Columns that are read.
        made: Rows of the image that is made.
        kernel: Rows of the layer's window.
        stride: Rows between two windows.
        pad: Rows above the image that windows reach.
        repeats: Whether a row outside of the image is the nearest one inside; else it is zeros.
    """

    lanes: int
    rows: int
    width: int
    made: int
    kernel: int
    stride: int
    pad: int
    repeats: bool = False

    @property
    def band(self) -> int:
        """Return the rows of a band of the input in memory."""
        return band_rows(self.rows, self.lanes)

    @property
    def band_made(self) -> int:
        """Return the rows of a band of the output."""
        return band_rows(self.made, self.lanes)

    @property
    def height(self) -> int:
        """Return the rows that a band of the output reads, those outside of the image included."""
        return (self.band_made - 1) * self.stride + self.kernel

    def needs(self, row: int) -> tuple[Need, ...]:
        """Return the rows that lanes need as row `row`, from 0 to `height`, of its input."""
        return tuple(self._need(lane, row) for lane in range(self.lanes))

    def _need(self, lane: int, row: int) -> Need:
        made = min(self.band_made, self.made - lane * self.band_made)
        image = lane * self.band_made * self.stride - self.pad + row
        if made <= 0 or row >= (made - 1) * self.stride + self.kernel:
            return ANY
        if self.repeats:
            image = min(max(image, 0), self.rows - 1)
        if not 0 <= image < self.rows:
            return ZEROS
        return image // self.band - lane, image % self.band - row


def band_rows(rows: int, lanes: int) -> int:
    """Return the rows of a band."""
    return -(-rows // lanes)


def with_bands(code: Code, bands: Bands, buffer: str) -> Code:
    """Return `code`, of one lane's layer, with LOADs of `buffer` for all lanes.

    Raises:
        Rejected: A LOAD reaches further lanes than an instruction can.
    """
    number = code.names.index(buffer)
    chosen = (code.buffers == number) & (code.records["opcode"] == Opcode.LOAD)
    chosen &= code.records["memory_type"] == MemoryType.INP
    records, owners = [], []
    done = 0
    for place in np.flatnonzero(chosen).tolist():
        loads = _Loads(code.records[place], bands).records()
        records += [code.records[done:place], *loads]
        owners += [code.buffers[done:place], np.full(len(loads), number)]
        done = place + 1
    return Code(
        np.concatenate([*records, code.records[done:]]),
        np.concatenate([*owners, code.buffers[done:]]),
        code.names,
        code.uops,
    )


@dataclass(frozen=True)
class _Rows:
    """Rows of one plane that a LOAD brings one behind another, `apart` rows from each other, from column `column` on.

    `sram` counts from the LOAD's first element.
    """

    sram: int
    plane: int
    first: int
    count: int
    apart: int
    column: int
    columns: int


class _Loads:
    """Writes the LOADs that bring all lanes the input of one LOAD of the layer of one lane."""

    def __init__(self, record: np.void, bands: Bands) -> None:
        self._record, self._bands = record, bands
        self._made: list[NDArray[np.void]] = []

    def records(self) -> list[NDArray[np.void]]:
        """Return the LOADs, each an array of one."""
        if not int(self._record["y_size"]) or not int(self._record["x_size"]):
            raise Rejected("bands", "a tile whose input is padding alone")
        for rows in self._planes():
            self._bring(rows)
        return _joined(self._made)

    def _planes(self) -> Iterator[_Rows]:
        """Yield the rows of each plane, pads above and below included."""
        record, width, height = self._record, self._bands.width, self._bands.height
        top, bottom, left, right = (int(record[name]) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"))
        size, stride = int(record["x_size"]), int(record["x_stride"])
        starts = int(record["dram_base"]) + stride * np.arange(int(record["y_size"]))
        columns = min(size, width - int(starts[0]) % width)
        wide = left + columns + right
        rows = (starts[:, None] + np.arange(0, size, width)).reshape(-1)  # of full rows there may be several
        planes, numbers = rows // width // height, rows // width % height
        apart = int(numbers[1] - numbers[0]) if len(rows) > 1 and planes[0] == planes[1] else 1
        for plane in range(int(planes[0]), int(planes[-1]) + 1):
            own = np.flatnonzero(planes == plane)
            above, below = (top if own[0] == 0 else 0), (bottom if own[-1] == len(rows) - 1 else 0)
            yield _Rows(
                (int(own[0]) + (top if own[0] else 0)) * wide,
                plane,
                int(numbers[own[0]]) - above * apart,
                len(own) + above + below,
                apart,
                int(rows[own[0]]) % width,
                columns,
            )

    def _bring(self, rows: _Rows) -> None:
        """Load the rows that most lanes find at one distance for all lanes, then those of lanes that need others."""
        needs = [self._bands.needs(rows.first + number * rows.apart) for number in range(rows.count)]
        sources = [need for lanes in needs for need in lanes if isinstance(need, tuple)]
        if sources:
            main = max(dict.fromkeys(sources), key=lambda source: (sources.count(source), -abs(source[0])))
            having = [number for number, lanes in enumerate(needs) if main in lanes]
            first, end = having[0], having[-1] + 1
            self._load(rows, first, end, main, range(self._bands.lanes))
            for number in range(first, end):
                needs[number] = self._left(needs[number], main)
        for left, run in groupby(range(rows.count), key=needs.__getitem__):
            numbers = list(run)
            self._bring_rest(rows, numbers[0], numbers[-1] + 1, left)

    def _bring_rest(self, rows: _Rows, first: int, end: int, left: tuple[Need, ...]) -> None:
        """Load rows for the lanes that need one; no other lane is written, unless it holds anything yet."""
        while True:
            wanted = [need for need in left if need not in (ANY, _THERE)]
            if not wanted:
                return
            source = next((need for need in wanted if need != ZEROS), ZEROS)
            after = self._left(left, source)
            written = [lane for lane, need in enumerate(after) if need == _THERE and left[lane] != _THERE]
            self._load(rows, first, end, source, written)
            left = after

    def _left(self, needs: tuple[Need, ...], source: Need) -> tuple[Need, ...]:
        """Return the rows that lanes need when a LOAD from `source` has brought its own."""

        def brought(lane: int) -> Need:
            there = isinstance(source, tuple) and 0 <= lane + source[0] < self._bands.lanes
            return source if there else ZEROS

        return tuple(_THERE if need in (ANY, brought(lane)) else need for lane, need in enumerate(needs))

    def _load(self, rows: _Rows, first: int, end: int, source: Need, written: Iterable[int]) -> None:
        """Write a LOAD of rows [first, end) of a plane, for some lanes."""
        bands, load = self._bands, np.array([self._record])
        wide = rows.columns + int(self._record["x_pad_0"]) + int(self._record["x_pad_1"])
        kept = (1 << bands.lanes) - 1
        for lane in written:
            kept &= ~(1 << lane)
        load["lanes_kept"], load["y_pad_0"], load["y_pad_1"] = kept, 0, 0
        load["x_size"], load["x_stride"] = rows.columns, rows.apart * bands.width
        load["sram_base"] = int(self._record["sram_base"]) + rows.sram + first * wide
        if isinstance(source, tuple):
            if source[0] not in _SHIFTS:
                raise Rejected("bands", f"rows of lanes {source[0]} ahead; a LOAD reaches -1 to 2")
            row = rows.first + first * rows.apart + source[1]
            load["lane_shift"], load["y_size"] = _SHIFTS[source[0]], end - first
            load["dram_base"] = (rows.plane * bands.band + row) * bands.width + rows.column
            self._made.append(load)
            return
        load["lane_shift"], load["y_size"] = 0, 0
        for begin in range(first, end, _MOST_PADS):
            zeros = load.copy()
            zeros["sram_base"] += (begin - first) * wide
            zeros["y_pad_0"] = min(_MOST_PADS, end - begin)
            self._made.append(zeros)


def _joined(loads: list[NDArray[np.void]]) -> list[NDArray[np.void]]:
    """Return LOADs; those that bring equal runs, at equal distances, one behind another, are joined."""
    made: list[NDArray[np.void]] = []
    group: list[NDArray[np.void]] = []
    for load in loads:
        if group and not _continues(group, load):
            made.append(_as_one(group))
            group = []
        group.append(load)
    return [*made, *([_as_one(group)] if group else [])]


def _continues(group: list[NDArray[np.void]], load: NDArray[np.void]) -> bool:
    """Return whether a LOAD brings the same lanes a run as long as each of a group's, at the next place."""
    before, run = group[-1], _run(load)
    if not run or run != _run(before) or any(load[name][0] != before[name][0] for name in LANES):
        return False
    apart = _distance(before, load, "dram_base")
    if len(group) > 1 and apart != _distance(group[0], group[1], "dram_base"):
        return False
    return _distance(before, load, "sram_base") == run and 0 < apart < _FARTHEST


def _distance(one: NDArray[np.void], two: NDArray[np.void], name: str) -> int:
    return int(two[name][0]) - int(one[name][0])


def _run(load: NDArray[np.void]) -> int:
    """Return the elements of a LOAD's data, where they lie one behind another and it has no pads, else 0."""
    pads = sum(int(load[name][0]) for name in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1"))
    high, wide = int(load["y_size"][0]), int(load["x_size"][0])
    return high * wide if not pads and (high == 1 or int(load["x_stride"][0]) == wide) else 0


def _as_one(group: list[NDArray[np.void]]) -> NDArray[np.void]:
    """Return one LOAD of all runs of a group, each a row of it."""
    if len(group) == 1:
        return group[0]
    load = group[0].copy()
    load["y_size"], load["x_size"] = len(group), _run(group[0])
    load["x_stride"] = _distance(group[0], group[1], "dram_base")
    return load
