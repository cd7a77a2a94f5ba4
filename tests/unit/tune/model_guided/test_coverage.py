from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hilt.tune.model_guided.coverage import choose, confidence, covering


def test_a_draw_is_covered_by_valid_configurations_within_one_percent() -> None:
    latencies = np.log([[100.0, 100.9, 102.0, 90.0]])
    assert covering(latencies, np.array([[True, True, True, False]])).tolist() == [[True, True, False, False]]
    assert not covering(latencies, np.zeros((1, 4), dtype=np.bool_)).any()


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 3))
def test_greedy_choice_reaches_its_proven_bound(seed: int, count: int) -> None:
    """The greedy choice covers at least 1 - 1/e of the coverage of the best choice of as many."""
    generator = np.random.default_rng(seed)
    covers = generator.random((40, 7)) < 0.2
    nothing = np.zeros(7, dtype=np.bool_)
    picked = choose(covers, nothing, np.ones(7), np.arange(7.0), count)
    best = max(covers[:, list(each)].any(axis=1).sum() for each in itertools.combinations(range(7), count))
    assert covers[:, picked].any(axis=1).sum() >= (1 - 1 / np.e) * best
    assert len(set(picked)) == len(picked) <= count


def test_asked_trials_count_and_a_probable_failure_is_not_asked() -> None:
    covers = np.array([[True, True, False], [False, False, True], [False, False, True], [True, False, False]])
    mean = np.array([0.0, 1.0, 2.0])
    asked = np.array([True, False, False])
    assert choose(covers, asked, np.ones(3), mean, 3) == [2]
    assert choose(covers, asked, np.array([1.0, 1.0, 0.0]), mean, 3) == []
    assert confidence(covers, asked) == 0.5
    assert confidence(covers, np.zeros(3, dtype=np.bool_)) == 0.0
