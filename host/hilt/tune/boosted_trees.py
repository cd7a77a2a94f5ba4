"""Gradient boosted trees as AutoTVM uses them (TVM_FACTS section 4)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from hilt.tune.cost_model import Features, Scores
from hilt.tune.metrics import AverageRecall
from hilt.tune.xgboost_fit import new_booster

if TYPE_CHECKING:
    import xgboost


class Loss(StrEnum):
    """The target that a model is fitted to: the order of configurations, or their throughput."""

    RANK = "rank"
    REGRESSION = "regression"


_OBJECTIVES = {Loss.RANK: "rank:pairwise", Loss.REGRESSION: "reg:squarederror"}


class BoostedTrees:
    """A CostModel of boosted trees.

    Rounds are added until `patience` of them bring no better average recall on the training set.
    """

    def __init__(self, loss: Loss, recall_at: int, rounds: int, patience: int, seed: int) -> None:
        self._recall_at = recall_at
        self._rounds = rounds
        self._patience = patience
        self._parameters: dict[str, object] = {
            "objective": _OBJECTIVES[loss],
            "max_depth": 3,
            "gamma": 1e-4,
            "min_child_weight": 1,
            "subsample": 1.0,
            "eta": 0.3,
            "lambda": 1.0,
            "alpha": 0,
            # The defaults of the XGBoost that TVM v0.9 ran with; later ones rank differently and fit an intercept.
            "base_score": 0.5,
            # One thread: sums in another order would make another tree, and a resumed run another search.
            "nthread": 1,
            "seed": seed,
            "verbosity": 0,
        }
        if loss is Loss.RANK:
            self._parameters |= {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1}
        self._booster: xgboost.Booster | None = None

    def fit(self, features: Features, labels: Scores, margin: Scores | None = None) -> None:
        """Fit the trees to the difference between labels and `margin` (n,), or the constant 0.5 without a margin."""
        import xgboost

        # For some hundred rows, threads cost more time than they save.
        samples = xgboost.DMatrix(features, labels, base_margin=margin, nthread=1)
        if self._parameters["objective"] == _OBJECTIVES[Loss.RANK]:
            samples.set_group([len(labels)])
        booster = new_booster(self._parameters, samples)
        recall_of = AverageRecall(labels, self._recall_at)
        best_recall, best_round = -1.0, 0
        for round_number in range(self._rounds):
            booster.update(samples, round_number)
            recall = recall_of(np.asarray(booster.predict(samples, validate_features=False)))
            if recall > best_recall:
                best_recall, best_round = recall, round_number
            elif round_number - best_round >= self._patience:
                break
        self._booster = booster

    def predict(self, features: Features, margin: Scores | None = None) -> Scores:
        """Return the scores (n,) of rows of features.

        The `margin` (n,) belongs to these rows and follows the rule of the margin in `fit`. Raises RuntimeError before
        the first `fit`.
        """
        if self._booster is None:
            raise RuntimeError("the cost model was asked before it was fitted")
        return np.asarray(self._booster.inplace_predict(features, base_margin=margin), dtype=np.float32)
