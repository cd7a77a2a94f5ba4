"""Comparing tuners: the same is not significant, a tuner that is ten times as fast is, and never counts as worst."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hilt_experiments.significance import compare_tuners, holm


def runs(trials: list[int | None]) -> Any:
    """Runs that were within the share after so many trials each."""
    protocol = SimpleNamespace(trials=100)
    return SimpleNamespace(cell=SimpleNamespace(protocol=protocol), trials_to=lambda share: trials)


def test_a_tuner_beside_itself_differs_in_nothing() -> None:
    cells = [runs([10, 20, 30]), runs([5, 50, 60])]
    same = compare_tuners(cells, cells, 0.01)
    assert same.ratio == 1 and same.p_value > 0.9 and same.low <= 1 <= same.high


@pytest.mark.parametrize("datasets", [1, 8])
def test_ten_times_as_few_trials_is_significant(datasets: int) -> None:
    generator = np.random.default_rng(1)
    slow = [runs(generator.integers(50, 90, 10).tolist()) for _ in range(datasets)]
    fast = [runs(generator.integers(4, 9, 10).tolist()) for _ in range(datasets)]
    compared = compare_tuners(fast, slow, 0.01)
    assert 0.05 < compared.low < compared.ratio < compared.high < 0.2
    assert compared.p_value < 0.01
    assert compared.test == ("signed-rank over datasets" if datasets == 8 else "rank-sum over runs")


def test_the_rank_sum_of_one_dataset_is_scipys() -> None:
    compared = compare_tuners([runs([3, 9, 14, 22])], [runs([8, 30, 41, 55])], 0.01)
    assert compared.p_value == pytest.approx(stats.mannwhitneyu([3, 9, 14, 22], [8, 30, 41, 55]).pvalue)


def test_a_run_that_never_arrives_ranks_behind_the_slowest() -> None:
    assert compare_tuners([runs([None, None])], [runs([99, 100])], 0.01).ratio == pytest.approx(101 / 99.5)


def test_holm_is_stricter_than_each_test_alone() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == [] and holm([0.9, 0.8]) == [1.0, 1.0]
