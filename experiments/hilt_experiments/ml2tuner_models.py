"""The paper's evaluation of the models: gain from hidden features and importance of features.

The gain is in Figures 3 and 4, the importance in Table 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilt.schedule.features.features import Features
from hilt.tune.metrics import rmse
from hilt.tune.ml2tuner.features import Hidden, advanced_features, visible_features
from hilt.tune.ml2tuner.hyperparameters import PERFORMANCE, VALIDITY, Hyperparameters
from hilt.tune.ml2tuner.models import Importance, Trees, relative_latency
from hilt.tune.ml2tuner.records import Records
from hilt.tune.problem import TuningProblem

Model = Literal["P", "V", "A"]
HYPERPARAMETERS: dict[Model, Hyperparameters] = {"P": PERFORMANCE, "V": VALIDITY, "A": PERFORMANCE}


class TooFewRecordsError(ValueError):
    """Records that no model can be fitted to or judged by."""


def features_and_labels(
    problem: TuningProblem, records: Records, model: Model, hidden: Hidden = Hidden.TABLE_5
) -> tuple[Features, npt.NDArray[np.float64]]:
    """Return the training set of a model.

    P and A are fitted to the relative latency of the valid records, V to 0 or 1 of all of them.

    Raises TooFewRecordsError if there is none.
    """
    used = records if model == "V" else records.valid
    if not len(used):
        raise TooFewRecordsError(f"model {model} has nothing to learn from: measure at least one valid configuration")
    labels = records.is_valid.astype(np.float64) if model == "V" else relative_latency(used.microseconds)
    if model == "A":
        return advanced_features(problem, used.indices, hidden), labels
    return visible_features(problem, used.indices), labels


@dataclass(frozen=True)
class HiddenGain:
    """Root mean squared errors of relative latency on configurations outside the training set."""

    fitted_to: int
    tested_on: int
    rmse_p: float
    rmse_a: float

    @property
    def ratio(self) -> float:
        """A over P: below 1 if hidden features help."""
        return self.rmse_a / self.rmse_p


def hidden_gain(
    problem: TuningProblem,
    measured: Records,
    every: Records,
    seed: int,
    hidden: Hidden = Hidden.TABLE_5,
    boost_rounds: int = PERFORMANCE.boost_rounds,
) -> HiddenGain:
    """Return the errors of P and A on valid configurations of `every` that were not measured.

    The models are fitted to the valid `measured` records; the paper takes those of its tuner. Raises
    TooFewRecordsError if either has none.
    """
    rest = every.valid.take(np.flatnonzero(~np.isin(every.valid.indices, measured.indices)))
    if not len(rest):
        raise TooFewRecordsError("every valid configuration was measured: none is left to test the models on")
    least = measured.valid.microseconds.min(initial=np.inf)
    errors: dict[Model, float] = {}
    models: tuple[Model, ...] = ("P", "A")
    for model in models:
        features, labels = features_and_labels(problem, measured, model, hidden)
        trees = Trees(replace(PERFORMANCE, boost_rounds=boost_rounds), seed)
        trees.fit(features.values, labels)
        tested, _ = features_and_labels(problem, rest, model, hidden)
        predicted = trees.predict(tested.values)
        errors[model] = rmse(predicted, rest.microseconds / least)
    return HiddenGain(len(measured.valid), len(rest), errors["P"], errors["A"])


def importances(
    problem: TuningProblem,
    records: Records,
    model: Model,
    seed: int,
    kind: Importance = "weight",
    hidden: Hidden = Hidden.TABLE_5,
) -> dict[str, float]:
    """Return the importance by feature in percent, most important first, of a model fitted to these records.

    The shares in the paper's Table 5 are whole multiples of one unit in each column: it counts splits (`weight`).
    Raises TooFewRecordsError.
    """
    features, labels = features_and_labels(problem, records, model, hidden)
    trees = Trees(HYPERPARAMETERS[model], seed)
    trees.fit(features.values, labels)
    shares = trees.importances(features.names, kind)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
