"""Convergence of searches, and the share of trials that another tuner needs for the same latency."""

from __future__ import annotations

from typing import Any

import pytest

from hilt_experiments.datasets import RESNET18, subject
from hilt_experiments.ml2tuner_alone import converged, share_of_trials


def run(*improved: tuple[int, float]) -> dict[str, Any]:
    return {"trials": 500, "improved": [list(each) for each in improved]}


def test_a_search_has_converged_at_the_last_gain_before_the_pause() -> None:
    row = run((3, 90.0), (9, 80.0), (20, 70.0), (400, 60.0))
    assert converged(row, 11) == (9, 80.0)
    assert converged(row, 110) == (20, 70.0)
    assert converged(run((3, 90.0)), 110) == (3, 90.0)


def test_the_share_is_of_trials_to_the_mean_converged_latency() -> None:
    alone = [
        run((40, 100.0), (45, 80.0)),
        run((35, 60.0)),
        run(),
    ]  # converged at 45 and 35, with 80 and 60: the aim is 70
    whole = [run((2, 90.0), (8, 70.0)), run((12, 65.0)), run((1, 95.0))]
    assert share_of_trials(alone, whole, 11) == pytest.approx(12 / 40)


@pytest.mark.parametrize("name", RESNET18)
def test_more_than_four_fifths_of_each_space_is_invalid(name: str) -> None:
    assert (subject(name).summarize_validity.verdicts == 0).mean() < 0.2
