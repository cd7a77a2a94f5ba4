from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.tune.hardware_aware.presampling import Presamples, balanced_epoch, spread

from ..grids import Grid, Ints


def spreadness(positions: Ints, rows: tuple[int, ...]) -> int:
    return sum(int(np.abs(positions[i] - positions[j]).sum()) for i, j in combinations(rows, 2))


points = st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=0, max_size=9, unique=True).map(
    lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 3)
)


@pytest.mark.slow
@given(points, st.integers(0, 9))
def test_no_exchange_improves_it_and_it_is_half_of_the_best_at_least(positions: Ints, count: int) -> None:
    count = min(count, len(positions))
    rows = tuple(spread(positions, count).tolist())
    assert len(rows) == count and list(rows) == sorted(set(rows))
    reached = spreadness(positions, rows)
    every = [spreadness(positions, other) for other in combinations(range(len(positions)), count)]
    assert 2 * reached >= max(every)
    for leaves in rows:
        for enters in set(range(len(positions))) - set(rows):
            assert spreadness(positions, (*(set(rows) - {leaves}), enters)) <= reached


def test_of_a_thousand_it_comes_near_the_upper_bound() -> None:
    """The spread of 25 among a thousand comes near to the limit that no choice can exceed.

    At the limit half of the 25 lie at either end of each of seven knobs of eight values; a random choice reaches 5500.
    """
    positions = np.random.default_rng(0).integers(0, 8, (1000, 7))
    assert spreadness(positions, tuple(spread(positions, 25).tolist())) > 0.9 * 7 * 7 * 12 * 13


@pytest.mark.parametrize(
    ("valid", "invalid", "expected"),
    [
        (400, 600, (25, 25)),
        (10, 600, (10, 40)),
        (400, 12, (25, 12)),
        (0, 600, (0, 50)),
        (30, 0, (25, 0)),
        (3, 4, (3, 4)),
    ],
)
def test_the_balance_is_the_papers(valid: int, invalid: int, expected: tuple[int, int]) -> None:
    """valid = min(N_valid, 25), invalid = min(N_invalid, 50 - valid); valid ones come first."""
    grid = Grid((20, 10, 10))
    indices = np.random.default_rng(1).permutation(len(grid))[: valid + invalid]
    is_valid = np.random.default_rng(2).permutation(np.arange(valid + invalid) < valid)
    epoch = balanced_epoch(grid, Presamples(indices, is_valid), 50)
    verdict = dict(zip(indices.tolist(), is_valid.tolist(), strict=True))
    assert len(set(epoch.tolist())) == len(epoch) == sum(expected)
    assert [verdict[index] for index in epoch.tolist()] == [True] * expected[0] + [False] * expected[1]
