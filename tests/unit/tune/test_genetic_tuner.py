from __future__ import annotations

import numpy as np
import pytest

from hilt.trial import Outcome
from hilt.tune import Feedback
from hilt.tune.genetic_tuner import GeneticOptions, GeneticTuner, cross_over, draw_parents, mutate
from hilt.tune.metrics import trials_to_within
from hilt.tune.options import TunerOptionError
from hilt.tune.plain_tuners import RandomOptions, RandomTuner

from . import conformance
from .grids import Grid


def test_parents_are_two_and_as_likely_as_drawn_one_after_the_other() -> None:
    fitness, draws = np.array([0.0, 1.0, 2.0, 3.0]), 60_000
    mothers, fathers = draw_parents(fitness, draws, np.random.default_rng(0))
    assert (mothers != fathers).all()
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (np.minimum(mothers, fathers), np.maximum(mothers, fathers)), 1 / draws)
    chances = fitness / fitness.sum()
    for low in range(4):
        for high in range(low + 1, 4):
            a, b = chances[low], chances[high]
            assert pairs[low, high] == pytest.approx(a * b / (1 - a) + b * a / (1 - b), abs=0.01)


def test_failures_are_parents_where_there_is_nothing_else() -> None:
    mothers, fathers = draw_parents(np.zeros(3), 3000, np.random.default_rng(0))
    assert np.bincount(np.concatenate([mothers, fathers])) / 6000 == pytest.approx([1 / 3] * 3, abs=0.03)


def test_a_child_is_its_mother_up_to_a_point_and_its_father_after() -> None:
    mothers, fathers = np.zeros((4000, 5), dtype=np.int64), np.ones((4000, 5), dtype=np.int64)
    children = cross_over(mothers, fathers, np.random.default_rng(0))
    assert (np.diff(children, axis=1) >= 0).all()
    points = np.bincount((children == 0).sum(axis=1), minlength=5) / 4000
    assert points == pytest.approx([0.2] * 5, abs=0.03)  # 0: all of the father


def test_mutation_redraws_a_tenth_of_the_knobs() -> None:
    sizes = np.array([2, 4, 1])
    children = np.tile([0, 3, 0], (40_000, 1))
    mutated = mutate(children, sizes, 0.1, np.random.default_rng(0))
    assert (mutated < sizes).all()
    # A knob of n values that is redrawn has another one with (n - 1) / n.
    assert (mutated != children).mean(axis=0) == pytest.approx([0.05, 0.075, 0], abs=0.005)


def test_the_elite_is_the_best_of_all_so_far() -> None:
    grid = Grid((8, 6, 6, 2), seed=3)
    tuner = GeneticTuner(grid, 0, GeneticOptions(population=30))
    told = conformance.run(tuner, 120, 30, grid.measure, lag=False)
    best = sorted(told[:90], key=lambda feedback: feedback.microseconds or np.inf)[:3]
    assert list(tuner._elite) == [feedback.index for feedback in best]


def test_results_that_come_late_are_parents_of_the_next_generation() -> None:
    grid = Grid((8, 6, 6, 2), seed=3)
    tuner = GeneticTuner(grid, 0, GeneticOptions(population=8, elite=1))
    first = tuner.ask(8)
    tuner.tell([grid.measure(index) for index in first[:7]])
    second = tuner.ask(8)
    tuner.tell([Feedback(first[7], Outcome.OK, 1e-3)])  # far better than all others
    tuner.ask(1)
    assert list(tuner._elite) == [first[7]]
    assert len({*first, *second}) == 16


def test_it_needs_fewer_trials_than_random() -> None:
    """Median over five seeds, to within 10% of the best."""
    grid = Grid((10, 8, 6, 4, 2), valid_share=0.25, seed=11)

    def trials(tuner: GeneticTuner | RandomTuner) -> int:
        told = conformance.run(tuner, 1000, 50, grid.measure)
        return trials_to_within([feedback.microseconds for feedback in told], grid.optimum, 0.1) or 1000

    genetic = [trials(GeneticTuner(grid, seed, GeneticOptions())) for seed in range(5)]
    random = [trials(RandomTuner(grid, seed, RandomOptions())) for seed in range(5)]
    assert np.median(genetic) < 0.7 * np.median(random), (genetic, random)


def test_options_that_cannot_be() -> None:
    with pytest.raises(TunerOptionError, match="elite is 0 to population"):
        GeneticOptions(population=2)
    with pytest.raises(TunerOptionError, match="mutation is between 0 and 1, not 2"):
        GeneticOptions(mutation=2)
