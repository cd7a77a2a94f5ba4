"""Parts of the space that a step in the board's latencies may separate, and those that no trial has seen yet.

Models explain only what was measured. Where all trials lie on one side of a step, one clock explains them, and the
other side is predicted wrong. So each part must have a valid trial before the models' confidence holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.candidates import Candidates

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

_FILLS = (
    "tile.inp_elements", "tile.wgt_elements", "tile.acc_elements",
    "occupancy.inp", "occupancy.wgt", "occupancy.acc", "occupancy.uop", "bytes.all",
)  # fmt: skip
"""Hidden features whose range must be seen: the fill of each buffer, and the traffic."""
_EDGES = (0.04, 0.1, 0.25, 0.5, 0.75, 0.9, 0.96)
"""Quantiles that cut a number's range into parts."""
_MODULI = (2, 3, 4)
_TOGETHER = 3
"""Most knobs whose product or sum is cut."""
_LEAST = 0.03
"""Least share of the candidates of a part: a smaller one may stay unseen."""
_FAILURES = 2
"""Failed trials after which a part counts as seen: it is probably not valid."""


class Parts:
    """The parts of the space, and how many trials of each ended."""

    def __init__(self, candidates: Candidates) -> None:
        distinct = {np.packbits(part).tobytes(): part for part in _parts(candidates) if _LEAST <= part.mean() < 1}
        parts = np.array(list(distinct.values()), dtype=np.bool_).reshape(-1, len(candidates))
        self.masks: Bools = np.ascontiguousarray(parts.T)
        """Whether each row is in each part, (rows, parts)."""

    def unseen(self, outcomes: Mapping[int, bool], reachable: Bools) -> Bools:
        """Return a mask (parts,) of those with a `reachable` row and no valid trial; `outcomes` are validity by row."""
        rows = np.array(list(outcomes), dtype=np.int64)
        valid = np.array(list(outcomes.values()), dtype=np.bool_)
        seen = self.masks[rows[valid]].any(axis=0) | (self.masks[rows[~valid]].sum(axis=0) >= _FAILURES)
        return np.asarray(self.masks[reachable].any(axis=0) & ~seen)

    def share(self, parts: Bools) -> float:
        """Return the share of these parts among all, 0 to 1."""
        return float(parts.sum() / max(self.masks.shape[1], 1))

    def choose(self, parts: Bools, worth: Floats, count: int) -> Rows:
        """Return up to `count` rows that see the most of these parts, each times the row's `worth` (rows,)."""
        remaining = parts.copy()
        chosen: list[int] = []
        while len(chosen) < count and remaining.any():
            gain = self.masks[:, remaining].sum(axis=1) * worth
            best = int(np.argmax(gain))
            if gain[best] <= 0:
                break
            chosen.append(best)
            remaining &= ~self.masks[best]
        return np.array(chosen, dtype=np.int64)


def _parts(candidates: Candidates) -> Iterator[Bools]:
    """Yield masks (n,) of parts: values of a knob, ranges of products, sums and fills, and alignments."""
    knobs = candidates.knobs
    for codes in knobs.codes.T:
        for value in np.unique(codes):
            yield codes == value
    values = np.exp2(knobs.scaled)
    for size in range(1, _TOGETHER + 1):
        for chosen in combinations(range(values.shape[1]), size):
            some = values[:, chosen]
            product = some.prod(axis=1)
            yield from _ranges(product)
            if size > 1:
                yield from _ranges(some.sum(axis=1))
            for modulus in _MODULI:
                aligned = np.rint(product) % modulus == 0
                yield aligned
                yield ~aligned
    for name in _FILLS:
        if name in candidates.hidden.names:
            yield from _ranges(candidates.hidden.column(name).astype(np.float64))


def _ranges(values: Floats) -> Iterator[Bools]:
    """Yield masks (n,) of the ranges that the quantiles cut."""
    cuts = np.unique(np.quantile(values, _EDGES)) if len(values) else np.zeros(0)
    places = np.searchsorted(cuts, values, side="left")
    for place in np.unique(places):
        yield places == place
