"""Average pooling on VTA: an identity GEMM adds the positions of a window, the ALU shifts the sums and clips them.

One block of weights serves all positions and all channels. Successive micro-ops add to different accumulators, since
a second addition to one waits for the first: the planes of a tile are micro-ops, the outputs of a plane are loops. A
plane with a single output has its window's positions as loops; a tile of few such planes adds the odd rows to sums of
their own, which the ALU adds to the others. Where the rows of the only window lie in several bands, a tile has the
rows of each band of all its planes one behind another, so one LOAD brings them.
"""

from __future__ import annotations

from itertools import accumulate

from hilt.network.pool_tiles import Averaging, PoolingLayer, PoolTile, PoolWriter
from hilt.network.tile_writer import DATA
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import AluOpcode, MemoryType, Opcode


class AveragePoolWriter(PoolWriter):
    """Writes an average pooling whose tiles are `rows` output rows of one plane, or all rows of `planes` planes."""

    def __init__(
        self, pool: PoolingLayer, averaging: Averaging, rows: int, planes: int, accelerator: Accelerator
    ) -> None:
        interlock = accelerator.hazards == "interlock"
        self._looped = pool.out == (1, 1) and (interlock or _fewest(pool, planes) >= HAZARD_DISTANCE)
        """Whether a window's positions are loops. Between two additions to one sum lie a tile's planes alone then."""
        self._halved = self._looped and interlock and _in_halves(pool, planes)
        """Whether odd rows have sums of their own, behind the others of a tile."""
        super().__init__(pool, rows, planes, accelerator, copied=2 * planes if self._halved else 0)
        self._runs = pool.runs if self._looped and planes > 1 and not self._halved else ()
        """The rows of each band, where a tile has them apart."""
        self._averaging = averaging
        high, wide = pool.kernel
        self._taps = (
            [0] if self._looped else [row * pool.wide + column for row in range(high) for column in range(wide)]
        )
        """The offsets of a window's positions that have micro-ops of their own."""
        self._first: list[int] = []

    def write_micro_ops(self) -> None:
        """Write, for each place of a tile, the planes of each position that a tile there has."""
        outputs = self.made // self.planes
        for place in range(min(2, self.tiles)):
            source = self._source(place)
            self._first.append(len(self.uops))
            for tap, box in self._places():
                self.uops += [
                    (self.begin(place) + plane * outputs, source + plane * box + tap)
                    for plane in range(self._planes_at(place))
                ]
            if self._halved:
                odd = [(dst + self.planes, src + self.pool.wide) for dst, src in self.uops[-self.planes :]]
                self.uops += [*odd, (self.begin(place), self.begin(place) + self.planes)]

    def _source(self, tile: int) -> int:
        """Return the first input element of a tile."""
        return tile % self.places * self.planes * self.box

    def _places(self) -> list[tuple[int, int]]:
        """Return where each position, or each run of rows, lies in a tile, and the elements between two planes."""
        if not self._runs:
            return [(tap, self.box) for tap in self._taps]
        firsts = [0, *accumulate(self._runs)]
        return [
            (first * self.planes * self.pool.wide, rows * self.pool.wide)
            for first, rows in zip(firsts, self._runs, strict=False)
        ]

    def load_tile(self, tile: PoolTile) -> None:
        """See PoolWriter."""
        if not self._runs:
            super().load_tile(tile)
            return
        plane, first = self.pool.high * self.pool.wide, tile.plane * self.pool.high * self.pool.wide
        for place, elements in self._places():
            self.add(
                DATA,
                Opcode.LOAD,
                memory_type=MemoryType.INP,
                sram_base=self._source(tile.number) + place,
                dram_base=first,
                y_size=tile.planes,
                x_size=elements,
                x_stride=plane,
            )
            first += elements

    def begin(self, tile: int) -> int:
        """See PoolWriter."""
        return tile % 2 * 2 * self.planes if self._halved else super().begin(tile)

    def _planes_at(self, place: int) -> int:
        """Return the most planes of a tile whose number is `place` modulo two."""
        return max(1, min(self.planes, self.pool.planes - place * self.planes))

    def compute(self, tile: PoolTile) -> None:
        """Clear the sums, add the window's positions, then shift and clip."""
        first = self._first[tile.number % 2]
        made = tile.planes * tile.rows * self.pool.out[1]
        if self._halved:
            self._add_halves(first)
        else:
            self._add_all(tile, first, made)
        averaging = self._averaging
        self.round_and_clip(first, made, averaging.shift, averaging.clip, averaging.offset)

    def _add_halves(self, first: int) -> None:
        """Add a tile's even and odd rows at once, then the sums of the odd ones to the others."""
        pool, both = self.pool, 2 * self.planes
        high, wide = pool.kernel
        self.clear(first, both)
        steps = {"src_factor_out": 2 * pool.wide, "src_factor_in": 1}
        self.compute_with(Opcode.GEMM, first, first + both, iter_out=high // 2, iter_in=wide, **steps)
        beside = {"iter_in": self.planes, "dst_factor_in": 1, "src_factor_in": 1}
        self.compute_with(Opcode.ALU, first + both, first + both + 1, alu_opcode=AluOpcode.ADD, **beside)

    def _add_all(self, tile: PoolTile, first: int, made: int) -> None:
        """Add the window's positions, one instruction for each that has micro-ops of its own."""
        self.clear(first, made)
        high = self.pool.kernel[0]
        for number, rows in enumerate(self._runs or [high] * len(self._taps)):
            begin = first + number * self._planes_at(tile.number % 2)
            self.compute_with(Opcode.GEMM, begin, begin + tile.planes, **self._loops(tile, rows))

    def _loops(self, tile: PoolTile, high: int) -> dict[str, int]:
        """Return the loops of a GEMM: over `high` rows of the window, or over the outputs of one position."""
        pool = self.pool
        if self._looped:
            wide = pool.kernel[1]
            return {"iter_out": high, "iter_in": wide, "src_factor_out": pool.wide, "src_factor_in": 1}
        return {
            "iter_out": tile.rows,
            "iter_in": pool.out[1],
            "dst_factor_out": pool.out[1],
            "dst_factor_in": 1,
            "src_factor_out": pool.stride[0] * pool.wide,
            "src_factor_in": pool.stride[1],
        }


def _fewest(pool: PoolingLayer, planes: int) -> int:
    """Return the planes of the smallest tile."""
    return min(planes, pool.planes % planes or planes)


def _in_halves(pool: PoolingLayer, planes: int) -> bool:
    """Return whether tiles have too few planes for their sums to follow one another, and rows for two sums of each."""
    return planes < HAZARD_DISTANCE and pool.planes % planes == 0 and pool.kernel[0] % 2 == 0
