"""Boosted trees with named features."""

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
        """The columns of the features that the booster uses."""

    @property
    def fitted(self) -> bool:
        return self._booster is not None

    def fit(self, features: Rows, labels: npt.NDArray[np.floating]) -> None:
        """Fit the trees to rows (n, features) and labels (n,)."""
        import xgboost

        # If columns are drawn for each tree, another number of columns would change the draw.
        drawn = self._hyperparameters.colsample_bytree < 1
        self._columns = np.arange(features.shape[1]) if drawn else deciding_columns(features)
        # For some hundred rows, threads cost more time than they save.
        samples = xgboost.DMatrix(features[:, self._columns], labels, nthread=1)
        if self._hyperparameters.objective.startswith("rank:"):
            samples.set_group([len(labels)])
        booster = new_booster(self._hyperparameters.parameters(self._seed), samples)
        for number in range(self._hyperparameters.boost_rounds):
            booster.update(samples, number)
        self._booster = booster

    def predict(self, features: Rows) -> Scores:
        """Return the predictions (n,). Raises RuntimeError before the first `fit`."""
        return np.asarray(self._trained().inplace_predict(features[:, self._columns]), dtype=np.float32)

    def importances(self, names: tuple[str, ...], kind: Importance) -> dict[str, float]:
        """Return each feature's share in percent by name.

        The share is of the number of splits by the feature (`weight`), or of the loss that a split by it gains on
        average (`gain`) or in total (`total_gain`). Raises RuntimeError before the first `fit`.
        """
        scores = self._trained().get_score(importance_type=kind)
        found = np.zeros(len(names))
        found[self._columns] = [scores.get(f"f{place}", 0.0) for place in range(len(self._columns))]
        return dict(zip(names, (100 * found / max(found.sum(), 1e-300)).tolist(), strict=True))

    def _trained(self) -> xgboost.Booster:
        if self._booster is None:
            raise RuntimeError("the model was asked before it was fitted")
        return self._booster


def deciding_columns(features: Rows) -> npt.NDArray[np.int64]:
    """Return the columns (m,) that influence the trees of these rows (n, features), at least one.

    A tree is the same without a column that has one value. It is also the same without a column that puts the rows in
    the same order as an earlier column: both split the rows alike, and of equal gains XGBoost takes the first. Most
    hidden features are of these kinds, and the time of a fit grows with the columns.
    """
    orders: dict[bytes, int] = {}
    for column, values in enumerate(features.T):
        distinct, order = np.unique(values, return_inverse=True)
        if len(distinct) > 1:
            orders.setdefault(order.tobytes(), column)
    return np.array(list(orders.values()) or [0], dtype=np.int64)


def relative_latency(microseconds: Floats) -> Floats:
    """Return the labels (n,) of P and A: the paper's execution time over the least one.

    The ratio gives reg alpha the same meaning for every workload.
    """
    least: float = microseconds.min()
    return microseconds / least
