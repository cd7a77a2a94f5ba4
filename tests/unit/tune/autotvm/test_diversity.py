from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.tune.autotvm.planned import pick_diverse
from hilt.tune.autotvm.trees import AutoTVMOptions, trees_tuner

from .. import conformance
from ..grids import Grid


@given(
    count=st.integers(1, 4),
    rows=st.integers(1, 9),
    knobs=st.integers(1, 4),
    weight=st.floats(0, 2),
    seed=st.integers(0),
)
def test_greedy_is_within_its_bound_of_the_best_set_and_each_step_is_the_best_one(
    count: int, rows: int, knobs: int, weight: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    scores, positions = generator.random(rows), generator.integers(0, 3, (rows, knobs))

    def worth(chosen: tuple[int, ...]) -> float:
        covered = sum(len({int(positions[row, knob]) for row in chosen}) for knob in range(knobs))
        return float(sum(scores[row] for row in chosen) + weight * covered)

    picked = pick_diverse(scores, positions, count, weight).tolist()
    count = min(count, rows)
    assert len(set(picked)) == count
    for place in range(count):
        before = tuple(picked[:place])
        steps = [worth((*before, row)) for row in range(rows) if row not in before]
        assert worth((*before, picked[place])) == pytest.approx(max(steps))
    best = max(worth(chosen) for chosen in combinations(range(rows), count))
    assert worth(tuple(picked)) >= (1 - 1 / np.e) * best - 1e-9


def test_without_weight_it_is_the_best_in_order_and_with_all_weight_it_covers() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    positions = np.array([[0, 0], [0, 0], [1, 0], [2, 1]])
    assert pick_diverse(scores, positions, 3, 0.0).tolist() == [0, 1, 2]
    assert pick_diverse(scores, positions, 3, 0.15).tolist() == [0, 3, 2]
    assert pick_diverse(scores, positions, 9, 1.0).tolist() == [0, 3, 2, 1]


def test_diverse_plans_cover_more_of_the_knobs() -> None:
    """The same random start; then plans of 32 from the best 96, or the best 32."""
    grid = Grid((10, 8, 6, 4), seed=2)

    def values_covered(diversity: int) -> int:
        options = AutoTVMOptions(plan_size=32, random_share=0.0, diversity=diversity, diversity_weight=10.0)
        told = conformance.run(trees_tuner(grid, 0, options, grid.features), 64, 32, grid.measure, lag=False)
        plan = grid.positions(np.array([feedback.index for feedback in told[32:]]))
        return sum(len(np.unique(column)) for column in plan.T)

    assert values_covered(3) > values_covered(0) + 3
