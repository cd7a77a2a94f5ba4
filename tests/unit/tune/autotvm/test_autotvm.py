from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from hilt.trial import Outcome
from hilt.tune import Feedback, Tuner, boosted_trees
from hilt.tune.autotvm.trees import AutoTVMOptions, trees_tuner
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.labels import relative_throughput
from hilt.tune.metrics import average_recall, trials_to_within
from hilt.tune.plain_tuners import RandomOptions, RandomTuner
from hilt.tune.selection import EpsilonGreedyPlan
from hilt.tune.untried import Untried

from .. import conformance
from ..grids import Grid


@pytest.mark.slow
@pytest.mark.parametrize("loss", list(Loss))
def test_it_needs_far_fewer_trials_than_random(loss: Loss) -> None:
    """Median over five seeds; of 3840 points a quarter is valid and one is within 2% of the best."""
    grid = Grid((10, 8, 6, 4, 2), valid_share=0.25, seed=11)

    def trials(tuner: Tuner, budget: int) -> int:
        told = conformance.run(tuner, budget, 16, grid.measure)
        found = trials_to_within([feedback.microseconds for feedback in told], grid.optimum, 0.02)
        return budget if found is None else found

    options = AutoTVMOptions(loss=loss)
    modelled = [trials(trees_tuner(grid, seed, options, grid.features), 400) for seed in range(5)]
    random = [trials(RandomTuner(grid, seed, RandomOptions()), len(grid)) for seed in range(5)]
    assert np.median(modelled) < 0.3 * np.median(random), (modelled, random)


def test_labels_are_throughput_over_the_best_and_zero_for_failures() -> None:
    history = [Feedback(0, Outcome.OK, 20.0), Feedback(1, Outcome.WRONG_ANSWER), Feedback(2, Outcome.OK, 10.0)]
    assert relative_throughput(history).tolist() == [0.5, 0.0, 1.0]
    assert relative_throughput(history[1:2]).tolist() == [0.0]


@pytest.mark.parametrize("loss", list(Loss))
def test_trees_learn_the_order_and_the_same_trees_again(loss: Loss) -> None:
    generator = np.random.default_rng(0)
    features = generator.integers(0, 8, (512, 6)).astype(np.float32)
    labels = np.exp(-((features[:, :3] - 3) ** 2).sum(axis=1) / 20).astype(np.float32)
    labels[features[:, 3] > 5] = 0  # failures
    train, test = slice(0, 384), slice(384, 512)
    predictions = []
    for _ in range(2):
        model = BoostedTrees(loss, recall_at=64, rounds=8000, patience=20, seed=3)
        model.fit(features[train], labels[train])
        predictions.append(model.predict(features[test]))
    assert (predictions[0] == predictions[1]).all()
    shuffled = generator.permutation(predictions[0])
    assert average_recall(predictions[0], labels[test], 64) > average_recall(shuffled, labels[test], 64) + 0.15


@pytest.mark.parametrize(("loss", "objective"), [(Loss.RANK, "rank:pairwise"), (Loss.REGRESSION, "reg:squarederror")])
def test_xgboost_fits_with_tvms_parameters(loss: Loss, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XGBoost fits with TVM's parameters, by its own record of them.

    XGBoost passes over a parameter that it does not know in silence.
    """
    boosters: list[Any] = []
    made = boosted_trees.new_booster
    monkeypatch.setattr(boosted_trees, "new_booster", lambda *given: boosters.append(made(*given)) or boosters[-1])
    features = np.arange(40, dtype=np.float32).reshape(20, 2)
    BoostedTrees(loss, recall_at=8, rounds=3, patience=3, seed=7).fit(features, features[:, 0] / 40)
    learner = json.loads(boosters[0].save_config())["learner"]
    trees = learner["gradient_booster"]["tree_train_param"]
    wanted = {"max_depth": 3, "gamma": 1e-4, "min_child_weight": 1, "subsample": 1, "eta": 0.3, "lambda": 1, "alpha": 0}
    assert {name: float(trees[name]) for name in wanted} == pytest.approx(wanted)
    assert learner["objective"]["name"] == objective
    assert json.loads(learner["learner_model_param"]["base_score"]) in (0.5, [0.5])
    assert (learner["generic_param"]["nthread"], learner["generic_param"]["seed"]) == ("1", "7")
    if loss is Loss.RANK:
        ranking = learner["objective"]["lambdarank_param"]
        assert (ranking["lambdarank_pair_method"], ranking["lambdarank_num_pair_per_sample"]) == ("mean", "1")


def test_predicting_before_fitting_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="before it was fitted"):
        BoostedTrees(Loss.RANK, 64, 8000, 20, 0).predict(np.zeros((1, 2), dtype=np.float32))


def test_the_last_three_of_a_full_plan_are_random() -> None:
    untried, generator = Untried(1000), np.random.default_rng(0)
    plan = EpsilonGreedyPlan(list(range(64)), 64, 0.05)
    taken = [plan.take(untried, generator) for _ in range(64)]
    assert taken[:61] == list(range(61))
    assert any(index >= 64 for index in taken[61:])


def test_a_candidate_asked_meanwhile_is_passed_over() -> None:
    untried, generator = Untried(1000), np.random.default_rng(0)
    plan = EpsilonGreedyPlan([5, 6, 7, 8], 4, 0.0)
    untried.take(6)
    assert [plan.take(untried, generator) for _ in range(3)] == [5, 7, 8]


def test_a_lost_board_teaches_nothing() -> None:
    grid = Grid((8, 6, 4), seed=1)
    options = AutoTVMOptions(plan_size=16)
    quiet, disturbed = (trees_tuner(grid, 0, options, grid.features) for _ in range(2))
    asked = quiet.ask(16)
    assert disturbed.ask(16) == asked
    results = [grid.measure(index) for index in asked]
    quiet.tell(results)
    disturbed.tell([*(Feedback(index, Outcome.BOARD_LOST) for index in asked), *results])
    assert quiet.ask(16) == disturbed.ask(16)


def test_the_first_plan_is_random_and_the_second_is_modelled() -> None:
    """The first plan is random and the second is modelled.

    Before `plan_size` results nothing is modelled; with them, the next plan is far better than chance.
    """
    grid = Grid((10, 8, 6, 4), seed=2)
    tuner = trees_tuner(grid, 0, AutoTVMOptions(), grid.features)
    first = [grid.measure(index) for index in tuner.ask(64)]
    tuner.tell(first[:63])
    still_random = [grid.measure(index) for index in tuner.ask(40)]
    tuner.tell(first[63:])
    modelled = [grid.measure(index) for index in tuner.ask(40)]

    def median(results: list[Feedback]) -> float:
        return float(np.median([feedback.microseconds for feedback in results]))

    assert median(modelled) < 0.7 * median(still_random)
