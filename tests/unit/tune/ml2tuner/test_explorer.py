from __future__ import annotations

import numpy as np

from hilt.tune.annealing import Annealing, AnnealingSchedule
from hilt.tune.ml2tuner.tuner import explore

from ..grids import Grid, Ints

GRID = Grid((6, 5, 4, 3, 2), seed=3)
SCORES = np.random.default_rng(1).normal(size=len(GRID)).astype(np.float32)


def annealing(iterations: int = 500) -> Annealing:
    """128 points over 720 points, for long enough to see every one of them."""
    return Annealing(GRID, AnnealingSchedule(iterations, patience=iterations), np.random.default_rng(7))


def test_it_finds_the_best_of_the_probably_valid() -> None:
    valid = np.arange(len(GRID)) % 3 == 0
    allowed = set(range(len(GRID))) - {int(np.argmax(np.where(valid, SCORES, -9)))}
    found = explore(annealing(), lambda indices: SCORES[indices], lambda indices: valid[indices], 20, allowed)
    best = [index for index in np.argsort(-SCORES).tolist() if valid[index] and index in allowed]
    assert found.tolist() == best[:20]


def test_it_goes_on_until_enough_look_valid() -> None:
    """The search goes on until enough configurations look valid.

    It does so also if V rejects the best nine tenths by P's score.
    """
    worst = np.argsort(SCORES)[: len(GRID) // 10]
    valid = np.isin(np.arange(len(GRID)), worst)
    found = explore(annealing(), lambda indices: SCORES[indices], lambda indices: valid[indices], 20, range(len(GRID)))
    assert found.tolist() == worst[::-1][:20].tolist()


def test_a_model_that_rejects_all_ends_the_search() -> None:
    asked: list[Ints] = []

    def rejects(indices: Ints) -> np.ndarray:
        asked.append(indices)
        return np.zeros(len(indices), dtype=np.bool_)

    found = explore(annealing(), lambda indices: SCORES[indices], rejects, 20, range(len(GRID)))
    assert len(found) == 0
    assert sorted(np.concatenate(asked).tolist()) == list(range(len(GRID)))
    assert [len(each) for each in asked[:-1]] == [20, 40, 80, 160, 320]


def test_a_space_that_is_used_up_gives_its_rest() -> None:
    found = explore(
        annealing(), lambda indices: SCORES[indices], lambda indices: np.ones(len(indices), np.bool_), 20, {5, 70}
    )
    assert set(found.tolist()) == {5, 70}
