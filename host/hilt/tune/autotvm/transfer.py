"""Transfer: f = f_global + f_local (AutoTVM, section 4), with TVM v0.9's numbers (TVM_FACTS section 4)."""

from __future__ import annotations

import numpy as np

from hilt.schedule import ConfigurationError, convolution, features
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.cost_model import Features, FeaturesOf, Score, Scores
from hilt.tune.history import History, HistoryError
from hilt.tune.problem import TuningProblem

LEAST_RECORDS = 500
ROUNDS = 400
PATIENCE = 100
"""Rounds without gain of average recall, at twice the plan size, after which the global model's fit ends."""

HALF_LIFE = 64
"""Samples of the workload itself that halve the global model's weight."""
LEAST_WEIGHT = 0.05
"""Below it the global model is dropped: from 277 samples on."""


def global_weight(samples: int) -> float:
    """Return 2^(-samples / 64), or 0 once that is below 0.05."""
    weight = 2.0 ** (-samples / HALF_LIFE)
    return weight if weight >= LEAST_WEIGHT else 0.0


class GlobalModel:
    """Trees over the context relation features, which are the same for every workload."""

    def __init__(self, trees: BoostedTrees) -> None:
        self._trees = trees

    @classmethod
    def of(cls, history: History, loss: Loss, recall_at: int) -> GlobalModel:
        """Fit the model to throughput over the best throughput of the whole history.

        The same history gives the same trees. Raises HistoryError if it has fewer than LEAST_RECORDS results, or none
        that succeeded.
        """
        if len(history) < LEAST_RECORDS:
            raise HistoryError(f"the history holds {len(history)} results; transfer needs {LEAST_RECORDS}")
        rows = []
        for part in history.parts:
            try:
                found = features.context_relation_features(convolution(part.workload), part.accelerator, part.columns)
            except KeyError as error:
                raise HistoryError(f"the history's configurations have no knob {error}") from error
            except ConfigurationError as error:
                raise HistoryError(f"the history's configurations of {part.workload.name}: {error}") from error
            rows.append(found.values)
        throughput = np.concatenate([part.throughput for part in history.parts])
        if not throughput.any():
            raise HistoryError("no result of the history succeeded; there is nothing to transfer")
        trees = BoostedTrees(loss, recall_at, ROUNDS, PATIENCE, seed=0)
        trees.fit(np.concatenate(rows), (throughput / throughput.max()).astype(np.float32))
        return cls(trees)

    def over(self, problem: TuningProblem) -> Score:
        """Return the model's score of a problem's configurations."""
        return lambda indices: self._trees.predict(problem.context_relation_features(indices).values)


def with_global(features_of: FeaturesOf, prior: Score) -> FeaturesOf:
    """Return the features with the global model's score as a further, last column."""
    return lambda indices: np.column_stack([features_of(indices), prior(indices)])


class GlobalPlusLocal:
    """A CostModel over features `with_global`: its trees learn the residual of the weighted global model."""

    def __init__(self, local: BoostedTrees) -> None:
        self._local = local
        self._weight = 0.0

    def fit(self, features: Features, labels: Scores) -> None:
        self._weight = global_weight(len(labels))
        self._local.fit(features[:, :-1], labels, self._margin(features))

    def predict(self, features: Features) -> Scores:
        return self._local.predict(features[:, :-1], self._margin(features))

    def _margin(self, features: Features) -> Scores | None:
        return self._weight * features[:, -1] if self._weight else None
