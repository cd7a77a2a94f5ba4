"""Average pooling on VTA: an identity GEMM adds the positions of a window, the ALU shifts the sums and clips them.

One block of weights serves all positions and all channels. Successive micro-ops add to different accumulators, since
a second addition to one waits for the first: the planes of a tile are micro-ops, the outputs of a plane are loops. A
plane with a single output has its window's positions as loops.
"""

from __future__ import annotations

from hilt.network.pool_tiles import Averaging, PoolingLayer, PoolTile, PoolWriter
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.vta.accelerator import Accelerator
from hilt.vta.isa import Opcode


class AveragePoolWriter(PoolWriter):
    """Writes an average pooling whose tiles are `rows` output rows of one plane, or all rows of `planes` planes."""

    def __init__(
        self, pool: PoolingLayer, averaging: Averaging, rows: int, planes: int, accelerator: Accelerator
    ) -> None:
        super().__init__(pool, rows, planes, accelerator, copied=0)
        self._averaging = averaging
        fewest = min(planes, pool.planes % planes or planes)
        self._looped = pool.out == (1, 1) and (accelerator.hazards == "interlock" or fewest >= HAZARD_DISTANCE)
        """Whether a window's positions are loops. Between two additions to one sum lie a tile's planes alone then."""
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
            source = place % self.places * self.planes * self.box
            self._first.append(len(self.uops))
            for tap in self._taps:
                self.uops += [
                    (self.begin(place) + plane * outputs, source + plane * self.box + tap)
                    for plane in range(self._planes_at(place))
                ]

    def _planes_at(self, place: int) -> int:
        """Return the most planes of a tile whose number is `place` modulo two."""
        return max(1, min(self.planes, self.pool.planes - place * self.planes))

    def compute(self, tile: PoolTile) -> None:
        """Clear the sums, add the window's positions, then shift and clip."""
        pool = self.pool
        first = self._first[tile.number % 2]
        made = tile.planes * tile.rows * pool.out[1]
        self.clear(first, made)
        loops = self._loops(tile)
        for number in range(len(self._taps)):
            begin = first + number * self._planes_at(tile.number % 2)
            self.compute_with(Opcode.GEMM, begin, begin + tile.planes, **loops)
        self.round_and_clip(first, made, self._averaging.shift, self._averaging.clip)

    def _loops(self, tile: PoolTile) -> dict[str, int]:
        """Return the loops of a GEMM: over the window's positions, or over the outputs of one position."""
        pool = self.pool
        if self._looped:
            high, wide = pool.kernel
            return {"iter_out": high, "iter_in": wide, "src_factor_out": pool.wide, "src_factor_in": 1}
        return {
            "iter_out": tile.rows,
            "iter_in": pool.out[1],
            "dst_factor_out": pool.out[1],
            "dst_factor_in": 1,
            "src_factor_out": pool.stride[0] * pool.wide,
            "src_factor_in": pool.stride[1],
        }
