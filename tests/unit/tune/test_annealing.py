from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.tune.annealing import Annealing, AnnealingSchedule, KnobMoves, acceptance_probability

from .grids import Grid


def test_temperature_falls_linearly_from_one() -> None:
    schedule = AnnealingSchedule(iterations=4)
    assert [schedule.temperature(i) for i in range(5)] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert AnnealingSchedule().temperature(499) == pytest.approx(1 - 499 / 501)


def test_acceptance_is_the_rule_of_tvm() -> None:
    old = np.array([0.5, 0.5, 0.5, 0.5], dtype=np.float32)
    new = np.array([0.5, 0.25, 5.0, -9.5], dtype=np.float32)
    cases = acceptance_probability(old, new, 0.5)
    assert cases == pytest.approx([1.0, np.exp(-0.25 / 0.50001), np.e, np.exp(-10 / 0.50001)])
    # Cold: only steps that are not worse are taken.
    assert acceptance_probability(old, new, 0.0) == pytest.approx([1.0, 0.0, np.e, 0.0], abs=1e-9)


@given(
    counts=st.lists(st.integers(1, 6), min_size=1, max_size=6).filter(lambda counts: max(counts) > 1),
    rows=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_move_changes_one_knob_and_stays_in_the_space(counts: list[int], rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = np.array(counts)
    points = generator.integers(0, sizes, (rows, len(counts)))
    knobs, before, after = KnobMoves(sizes).draw(points, generator)
    assert (before == points[np.arange(rows), knobs]).all()
    assert ((after >= 0) & (after < sizes[knobs]) & (after != before)).all()


def test_a_move_is_as_likely_as_drawing_knob_and_value_until_the_point_moves() -> None:
    counts, rows = np.array([2, 5, 1]), 60_000
    knobs, _, after = KnobMoves(counts).draw(np.tile([1, 3, 0], (rows, 1)), np.random.default_rng(0))
    # A draw moves the first knob with 1/3 * 1/2, the second with 1/3 * 4/5, evenly over its four other values.
    assert (knobs == 0).mean() == pytest.approx((1 / 2) / (1 / 2 + 4 / 5), abs=0.01)
    values = np.bincount(after[knobs == 1], minlength=5) / (knobs == 1).sum()
    assert values == pytest.approx([0.25, 0.25, 0.25, 0, 0.25], abs=0.01)


GRID = Grid((6, 5, 4, 3, 2), seed=3)
SCORES = np.random.default_rng(1).normal(size=len(GRID)).astype(np.float32)


def search(allowed: object, count: int = 20, schedule: AnnealingSchedule | None = None) -> list[tuple[float, int]]:
    annealing = Annealing(GRID, schedule or AnnealingSchedule(), np.random.default_rng(7))
    return annealing.search(lambda indices: SCORES[indices], count, allowed)  # type: ignore[arg-type]


def test_it_finds_the_best_of_a_space_it_can_walk_through() -> None:
    # 500 iterations of 128 points over 720 points: everything is seen.
    schedule = AnnealingSchedule(patience=500)
    found = search(range(len(GRID)), schedule=schedule)
    best = np.argsort(-SCORES, kind="stable")[:20]
    assert [index for _, index in found] == best.tolist()
    assert [score for score, _ in found] == SCORES[best].tolist()


def test_what_was_visited_is_not_proposed() -> None:
    allowed = set(range(len(GRID))) - set(np.argsort(-SCORES)[:10].tolist())
    assert {index for _, index in search(allowed, 40)} <= allowed


def test_it_ends_when_patience_runs_out() -> None:
    calls = 0

    def score(indices: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.zeros(len(indices), dtype=np.float32)

    annealing = Annealing(GRID, AnnealingSchedule(points=64, patience=50), np.random.default_rng(0))
    annealing.search(score, 8, range(len(GRID)))
    assert calls == 1 + 50  # the starting points fill the heap; nothing after is better


def test_points_stay_between_searches() -> None:
    annealing = Annealing(GRID, AnnealingSchedule(iterations=50), np.random.default_rng(0))
    seen: list[np.ndarray] = []

    def score(indices: np.ndarray) -> np.ndarray:
        seen.append(indices)
        return SCORES[indices]

    annealing.search(score, 8, range(len(GRID)))
    first_start = seen[0]
    seen.clear()
    annealing.search(score, 8, range(len(GRID)))
    assert SCORES[seen[0]].mean() > SCORES[first_start].mean() + 0.5  # it goes on from where it had climbed to


@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 2**16))
def test_what_it_proposes_has_the_score_of_its_index(counts: list[int], seed: int) -> None:
    grid = Grid(tuple(counts), seed=seed)
    scores = np.random.default_rng(seed).normal(size=len(grid)).astype(np.float32)
    annealing = Annealing(grid, AnnealingSchedule(iterations=20, points=8), np.random.default_rng(seed))
    found = annealing.search(lambda indices: scores[indices], 12, range(len(grid)))
    assert len({index for _, index in found}) == len(found)
    assert [score for score, _ in found] == [scores[index] for _, index in found]
    assert annealing._points is not None
    positions = annealing._points
    assert (grid.positions(grid.indices(positions)) == positions).all()
