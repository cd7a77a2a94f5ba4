from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.tune.metrics import (
    average_recall,
    best_so_far,
    geometric_mean,
    ndcg_at,
    pairwise_accuracy,
    precision_at,
    rmse,
    spread_of_trials,
    trials_to_within,
)

floats = st.floats(-100, 100, width=32)
samples = st.lists(st.tuples(floats, floats), min_size=1, max_size=40)


@given(samples, st.integers(1, 50))
def test_average_recall_equals_its_definition(pairs: list[tuple[float, float]], count: int) -> None:
    predicted, labels = np.array(pairs).T
    by_prediction = sorted(range(len(pairs)), key=lambda i: (-predicted[i], i))
    by_label = sorted(range(len(pairs)), key=lambda i: (-labels[i], i))
    count_here = min(count, len(pairs))
    shares = [len(set(by_prediction[:i]) & set(by_label[:i])) / i for i in range(1, count_here + 1)]
    assert average_recall(predicted, labels, count) == pytest.approx(np.mean(shares))


def test_average_recall_of_known_orders() -> None:
    labels = np.arange(8, dtype=np.float32)
    assert average_recall(labels, labels, 4) == 1.0
    assert average_recall(-labels, labels, 4) == 0.0
    # Best two swapped: recall 0 at 1, whole from 2 on.
    assert average_recall(np.array([0, 1, 2, 3, 4, 5, 7, 6.0]), labels, 4) == pytest.approx(3 / 4)
    assert average_recall(np.array([]), np.array([]), 4) == 0.0


def test_best_so_far_and_trials_to_within() -> None:
    latencies = [None, 30.0, None, 40.0, 21.0, 20.0]
    assert best_so_far(latencies).tolist() == [np.inf, 30, 30, 30, 21, 20]
    assert trials_to_within(latencies, 20.0, 0.0) == 6
    assert trials_to_within(latencies, 20.0, 0.05) == 5
    assert trials_to_within(latencies, 10.0, 0.05) is None
    assert trials_to_within([], 10.0, 0.05) is None


scores = st.one_of(st.just(0.0), st.integers(1, 6).map(float))
predictions_and_scores = st.lists(st.tuples(st.integers(-4, 4).map(float), scores), min_size=1, max_size=30)


@given(predictions_and_scores)
def test_pairwise_accuracy_equals_its_definition(pairs: list[tuple[float, float]]) -> None:
    found = pairwise_accuracy(*np.array(pairs).T)
    right: dict[int, list[bool]] = {1: [], 2: []}
    for i in range(len(pairs)):
        for j in range(i):
            (p_i, m_i), (p_j, m_j) = pairs[i], pairs[j]
            valid = (m_i > 0) + (m_j > 0)
            if valid:
                right[valid].append(np.sign(m_i - m_j) == np.sign(p_i - p_j))
    for share, counted in (
        (found.valid_invalid, right[1]),
        (found.valid_valid, right[2]),
        (found.all, right[1] + right[2]),
    ):
        assert share == pytest.approx(np.mean(counted) if counted else np.nan, nan_ok=True)


@given(predictions_and_scores, st.integers(1, 40))
def test_precision_and_ndcg_equal_their_definitions(pairs: list[tuple[float, float]], count: int) -> None:
    predicted, gains = np.array(pairs).T
    ranking = sorted(range(len(pairs)), key=lambda i: (-predicted[i], i))[:count]
    assert precision_at(predicted, gains > 0, count) == pytest.approx(np.mean([gains[i] > 0 for i in ranking]))
    dcg = sum(gains[i] / np.log2(place + 1) for place, i in enumerate(ranking, 1))
    ideal = sum(gain / np.log2(place + 1) for place, gain in enumerate(sorted(gains, reverse=True)[:count], 1))
    assert ndcg_at(predicted, gains, count) == pytest.approx(dcg / ideal if ideal else np.nan, nan_ok=True)


def test_a_perfect_model_has_no_loss_and_a_blind_one_has() -> None:
    performance = np.array([0.0, 0.2, 1.0, 0.0, 0.5])
    assert ndcg_at(performance, performance, 3) == pytest.approx(1)
    assert ndcg_at(-performance, performance, 2) == 0
    assert pairwise_accuracy(performance, performance).all == 1
    # Every pair with the same prediction is wrong: measured values differ.
    assert pairwise_accuracy(np.zeros(5), performance).all == 0
    assert rmse(np.array([1.0, 3.0]), np.array([1.0, 1.0])) == pytest.approx(np.sqrt(2))


def test_runs_that_never_got_there_count_as_their_budget() -> None:
    spread = spread_of_trials([10, None, 30, 20, None], 100)
    assert (spread.median, spread.lower, spread.upper, spread.iqr) == (30, 20, 100, 80)
    assert geometric_mean([0.5, 2.0, 4.0]) == pytest.approx(4 ** (1 / 3))
