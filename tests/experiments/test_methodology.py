"""The FGCS 2024 score: that of autotuning_methodology itself, and its fixed points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hilt_experiments.methodology import END, START, Methodology

Floats = npt.NDArray[np.float64]


def latencies(seed: int = 0, count: int = 400) -> Floats:
    return np.random.default_rng(seed).lognormal(1, 0.6, count)


def random_runs(valid: Floats, trials: int, runs: int = 40) -> list[Floats]:
    generator = np.random.default_rng(1)
    return [np.minimum.accumulate(generator.permutation(valid)[:trials]) for _ in range(runs)]


def test_the_optimum_at_once_scores_one_and_random_search_nothing() -> None:
    # The package's expected place of random search is one too good, which shows where good ones are few.
    valid = 1 + np.abs(np.random.default_rng(0).standard_normal(20_000))
    space = Methodology(valid)
    assert space.last_trial < 100
    assert space.score([np.full(300, valid.min())]) == pytest.approx(1)
    assert abs(space.score(random_runs(valid, 100, 400))) < 0.06


def test_a_run_keeps_its_best_and_has_none_before_its_first_valid_trial() -> None:
    space = Methodology(latencies())
    best = np.minimum.accumulate(latencies(0)[:200])
    ended = best[:60]
    assert space.score([ended]) == pytest.approx(space.score([np.concatenate([ended, np.full(300, ended[-1])])]))
    late = best.copy()
    late[:5] = np.nan
    assert np.isfinite(space.score([late, best]))
    assert space.score([np.full(50, np.nan)]) < 0


def test_a_space_without_a_way_to_the_optimum_is_refused() -> None:
    with pytest.raises(ValueError, match="at the optimum at once"):
        Methodology(np.ones(30))


def test_range_random_search_curve_and_score_are_those_of_the_package() -> None:
    pytest.importorskip("autotuning_methodology")
    from autotuning_methodology.baseline import RandomSearchCalculatedBaseline
    from autotuning_methodology.curves import StochasticOptimizationAlgorithm, get_indices_in_distribution
    from autotuning_methodology.searchspace_statistics import SearchspaceStatistics

    for seed in range(3):
        valid = latencies(seed)
        stats: Any = object.__new__(SearchspaceStatistics)
        ascending = np.sort(valid)
        stats.__dict__.update(minimization=True, objective_performances_total_sorted=ascending)
        stats.__dict__.update(objective_performances_total_sorted_nan=ascending, objective_performances_total=valid)
        ones = np.ones(len(valid))
        stats.__dict__.update(objective_times_total_sorted=ones, objective_times_total=ones)
        space = Methodology(valid)
        first, last, start, end = stats.cutoff_point_fevals_time_start_end(START, END)
        assert (start, end) == (first, last) == (space.range[0], space.range[-1])
        baseline = RandomSearchCalculatedBaseline(stats)
        theirs = baseline.get_curve(space.range, "time")
        assert np.allclose(space.random_search, theirs)
        runs = random_runs(valid, 2 * last, 12)
        trials = np.arange(1.0, 2 * last + 1)
        values = np.stack(runs, axis=1)
        times = np.repeat(trials[:, None], len(runs), axis=1)
        curve: Any = object.__new__(StochasticOptimizationAlgorithm)
        curve.__dict__.update(minimization=True, name="x", application_name="x", device_name="x", display_name="x")
        curve.__dict__.update(_x_time=times.copy(), _x_fevals=times.copy(), _y=values.copy())
        x, y, *_ = curve._get_curve_over_time_values_in_range(space.range)
        isotonic = curve.get_isotonic_curve(x, get_indices_in_distribution(y, ascending), space.range)
        assert np.allclose(space.curve(runs), ascending[np.round(isotonic).astype(int)])
        score = baseline.get_standardised_curve(space.range, ascending[np.round(isotonic).astype(int)], "time").mean()
        assert space.score(runs) == pytest.approx(score)
