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


def test_visited_configurations_are_not_proposed() -> None:
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
def test_a_proposal_has_the_score_of_its_index(counts: list[int], seed: int) -> None:
    grid = Grid(tuple(counts), seed=seed)
    scores = np.random.default_rng(seed).normal(size=len(grid)).astype(np.float32)
    annealing = Annealing(grid, AnnealingSchedule(iterations=20, points=8), np.random.default_rng(seed))
    found = annealing.search(lambda indices: scores[indices], 12, range(len(grid)))
    assert len({index for _, index in found}) == len(found)
    assert [score for score, _ in found] == [scores[index] for _, index in found]
    assert annealing._points is not None
    positions = annealing._points
    assert (grid.positions(grid.indices(positions)) == positions).all()


def test_a_better_candidate_extends_the_walk_by_its_patience() -> None:
    """The last better candidate comes at iteration 29: the walk ends 50 iterations after it, as in TVM."""
    calls = 0

    def score(indices: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.full(len(indices), calls if calls <= 31 else 0, dtype=np.float32)

    annealing = Annealing(GRID, AnnealingSchedule(points=64, patience=50), np.random.default_rng(0))
    annealing.search(score, 8, range(len(GRID)))
    assert calls == 1 + 30 + 49


def test_the_walk_ends_after_its_iterations_even_if_it_improves() -> None:
    calls = 0

    def score(indices: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.full(len(indices), calls, dtype=np.float32)

    annealing = Annealing(GRID, AnnealingSchedule(iterations=20, points=4, patience=50), np.random.default_rng(0))
    annealing.search(score, 8, range(len(GRID)))
    assert calls == 1 + 20
    assert annealing.steps == 20
    annealing.search(score, 8, range(len(GRID)))
    assert annealing.steps == 40


def test_defaults_are_tvms() -> None:
    assert AnnealingSchedule() == AnnealingSchedule(iterations=500, points=128, patience=50)


def test_a_space_of_one_point_is_not_walked_and_no_more_points_start_than_there_are() -> None:
    asked: list[int] = []

    def score(indices: np.ndarray) -> np.ndarray:
        asked.append(len(indices))
        return np.ones(len(indices), dtype=np.float32)

    assert Annealing(Grid((1, 1)), AnnealingSchedule(), np.random.default_rng(0)).search(score, 3, {0}) == [(1.0, 0)]
    assert asked == [1]
    Annealing(Grid((2, 2)), AnnealingSchedule(patience=1), np.random.default_rng(0)).search(score, 3, range(4))
    assert asked[1] == 4


def test_the_best_come_in_order_of_score_and_then_of_index() -> None:
    grid = Grid((3, 2))
    scores = np.array([1, 2, 2, 0, 1, 3], dtype=np.float32)
    annealing = Annealing(grid, AnnealingSchedule(), np.random.default_rng(0))
    found = annealing.search(lambda indices: scores[indices], 6, range(6))
    assert found == [(3.0, 5), (2.0, 1), (2.0, 2), (1.0, 0), (1.0, 4), (0.0, 3)]


def test_points_stay_where_accepted_steps_led_them() -> None:
    """Scores so far apart that only a step that is not worse is accepted: the walk can be followed from outside."""
    annealing = Annealing(GRID, AnnealingSchedule(iterations=30, points=16, patience=30), np.random.default_rng(0))
    seen: list[np.ndarray] = []

    def score(indices: np.ndarray) -> np.ndarray:
        seen.append(indices.copy())
        return SCORES[indices] * 1e6

    annealing.search(score, 8, range(len(GRID)))
    at = seen[0]
    for moved in seen[1:]:
        one_knob = (GRID.positions(moved) != GRID.positions(at)).sum(axis=1)
        assert (one_knob == 1).all()
        at = np.where(SCORES[moved] >= SCORES[at], moved, at)
    seen.clear()
    annealing.search(score, 8, range(len(GRID)))
    assert (seen[0] == at).all()


def test_a_space_of_two_points_is_walked() -> None:
    annealing = Annealing(Grid((2,), seed=1), AnnealingSchedule(points=1), np.random.default_rng(0))
    assert annealing.search(lambda indices: indices.astype(np.float32), 2, range(2)) == [(1.0, 1), (0.0, 0)]


def test_the_first_points_are_distinct() -> None:
    """The walk starts from every point of the space, so it finds the best without a step."""
    schedule = AnnealingSchedule(points=len(GRID), iterations=0)
    order = np.argsort(-SCORES)[:20]
    assert search(range(len(GRID)), schedule=schedule) == [(float(SCORES[index]), int(index)) for index in order]
