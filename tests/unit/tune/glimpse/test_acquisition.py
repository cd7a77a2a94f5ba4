"""The state that the acquisition function judges: the search so far and the candidates in it."""

from __future__ import annotations

import numpy as np
import pytest

from hilt.tune.glimpse.acquisition import (
    SEARCH_FEATURES,
    NeuralAcquisition,
    SearchProgress,
    acquisition_inputs,
    distance_in_knobs,
    search_features,
)
from hilt.tune.glimpse.encoding import CONFIGURATION_FEATURES
from hilt.tune.glimpse.weights import load_weights

PREDICTED = np.array([0.5, 0.25, 1.0], np.float32)
PRIOR = np.array([-1.0, -3.0, -2.0], np.float32)
DISTANCE = np.array([1, 4, 2], np.float32)


def test_features_are_prediction_rank_prior_and_distance_then_those_of_the_search() -> None:
    found = search_features(SearchProgress(8, 32, 0.75), PREDICTED, PRIOR, DISTANCE)
    assert found.shape == (3, SEARCH_FEATURES) and found.dtype == np.float32
    assert found[:, 0].tolist() == [0.5, 0.25, 1.0]
    assert found[:, 1].tolist() == [0.5, 0.0, 1.0]
    deviation = np.sqrt(2 / 3) + 1e-3
    assert found[:, 2] == pytest.approx(np.array([1, -1, 0]) / deviation, rel=1e-5)
    assert found[:, 3].tolist() == DISTANCE.tolist()
    assert found[:, 4:].tolist() == [[0.25, 5.0, 0.75]] * 3


def test_a_longer_budget_counts_as_128_trials_and_a_step_past_it_as_the_last() -> None:
    for step, budget, shared in ((64, 128, [0.5, 7]), (64, 129, [0.5, 7]), (64, 127, [64 / 127, np.log2(127)])):
        found = search_features(SearchProgress(step, budget, 1.0), PREDICTED, PRIOR, DISTANCE)
        assert found[0, 4:6] == pytest.approx(shared, rel=1e-6)
    assert search_features(SearchProgress(40, 32, 1.0), PREDICTED, PRIOR, DISTANCE)[0, 4] == 1


def test_a_candidate_alone_has_the_lowest_rank_and_a_prior_like_all() -> None:
    found = search_features(SearchProgress(1, 2, 1.0), PREDICTED[:1], PRIOR[:1], DISTANCE[:1])
    assert found[0].tolist() == [0.5, 0.0, 0.0, 1.0, 0.5, 1.0, 1.0]


def test_the_distance_is_the_knobs_that_differ_from_the_nearest_measured_one() -> None:
    positions = np.array([[0, 0, 0], [1, 0, 2], [5, 6, 7]])
    assert distance_in_knobs(positions, np.array([[0, 0, 0], [1, 1, 2]])).tolist() == [0, 1, 3]
    assert distance_in_knobs(positions, np.empty((0, 3), np.int64)).tolist() == [3, 3, 3]


@pytest.mark.parametrize("place", [0, 63, 64, 65, 127, 128, 129])
def test_each_of_many_measured_ones_may_be_the_nearest(place: int) -> None:
    measured = np.full((130, 3), 9)
    measured[place] = [1, 2, 3]
    assert distance_in_knobs(np.array([[1, 2, 4], [9, 0, 0]]), measured).tolist() == [1, 2]


def test_the_worth_is_the_networks_first_output_for_all_three_parts_of_the_state() -> None:
    network = load_weights().acquisition
    generator = np.random.default_rng(2)
    size = network.weights[0].shape[0] - CONFIGURATION_FEATURES - SEARCH_FEATURES
    assert acquisition_inputs(size) == network.weights[0].shape[0]
    configurations, search, description = (
        generator.normal(size=shape).astype(np.float32)
        for shape in ((2, CONFIGURATION_FEATURES), (2, SEARCH_FEATURES), (size,))
    )
    worth = NeuralAcquisition(network, description)(configurations, search)
    rows = [np.concatenate([configurations[row], search[row], description]) for row in range(2)]
    assert worth == pytest.approx(network(np.array(rows))[:, 0], rel=1e-5) and worth[0] != worth[1]
