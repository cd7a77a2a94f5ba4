"""Boosted trees with names on their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Scores
from hilt.tune.ml2tuner.hyperparameters import Hyperparameters
from hilt.tune.xgboost_fit import new_booster

if TYPE_CHECKING:
    import xgboost

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.float32]
Importance = Literal["weight", "gain", "total_gain"]


class Trees:
    """A model of ML2Tuner: fitted from scratch each time, always the same for the same rows and seed."""

    def __init__(self, hyperparameters: Hyperparameters, seed: int) -> None:
        self._hyperparameters = hyperparameters
        self._seed = seed
        self._booster: xgboost.Booster | None = None
        self._columns = np.empty(0, dtype=np.int64)
        """Of the features, those that the booster was given."""

    @property
    def fitted(self) -> bool:
        return self._booster is not None

    def fit(self, features: Rows, labels: npt.NDArray[np.floating]) -> None:
        """Rows (n, features) and labels (n,)."""
        import xgboost

        # Where columns are drawn for each tree, another number of them would draw others.
        drawn = self._hyperparameters.colsample_bytree < 1
        self._columns = np.arange(features.shape[1]) if drawn else deciding_columns(features)
        # For some hundred rows, threads cost more than they do.
        samples = xgboost.DMatrix(features[:, self._columns], labels, nthread=1)
        if self._hyperparameters.objective.startswith("rank:"):
            samples.set_group([len(labels)])
        booster = new_booster(self._hyperparameters.parameters(self._seed), samples)
        for number in range(self._hyperparameters.boost_rounds):
            booster.update(samples, number)
        self._booster = booster

    def predict(self, features: Rows) -> Scores:
        """(n,). Raises RuntimeError before the first `fit`."""
        return np.asarray(self._trained().inplace_predict(features[:, self._columns]), dtype=np.float32)

    def importances(self, names: tuple[str, ...], kind: Importance) -> dict[str, float]:
        """Each feature's share in percent by name, of how often the trees split by it (`weight`), of the loss that a
        split by it gains on average (`gain`) or in all (`total_gain`). Raises RuntimeError before the first `fit`."""
        scores = self._trained().get_score(importance_type=kind)
        found = np.zeros(len(names))
        found[self._columns] = [scores.get(f"f{place}", 0.0) for place in range(len(self._columns))]
        return dict(zip(names, (100 * found / max(found.sum(), 1e-300)).tolist(), strict=True))

    def _trained(self) -> xgboost.Booster:
        if self._booster is None:
            raise RuntimeError("the model was asked before it was fitted")
        return self._booster


def deciding_columns(features: Rows) -> npt.NDArray[np.int64]:
    """The columns (m,) without which the trees of these rows (n, features) would be others, at least one.

    A tree is the same without a column that has one value, and without one that puts the rows in the same order as a
    column before it: both split the rows alike, and of equal gains XGBoost takes the first. Most hidden features are
    such, and the time of a fit goes with the columns.
    """
    orders: dict[bytes, int] = {}
    for column, values in enumerate(features.T):
        distinct, order = np.unique(values, return_inverse=True)
        if len(distinct) > 1:
            orders.setdefault(order.tobytes(), column)
    return np.array(list(orders.values()) or [0], dtype=np.int64)


def relative_latency(microseconds: Floats) -> Floats:
    """What P and A learn, (n,): the paper's execution time, over the least one, so that reg alpha means the same for
    every workload."""
    least: float = microseconds.min()
    return microseconds / least
