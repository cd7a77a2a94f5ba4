"""Convergence of searches, and the share of trials that another tuner needs for the same latency."""

from __future__ import annotations

from typing import Any

import pytest

from hilt_experiments.datasets import RESNET18, subject
from hilt_experiments.ml2tuner_alone import converged, share_of_trials


def run(*improved: tuple[int, float, int], valid: int = 300) -> dict[str, Any]:
    return {"trials": 500, "valid": valid, "improved": [list(each) for each in improved]}


def test_a_search_has_converged_at_the_last_gain_before_the_pause() -> None:
    row = run((3, 90.0, 2), (9, 80.0, 4), (40, 70.0, 20), (400, 60.0, 140))
    assert converged(row, 11) == (9, 80.0, 4)
    assert converged(row, 110) == (40, 70.0, 20)
    assert converged(run((3, 90.0, 1)), 110) == (3, 90.0, 1)


def test_failed_trials_are_no_values_that_repeat() -> None:
    # The first valid trial, then 200 failures, then the best: ten failures are no convergence.
    assert converged(run((5, 90.0, 1), (205, 40.0, 2)), 11) == (205, 40.0, 2)


def test_the_share_is_of_trials_to_the_mean_converged_latency() -> None:
    base = [run((40, 100.0, 10), (45, 80.0, 15)), run((35, 60.0, 5)), run(valid=0)]
    # It converged at 45 and 35 trials, 30 of them invalid each time, with 80 and 60: the aim is 70.
    whole = [run((2, 90.0, 2), (8, 70.0, 2)), run((12, 65.0, 6)), run((1, 95.0, 1), valid=20)]
    trials, invalid = share_of_trials(base, whole, 11)
    assert trials == pytest.approx(12 / 40)
    assert invalid == pytest.approx(6 / 30)


@pytest.mark.parametrize("name", RESNET18)
def test_more_than_four_fifths_of_each_space_is_invalid(name: str) -> None:
    assert (subject(name).summarize_validity.verdicts == 0).mean() < 0.2
