"""The loops that a GEMM counts: the cheapest pair of all that there are, found by trying each."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from hilt.schedule.loops import HAZARD_DISTANCE, LOOPS, NO_HAZARD, choose
from hilt.schedule.tiling import Tiling

REDUCES = {"ci", "kh", "kw"}


def tiling_of(*extents: Sequence[int]) -> Tiling:
    """Return tiles by their extents in the order of LOOPS; all have the kernel of the first."""
    columns = dict(zip(("batch", "co", "height", "width", "ci"), np.array(extents).T[:5], strict=True))
    kernel = tuple(extents[0][5:])
    return cast(Tiling, SimpleNamespace(**columns, problem=SimpleNamespace(workload=SimpleNamespace(kernel=kernel))))


def tried(extents: Sequence[int], out: int, into: int) -> tuple[int, int]:
    """Return the micro-ops of a pair of counted loops, and the distance of two updates, by running through them."""
    counted = (out, into)
    sizes = dict(zip(LOOPS, extents, strict=True))
    order = [*(name for name in LOOPS if name in REDUCES), *(name for name in LOOPS if name not in REDUCES)]
    inner = [name for name in order if LOOPS.index(name) not in counted]
    run = [LOOPS[out], LOOPS[into], *inner]
    uops = int(np.prod([sizes[name] for name in inner]))
    last: dict[Any, int] = {}
    distance = NO_HAZARD
    for time, place in enumerate(np.ndindex(*(sizes[name] for name in run))):
        element = tuple(at for name, at in zip(run, place, strict=True) if name not in REDUCES)
        if element in last:
            distance = min(distance, time - last[element])
        last[element] = time
    return uops, distance


def drawn(kernel: tuple[int, int]) -> list[tuple[int, ...]]:
    """Return a few extents of at most 60 products, most of them with several loops of one turn."""
    random = np.random.default_rng(3)
    found = {(1, 1, 1, 1, 1, *kernel), (1, 1, 1, 1, 4, *kernel), (1, 2, 1, 1, 1, *kernel), (1, 1, 1, 2, 3, *kernel)}
    while len(found) < 16:
        extents = (*random.choice([1, 1, 2, 3, 4], 5).tolist(), *kernel)
        if np.prod(extents) <= 60:
            found.add(extents)
    return sorted(found)


@pytest.mark.parametrize("budget", [1, 6, 1000])
@pytest.mark.parametrize("kernel", [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_the_loops_that_are_counted_are_the_best_of_all_pairs(kernel: tuple[int, int], budget: int) -> None:
    every = drawn(kernel)
    choice = choose(tiling_of(*every), np.full(len(every), budget))
    for place, extents in enumerate(every):
        pairs = [(out, into) for out in range(7) for into in range(7) if out != into]
        found = {pair: tried(extents, *pair) for pair in pairs}

        def cost(pair: tuple[int, int], found: dict[Any, tuple[int, int]] = found) -> tuple[bool, bool, int]:
            uops, distance = found[pair]
            return uops > budget, distance < HAZARD_DISTANCE, uops

        chosen = int(choice.out[place]), int(choice.into[place])
        assert cost(chosen) == min(map(cost, pairs)), extents
        assert (choice.uops[place], choice.hazard_distance[place]) == found[chosen], extents
