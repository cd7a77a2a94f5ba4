"""Where the input boxes of tiles lie along one axis, and what of them is padding."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hilt.schedule.tiling import IntArray


class Span(NamedTuple):
    """An input box along one axis: how many rows (columns), and how many of them lie before and after the input."""

    size: int
    before: int
    after: int

    @property
    def inside(self) -> int:
        return self.size - self.before - self.after


@lru_cache(maxsize=256)  # few tile sizes occur in a space
def axis_spans(
    size: int, out: int, tile: int, kernel: int, stride: int, padding: int, step: int
) -> tuple[IntArray, tuple[Span, ...], IntArray]:
    """Of the tiles along an axis of `size` inputs and `out` outputs, every `step`-th row of the input being loaded: the
    first row of the input in each box, the different spans, and which of them each box has."""
    spans: dict[Span, int] = {}
    starts, kinds = [], []
    for first in range(0, out, tile):
        start = first * stride - padding
        box = (min(tile, out - first) - 1) * (stride // step) + kernel
        before = min(max(-(start // step), 0), box)
        after = min(max(box + (start - size) // step, 0), box - before)
        starts.append(start + before * step)
        kinds.append(spans.setdefault(Span(box, before, after), len(spans)))
    return np.array(starts), tuple(spans), np.array(kinds)
