from __future__ import annotations

import numpy as np
import pytest

from hilt.tune.untried import Untried


def test_every_index_is_drawn_once() -> None:
    untried = Untried(50)
    for index in (3, 40):
        untried.take(index)
    generator = np.random.default_rng(0)
    drawn = [untried.draw(generator) for _ in range(10)]
    untried.take(next(index for index in range(50) if index in untried))
    drawn += [untried.draw(generator) for _ in range(37)]
    assert len(set(drawn)) == 47 and not {3, 40} & set(drawn)
    assert len(untried) == 0
    with pytest.raises(IndexError):
        untried.draw(generator)


def test_taken_between_draws_after_half_way_is_not_drawn_again() -> None:
    untried = Untried(10)
    generator = np.random.default_rng(0)
    seen = {untried.draw(generator) for _ in range(6)}
    free = next(index for index in range(10) if index in untried)
    untried.take(free)
    seen |= {untried.draw(generator) for _ in range(3)}
    assert seen == set(range(10)) - {free}


def test_draws_are_uniform_before_and_after_half_way() -> None:
    """Chi-squared over which of 8 indices comes first, and which comes seventh."""
    counts = np.zeros((2, 8))
    for seed in range(4000):
        untried, generator = Untried(8), np.random.default_rng(seed)
        order = [untried.draw(generator) for _ in range(8)]
        counts[0, order[0]] += 1
        counts[1, order[6]] += 1
    assert (((counts - 500) ** 2 / 500).sum(axis=1) < 24.3).all()  # 7 degrees of freedom, p = 0.001


def test_a_huge_space_costs_nothing() -> None:
    untried = Untried(10**12)
    assert 0 <= untried.draw(np.random.default_rng(0)) < 10**12
    assert len(untried) == 10**12 - 1


@pytest.mark.parametrize("index", [-1, 10, 4])
def test_only_a_free_index_can_be_taken(index: int) -> None:
    untried = Untried(10)
    untried.take(4)
    with pytest.raises(ValueError, match=f"configuration {index} is not free"):
        untried.take(index)
