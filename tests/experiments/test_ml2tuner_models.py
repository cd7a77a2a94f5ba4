from __future__ import annotations

import numpy as np
import pytest

from hilt.trial import Outcome
from hilt.tune import Feedback
from hilt.tune.ml2tuner.features import Hidden
from hilt.tune.ml2tuner.hyperparameters import PERFORMANCE, Hyperparameters
from hilt.tune.ml2tuner.models import Trees
from hilt.tune.ml2tuner.records import Records
from hilt_experiments.ml2tuner_grid import GRID, OBJECTIVES, compare_objectives, cross_validate, grid_search
from hilt_experiments.ml2tuner_models import TooFewRecordsError, features_and_labels, hidden_gain, importances
from tests.unit.tune.ml2tuner.problems import PROBLEM, latencies, records

EVERY = np.arange(len(PROBLEM.space))


def test_hidden_features_help_where_latency_is_made_of_them() -> None:
    every = Records(EVERY, latencies())
    gain = hidden_gain(PROBLEM, records(150), every, 0, Hidden.ALL, boost_rounds=150)
    assert gain.ratio < 0.8
    assert gain.fitted_to == len(records(150).valid)
    assert gain.tested_on == int(np.isfinite(latencies()).sum()) - gain.fitted_to


def test_importances_are_shares_of_splits_by_name() -> None:
    shares = importances(PROBLEM, records(200), "P", 0)
    assert set(shares) == set(PROBLEM.space.names)
    assert sum(shares.values()) == pytest.approx(100)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_a_feature_that_decides_alone_has_all_the_importance() -> None:
    rows = np.random.default_rng(0).integers(0, 9, (300, 3)).astype(np.float32)
    model = Trees(Hyperparameters("reg:squarederror", 3, 1, 0.3, 0, boost_rounds=5), 0)
    model.fit(rows, (rows[:, 1] > 4).astype(np.float64))
    for kind in ("weight", "gain", "total_gain"):
        shares = model.importances(("a", "b", "c"), kind)  # type: ignore[arg-type]
        assert shares["b"] == pytest.approx(100) and shares["a"] == shares["c"] == 0


def test_each_model_has_its_records_and_labels() -> None:
    some = records(60)
    features, labels = features_and_labels(PROBLEM, some, "V")
    assert len(features.values) == 60 and labels.tolist() == np.isfinite(some.microseconds).tolist()
    features, labels = features_and_labels(PROBLEM, some, "P")
    assert labels.min() == 1.0 and len(labels) == int(np.isfinite(some.microseconds).sum())
    assert np.allclose(labels * np.nanmin(some.microseconds), some.valid.microseconds)


def test_records_leave_out_lost_boards() -> None:
    some = Records.of([Feedback(4, Outcome.OK, 2.5), Feedback(5, Outcome.BOARD_LOST), Feedback(6, Outcome.CRASH)])
    assert some.indices.tolist() == [4, 6] and some.is_valid.tolist() == [True, False]


SMALL_GRID = {"max_depth": (2, 6), "learning_rate": (0.001, 0.3)}


def test_the_grid_is_ranked_by_accuracy_and_the_sensible_corner_wins() -> None:
    found = grid_search(PROBLEM, records(120), "P", 0, grid=SMALL_GRID, points=100, folds=3)
    assert len({(each.hyperparameters.max_depth, each.hyperparameters.learning_rate) for each in found}) == 4
    assert [each.accuracy for each in found] == sorted((each.accuracy for each in found), reverse=True)
    assert found[0].hyperparameters.learning_rate == 0.3 and found[0].accuracy > 0.8
    # Three hundred steps of a thousandth have hardly left the mean.
    slow = [each.rmse for each in found if each.hyperparameters.learning_rate == 0.001]
    assert min(slow) > 1.2 * found[0].rmse


def test_a_part_of_the_grid_is_drawn_by_seed() -> None:
    drawn = [
        [each.hyperparameters for each in grid_search(PROBLEM, records(30), "V", seed, points=3, folds=2)]
        for seed in (0, 0, 1)
    ]
    assert len(drawn[0]) == 3 and drawn[0] == drawn[1] != drawn[2]
    for chosen in drawn[0]:
        assert all(getattr(chosen, name) in values for name, values in GRID.items())


@pytest.mark.parametrize("model", ["P", "V"])
def test_objectives_are_those_of_table_4(model: str) -> None:
    found = compare_objectives(PROBLEM, records(150), model, 0, folds=2)  # type: ignore[arg-type]
    assert [each.hyperparameters.objective for each in found] == list(OBJECTIVES[model])  # type: ignore[index]
    for each in found:
        assert each.accuracy > 0.7 and each.seconds > 0
        assert np.isnan(each.rmse) == each.hyperparameters.objective.startswith("rank:")


def test_a_ranking_learns_of_all_records_and_not_of_those_that_xgboost_ranks_best() -> None:
    plain = Hyperparameters("rank:pairwise", **{name: getattr(PERFORMANCE, name) for name in GRID})
    (of_32,) = cross_validate(PROBLEM, records(400), "P", [plain], 0, folds=2)
    _, ranking = compare_objectives(PROBLEM, records(400), "P", 0, folds=2)
    assert ranking.accuracy > of_32.accuracy + 0.05


def test_too_few_records_are_refused() -> None:
    nothing = Records(np.array([3]), np.array([np.nan]))
    with pytest.raises(TooFewRecordsError, match="at least one valid configuration"):
        hidden_gain(PROBLEM, nothing, Records(EVERY, latencies()), 0)
    with pytest.raises(TooFewRecordsError, match="none is left"):
        hidden_gain(PROBLEM, Records(EVERY, latencies()), Records(EVERY, latencies()), 0)
    with pytest.raises(TooFewRecordsError, match="1 records cannot be cut into 5 folds"):
        grid_search(PROBLEM, nothing, "V", 0)
