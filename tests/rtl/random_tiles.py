"""Random ALU instructions with immediate over tiles of accumulators, and others over the same: MIN and MAX that join
them in one pass (vta_chain), and some that only nearly do."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from hilt.vta.isa import AluOpcode, Opcode
from tests.rtl.token_order import Fields

Span = tuple[int, int]
"""First and last accumulator."""


class TileAlus:
    """`depth` accumulators; factors are `limit` at most. Instructions come without their immediate."""

    def __init__(self, random: Random, depth: int, limit: int) -> None:
        self._random, self._depth, self._limit = random, depth, limit
        self.last: Fields | None = None
        """The last one, now and then forgotten."""

    def over_one(self, uops: NDArray[np.uint32]) -> tuple[Fields, Span]:
        """Return an instruction with one micro-op, mostly over accumulators that are all different.

        `uops` holds the destination of each micro-op in the buffer.
        """
        choice = self._random.choice
        bgn = self._random.randrange(len(uops))
        inner, outer = (choice((1, 2, 3, 7, 14, 30)) for _ in range(2))
        room = self._depth - int(uops[bgn])
        if self._random.random() < 0.1:
            inner, outer = min(room, 512), 1
        fields = {
            **{"opcode": Opcode.ALU, "uop_bgn": bgn, "uop_end": bgn + 1, "iter_out": outer, "iter_in": inner},
            **{"dst_factor_in": choice((1, 1, 1, 1, 1, 0, 2))},
            **{"dst_factor_out": max(0, inner + choice((0, 0, 0, 0, -1, 1, room // 30)))},
        }
        span = self._span(fields, uops)
        if span is None:
            fields |= {"iter_out": 1, "iter_in": 1, "dst_factor_out": min(fields["dst_factor_out"], self._limit)}
            span = int(uops[bgn]), int(uops[bgn])
        return self._kept(fields | {"alu_opcode": choice((AluOpcode.SHR, AluOpcode.ADD, AluOpcode.MAX))}), span

    def over_the_same(self, uops: NDArray[np.uint32]) -> tuple[Fields, Span]:
        """Return an instruction like the last one.

        It is mostly MIN or MAX. Otherwise it is another operation, or has slightly different indices.
        """
        assert self.last is not None
        fields = dict(self.last)
        if self._random.random() < 0.2:
            names = "uop_bgn", "uop_end", "iter_out", "iter_in", "dst_factor_out", "dst_factor_in", "src_factor_in"
            name = self._random.choice(names)
            fields[name] = fields.get(name, 0) + self._random.choice((-1, 1))
        span = self._span(fields, uops)
        if span is None:
            fields = dict(self.last)
            span = self._span(fields, uops)
        if span is None:  # other micro-ops have come in between
            return self.over_one(uops)
        others = AluOpcode.SHR, AluOpcode.ADD
        operation = self._random.choice((AluOpcode.MIN, AluOpcode.MAX) if self._random.random() < 0.9 else others)
        return self._kept(fields | {"alu_opcode": operation}), span

    def _kept(self, fields: Fields) -> Fields:
        self.last = fields if self._random.random() < 0.8 else None
        return fields

    def _span(self, fields: Fields, uops: NDArray[np.uint32]) -> Span | None:
        """Return the span, or None if an accumulator does not exist or the instruction has no such field."""
        loops = fields["iter_out"], fields["iter_in"]
        factors = fields["dst_factor_out"], fields["dst_factor_in"], fields.get("src_factor_in", 0)
        if not 0 <= fields["uop_bgn"] < fields["uop_end"] <= len(uops):
            return None
        if min(loops) < 1 or min(factors) < 0 or max(factors) > self._limit:
            return None
        mine = uops[fields["uop_bgn"] : fields["uop_end"]]
        last = int(mine.max()) + (loops[0] - 1) * factors[0] + (loops[1] - 1) * factors[1]
        return (int(mine.min()), last) if last < self._depth else None
