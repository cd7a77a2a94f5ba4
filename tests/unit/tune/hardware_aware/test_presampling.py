from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.schedule.space import Knob, Space
from hilt.tune.hardware_aware.presampling import Presamples, neighbours, presample, sample_uniformly

from ..grids import Grid, Ints


class Check:
    """The validity of a grid, and the indices checked, turn by turn."""

    def __init__(self, grid: Grid) -> None:
        self.turns: list[list[int]] = []
        self.valid = np.array([grid.measure(index).microseconds is not None for index in range(len(grid))])

    def __call__(self, indices: Ints) -> np.ndarray:
        self.turns.append(indices.tolist())
        return np.asarray(self.valid[indices])


grids = st.builds(
    Grid, st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple), st.floats(0.05, 1), st.integers(0, 9)
)


def around(grid: Grid, index: int) -> set[int]:
    """Neighbours by the definition: Manhattan distance 1."""
    positions = grid.positions(np.arange(len(grid)))
    return set(np.flatnonzero(np.abs(positions - positions[index]).sum(axis=1) == 1).tolist())


@given(grids, st.integers(1, 300), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_every_turn_is_one_of_algorithm_1(grid: Grid, count: int, parallel: int, seed: int) -> None:
    check = Check(grid)
    found = presample(grid, check, count, parallel, np.random.default_rng(seed))
    assert len(found.indices) == len(set(found.indices.tolist())) == min(count, len(grid))
    assert (found.valid == check.valid[found.indices]).all()
    assert [index for turn in check.turns for index in turn] == found.indices.tolist()
    known: set[int] = set()
    for turn, following in zip(check.turns, check.turns[1:], strict=False):
        known |= set(turn)
        assert 0 < len(following) <= parallel and not known & set(following)
        close = set().union(*(around(grid, index) for index in turn if check.valid[index])) - known
        invalid = sum(not check.valid[index] for index in turn)
        left = min(count, len(grid)) - len(known)
        strangers = min(invalid, len(grid) - len(known | close))
        if close or strangers:  # else the turn left no candidates, and the next starts anew
            assert len(set(following) - close) <= strangers
            assert len(following) == min(parallel, left, len(close) + strangers)


def test_it_finds_far_more_valid_ones_than_a_uniform_sample() -> None:
    grid = Grid((12, 10, 8, 6, 4), valid_share=0.03, seed=2)
    check = Check(grid)

    def found(presamples: Presamples) -> int:
        return int(presamples.valid.sum())

    smart = [found(presample(grid, check, 600, 50, np.random.default_rng(seed))) for seed in range(10)]
    plain = [found(sample_uniformly(grid, check, 600, np.random.default_rng(seed))) for seed in range(10)]
    assert min(smart) > 3 * max(plain), (smart, plain)


def test_a_uniform_sample_is_uniform() -> None:
    """Chi-squared over the first of 8, with 7 degrees of freedom, p = 0.001."""
    grid = Grid((8,))
    firsts = [
        int(sample_uniformly(grid, Check(grid), 3, np.random.default_rng(seed)).indices[0]) for seed in range(2000)
    ]
    assert ((np.bincount(firsts, minlength=8) - 250) ** 2 / 250).sum() < 24.3


def test_neighbours_are_those_of_the_space() -> None:
    space = Space([Knob("a", (1, 2, 4), True), Knob("b", (1,), False), Knob("c", (0, 1, 2, 3), False)])
    for index in range(len(space)):
        assert neighbours(space, np.array([index])).tolist() == space.neighbours(index).tolist()
    both = {*space.neighbours(0).tolist(), *space.neighbours(7).tolist()}
    assert neighbours(space, np.array([0, 7])).tolist() == sorted(both)
    assert neighbours(space, np.array([], dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("valid", [True, False])
def test_a_huge_space_is_never_listed(valid: bool) -> None:
    space = Space([Knob(f"k{knob}", tuple(range(60)), False) for knob in range(7)])
    found = presample(space, lambda indices: np.full(len(indices), valid), 1000, 50, np.random.default_rng(0))
    assert len(set(found.indices.tolist())) == 1000
