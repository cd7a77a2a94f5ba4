"""Boosted trees with names on their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import Scores
from hilt.tune.ml2tuner.hyperparameters import Hyperparameters

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

    @property
    def fitted(self) -> bool:
        return self._booster is not None

    def fit(self, features: Rows, labels: npt.NDArray[np.floating]) -> None:
        """Rows (n, features) and labels (n,)."""
        import xgboost

        samples = xgboost.DMatrix(features, labels, nthread=1)  # for some hundred rows, threads cost more than they do
        if self._hyperparameters.objective.startswith("rank:"):
            samples.set_group([len(labels)])
        parameters = self._hyperparameters.parameters(self._seed)
        self._booster = xgboost.train(parameters, samples, self._hyperparameters.boost_rounds)

    def predict(self, features: Rows) -> Scores:
        """(n,). Raises RuntimeError before the first `fit`."""
        return np.asarray(self._trained().inplace_predict(features), dtype=np.float32)

    def importances(self, names: tuple[str, ...], kind: Importance) -> dict[str, float]:
        """Each feature's share in percent by name, of how often the trees split by it (`weight`), of the loss that a
        split by it gains on average (`gain`) or in all (`total_gain`). Raises RuntimeError before the first `fit`."""
        scores = self._trained().get_score(importance_type=kind)
        found = np.array([scores.get(f"f{column}", 0.0) for column in range(len(names))], dtype=np.float64)
        return dict(zip(names, (100 * found / max(found.sum(), 1e-300)).tolist(), strict=True))

    def _trained(self) -> xgboost.Booster:
        if self._booster is None:
            raise RuntimeError("the model was asked before it was fitted")
        return self._booster


def relative_latency(microseconds: Floats) -> Floats:
    """What P and A learn, (n,): the paper's execution time, over the least one, so that reg alpha means the same for
    every workload."""
    least: float = microseconds.min()
    return microseconds / least
