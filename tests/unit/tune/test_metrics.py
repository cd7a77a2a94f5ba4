from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.tune.metrics import average_recall, best_so_far, trials_to_within

floats = st.floats(-100, 100, width=32)
samples = st.lists(st.tuples(floats, floats), min_size=1, max_size=40)


@given(samples, st.integers(1, 50))
def test_average_recall_is_what_its_definition_counts(pairs: list[tuple[float, float]], count: int) -> None:
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
