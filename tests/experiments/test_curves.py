"""Tables and ratios of runs, against numbers that were counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.measure.dataset import Dataset
from hilt_experiments.contenders import Contender
from hilt_experiments.curves import convergence_rows, mean_ratio, median_trials, ratio_of_medians, trials_to_reach
from hilt_experiments.ml2tuner import _converged
from hilt_experiments.replay import Protocol
from hilt_experiments.runs import Cell, Runs
from tests.unit.measure.dataset.small import PYNQ, small_subject

BUDGET = 6
LATENCIES = [105.0, 0.0, 120.0, 100.0, 0.0, 101.0]
"""Latencies by index, in microseconds; 0 is invalid. The best is index 3; 5 is just within 1 % of it, 0 within 5 %."""


def runs(*held: list[int]) -> Runs:
    """Runs that asked for these indices, and then ended."""
    metadata = {"name": "x", "identity": {"clock_hz": 1_000_000}, "outcomes": ["ok", "crash"], "reasons": [""]}
    outcome = np.array([latency == 0 for latency in LATENCIES], dtype=np.uint8)
    dataset = Dataset(metadata, outcome, np.zeros(6, np.uint8), np.array(LATENCIES, dtype=np.uint32))
    indices = np.array([[*run, *[-1] * (BUDGET - len(run))] for run in held], dtype=np.int64)
    seconds = {part: np.full(len(held), 0.25) for part in ("make", "ask", "tell")}
    cell = Cell(small_subject(PYNQ), Contender.of("random"), Protocol(trials=BUDGET, batch=2))
    return Runs(cell, dataset, np.arange(len(held)), indices, seconds)


def test_trials_are_counted_from_one_and_invalid_ones_are_trials() -> None:
    held = runs([1, 4, 3], [5, 0, 2], [1, 2])
    assert held.trials_to(0.0) == [3, None, None]
    assert held.trials_to(0.01) == [3, 1, None]
    assert held.trials_to(0.05) == [3, 1, None]
    assert trials_to_reach(held, 105.0).tolist() == [3.0, 1.0, np.inf]


def test_an_invalid_trial_reaches_no_aim() -> None:
    held = runs([1, 4, 3], [5, 0, 2])
    assert trials_to_reach(held, np.inf).tolist() == [3.0, 1.0]  # any latency will do, but 1 and 4 have none


def test_a_run_that_never_gets_there_counts_as_its_budget() -> None:
    held = runs([1, 4, 3], [5, 0, 2], [1, 2])
    assert [median_trials(held, share) for share in (0.0, 0.01)] == [6.0, 3.0]
    (row,) = convergence_rows({"random": [held]})
    assert (row["to_0%_median"], row["to_0%_never"], row["to_1%_median"], row["to_1%_never"]) == (6.0, 2, 3.0, 1)
    assert (row["to_1%_lower"], row["to_1%_upper"]) == (2.0, 4.5)
    assert row["tuner_seconds"] == 0.75


def test_invalid_trials_are_those_held_and_not_those_after_a_run_has_ended() -> None:
    held = runs([1, 4, 3], [5, 0, 2], [1, 2], [])
    assert held.invalid_share().tolist() == pytest.approx([2 / 3, 0, 1 / 2, 0])
    # Until 1 %: all three trials, the first, and all of the run that never got there.
    assert held.invalid_share(held.trials_to(0.01)).tolist() == pytest.approx([2 / 3, 0, 1 / 2, 0])
    assert held.invalid_share([2, 1, 1, None]).tolist() == [1, 0, 1, 0]


def test_a_configuration_that_the_compiler_refuses_reaches_no_board() -> None:
    held = runs([1, 4, 3], [5, 0, 2], [1, 2])
    crashes = held.sent([3, 1, None])
    held.dataset.metadata["outcomes"][1] = "rejected"
    assert crashes.tolist() == [3, 1, 2] and held.sent([3, 1, None]).tolist() == [1, 1, 1]


def test_ratios_are_of_medians_dataset_by_dataset() -> None:
    quick, slow = runs([3], [3], [1, 3]), runs([1, 4, 2, 3], [1, 1, 1, 3], [3])
    assert ratio_of_medians([quick, slow], [slow, quick], 0.0) == pytest.approx(1.0)  # 1/4 and 4/1, geometric
    assert mean_ratio([quick, slow], [slow, quick], 0.0) == pytest.approx((1 / 4 + 4) / 2)


def test_the_first_seeds_are_taken() -> None:
    held = runs([1, 4, 3], [5, 0, 2]).take(1)
    assert held.indices.tolist() == [[1, 4, 3, -1, -1, -1]]
    assert held.seconds["ask"].tolist() == [0.25]


def test_a_search_has_converged_once_a_hundred_trials_bring_nothing_better() -> None:
    best = np.repeat([9.0, 8.0, 7.0], [50, 100, 60])
    assert _converged(best) == (151, 7.0)  # of the hundred trials after the first with 8.0 the last was better
    best = np.repeat([9.0, 8.0, 7.0], [50, 101, 60])
    assert _converged(best) == (51, 8.0)


def test_a_search_that_begins_with_invalid_ones_converges_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    best = np.repeat([np.inf, 8.0], [50, 150])
    assert _converged(best) == (51, 8.0)
    assert not recwarn.list
