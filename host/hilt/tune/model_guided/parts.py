"""Parts of the space that a step in the board's latencies may separate, and those that no trial has seen yet.

Models explain measurements only. Where all trials lie on one side of a step, one clock explains them, and the
other side is predicted wrong. So each part must have a valid trial before the models' confidence holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations

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
_MOST_CUTS = 256
"""Most cuts of a number's range that a step may lie at; quantiles, if it has more values."""
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
        self.masks: Bools = _distinct(_parts(candidates), len(candidates))
        """Whether each row is in each part, (rows, parts)."""
        self.sides: Bools = _distinct(chain(self.masks.T, _below(candidates)), len(candidates))
        """The same for the parts, then all below each cut: what one step may separate, (rows, sides)."""

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


def _distinct(masks: Iterable[Bools], count: int) -> Bools:
    """Return the different masks (rows, masks) of so many rows that hold neither too few rows nor all."""
    distinct = {np.packbits(mask).tobytes(): mask for mask in masks if _LEAST <= mask.mean() < 1}
    return np.ascontiguousarray(np.array(list(distinct.values()), dtype=np.bool_).reshape(-1, count).T)


def _parts(candidates: Candidates) -> Iterator[Bools]:
    """Yield masks (n,) of parts: values of a knob, ranges of products, sums and fills, and alignments."""
    knobs = candidates.knobs
    for codes in knobs.codes.T:
        for value in np.unique(codes):
            yield codes == value
    for number in _numbers(candidates):
        cuts = np.unique(np.quantile(number, _EDGES)) if len(number) else np.zeros(0)
        places = np.searchsorted(cuts, number, side="left")
        for place in np.unique(places):
            yield places == place
    for product in _products(candidates):
        for modulus in _MODULI:
            aligned = np.rint(product) % modulus == 0
            yield aligned
            yield ~aligned


def _below(candidates: Candidates) -> Iterator[Bools]:
    """Yield masks (n,) of the rows below each cut of a product, sum or fill."""
    for number in _numbers(candidates):
        cuts = np.unique(number)[1:]
        if len(cuts) > _MOST_CUTS:
            cuts = np.unique(np.quantile(number, np.linspace(0, 1, _MOST_CUTS + 2)[1:-1]))
        for cut in cuts:
            yield number < cut


def _numbers(candidates: Candidates) -> Iterator[Floats]:
    """Yield products and sums of knobs and the fills, each (n,)."""
    yield from _products(candidates)
    yield from (some.sum(axis=1) for some in _together(candidates) if some.shape[1] > 1)
    for name in _FILLS:
        if name in candidates.hidden.names:
            yield candidates.hidden.column(name).astype(np.float64)


def _products(candidates: Candidates) -> Iterator[Floats]:
    return (some.prod(axis=1) for some in _together(candidates))


def _together(candidates: Candidates) -> Iterator[Floats]:
    """Yield the values (n, size) of each choice of knobs."""
    values = np.rint(np.exp2(candidates.knobs.scaled))
    for size in range(1, _TOGETHER + 1):
        for chosen in combinations(range(values.shape[1]), size):
            yield values[:, chosen]
