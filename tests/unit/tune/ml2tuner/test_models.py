from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.tune.ml2tuner.hyperparameters import PERFORMANCE, VALIDITY, Hyperparameters
from hilt.tune.ml2tuner.models import Trees, deciding_columns

PERFORMANCE_QUICKLY, VALIDITY_QUICKLY = replace(PERFORMANCE, boost_rounds=12), replace(VALIDITY, boost_rounds=12)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    hyperparameters=st.sampled_from([PERFORMANCE_QUICKLY, VALIDITY_QUICKLY]),
    rows=st.integers(4, 120),
    knobs=st.integers(1, 5),
    seed=st.integers(0, 2**31 - 1),
)
def test_the_trees_are_those_of_all_columns(hyperparameters: Hyperparameters, rows: int, knobs: int, seed: int) -> None:
    """The trees on chosen columns equal those of all columns.

    Some columns are constant, and some are others on another scale, in any order, as hidden features are. XGBoost's
    predictions with all of them are the same for rows that it has not seen.
    """
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 8, (rows + 50, knobs)).astype(np.float32)
    columns = [*values.T, *(3 * values.T**2), *(values.T > 4), -values[:, 0], np.full(rows + 50, 7.0)]
    features = np.stack(columns, axis=1).astype(np.float32)[:, generator.permutation(len(columns))]
    known, unseen = features[:rows], features[rows:]
    labels = 1 + values[:rows].prod(axis=1) * generator.uniform(0.9, 1.1, rows)
    if hyperparameters is VALIDITY_QUICKLY:
        labels = (labels > np.median(labels)).astype(np.float64)
    trees = Trees(hyperparameters, seed)
    trees.fit(known, labels)
    everything = xgboost.train(
        hyperparameters.parameters(seed), xgboost.DMatrix(known, labels), hyperparameters.boost_rounds
    )
    assert np.array_equal(trees.predict(unseen), everything.inplace_predict(unseen))
    names = tuple(f"f{column}" for column in range(len(columns)))
    counts = everything.get_score(importance_type="weight")
    expected = {name: 100 * counts.get(name, 0) / max(sum(counts.values()), 1e-300) for name in names}
    assert trees.importances(names, "weight") == pytest.approx(expected)


def test_columns_that_decide_are_the_first_of_their_order() -> None:
    first = np.array([1, 2, 2, 5], dtype=np.float32)
    constant, split, backwards = np.ones(4), first > 2, -first
    features = np.stack([constant, first, 10 * first, split, first > 3, backwards], axis=1).astype(np.float32)
    assert deciding_columns(features).tolist() == [1, 3, 5]
    assert deciding_columns(features[:, :1]).tolist() == [0]  # XGBoost takes no rows without columns
