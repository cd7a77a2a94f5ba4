"""ML2Tuner's grid search (its Table 3) and comparison of objectives (its Table 4), cross-validated."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.tune.metrics import pairwise_accuracy, rmse
from hilt.tune.ml2tuner.features import Hidden
from hilt.tune.ml2tuner.hyperparameters import Hyperparameters
from hilt.tune.ml2tuner.models import Trees
from hilt.tune.ml2tuner.records import Records
from hilt.tune.problem import TuningProblem
from hilt_experiments.ml2tuner_models import HYPERPARAMETERS, Model, TooFewRecordsError, features_and_labels

GRID: Mapping[str, Sequence[float]] = {
    "max_depth": tuple(range(3, 16)),
    "min_child_weight": (1, 3, 5, 7, 9),
    "gamma": (0.0, 0.25, 0.5, 0.75),
    "subsample": (0.4, 0.6, 0.8, 1.0),
    "colsample_bytree": (0.5, 0.6, 0.8, 1.0),
    "learning_rate": (0.001, 0.01, 0.1, 0.2, 0.3),
    "reg_alpha": (1e-5, 1e-2, 1e-1, 1.0, 10.0),
}
"""The grid of Table 3, with these values from its intervals: 104,000 points."""

OBJECTIVES: Mapping[Model, Sequence[str]] = {
    "P": ("reg:squarederror", "rank:pairwise"),
    "A": ("reg:squarederror", "rank:pairwise"),
    "V": ("reg:squarederror", "reg:logistic", "binary:hinge", "binary:logistic"),
}
"""The objectives of Table 4."""


@dataclass(frozen=True)
class _Ranking(Hyperparameters):
    """Hyperparameters of a ranking, with one drawn pair a sample, as for AutoTVM's trees.

    By default XGBoost learns only from the 32 samples that it ranks best, but is then judged by all pairs.
    """

    def parameters(self, seed: int) -> dict[str, object]:
        drawn = {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 1}
        return super().parameters(seed) | drawn


@dataclass(frozen=True)
class Score:
    """One set of hyperparameters on the held-out folds.

    The paper does not define its accuracy. Here it is the share of pairs in the right order for P and A, and the share
    of configurations in the right class for V. `rmse` is of relative latency, or of 0 and 1; a ranking has none (NaN).
    `seconds` is processor time of fits and predictions.
    """

    hyperparameters: Hyperparameters
    accuracy: float
    rmse: float
    seconds: float


def grid_search(
    problem: TuningProblem,
    records: Records,
    model: Model,
    seed: int,
    *,
    grid: Mapping[str, Sequence[float]] = GRID,
    points: int = 100,
    folds: int = 5,
    hidden: Hidden = Hidden.TABLE_5,
) -> list[Score]:
    """Return the scores of `points` of the grid, best accuracy first; ties by error, then by order of drawing.

    The points are drawn without replacement, all if the grid has no more. Raises TooFewRecordsError.
    """
    tried = points_of(model, seed, grid=grid, points=points)
    scores = cross_validate(problem, records, model, tried, seed, folds=folds, hidden=hidden)
    return sorted(scores, key=lambda score: (-score.accuracy, score.rmse))


def points_of(
    model: Model, seed: int, *, grid: Mapping[str, Sequence[float]] = GRID, points: int = 100
) -> list[Hyperparameters]:
    """Return the points of the grid that `grid_search` tries, in the order of drawing."""
    return [replace(HYPERPARAMETERS[model], **values) for values in _drawn(grid, points, seed)]


def compare_objectives(
    problem: TuningProblem,
    records: Records,
    model: Model,
    seed: int,
    *,
    folds: int = 5,
    hidden: Hidden = Hidden.TABLE_5,
) -> list[Score]:
    """Return the scores of the objectives of Table 4, in the table's order.

    All other hyperparameters are the tuner's. Raises TooFewRecordsError.
    """
    tried = [_with_objective(HYPERPARAMETERS[model], objective) for objective in OBJECTIVES[model]]
    return cross_validate(problem, records, model, tried, seed, folds=folds, hidden=hidden)


def _with_objective(hyperparameters: Hyperparameters, objective: str) -> Hyperparameters:
    kind = _Ranking if objective.startswith("rank:") else Hyperparameters
    return kind(**(asdict(hyperparameters) | {"objective": objective}))


def cross_validate(
    problem: TuningProblem,
    records: Records,
    model: Model,
    tried: Sequence[Hyperparameters],
    seed: int,
    *,
    folds: int = 5,
    hidden: Hidden = Hidden.TABLE_5,
) -> list[Score]:
    """Return the score of each set of hyperparameters on the same folds. Raises TooFewRecordsError."""
    features, labels = features_and_labels(problem, records, model, hidden)
    if not 2 <= folds <= len(labels):
        raise TooFewRecordsError(f"{len(labels)} records cannot be cut into {folds} folds: at least 2, at most as many")
    fold_of = np.random.default_rng(seed).permutation(len(labels)) % folds
    return [_score(hyperparameters, features.values, labels, fold_of, model, seed) for hyperparameters in tried]


def _score(
    hyperparameters: Hyperparameters,
    rows: npt.NDArray[np.float32],
    labels: npt.NDArray[np.float64],
    fold_of: npt.NDArray[np.int64],
    model: Model,
    seed: int,
) -> Score:
    accuracies, predictions = [], np.empty(len(labels))
    start = time.process_time()
    # A ranking puts the largest label first: throughput, as in AutoTVM.
    ranks = hyperparameters.objective.startswith("rank:")
    taught = 1 / labels if ranks else labels
    for fold in range(int(fold_of.max()) + 1):
        held_out = fold_of == fold
        trees = Trees(hyperparameters, seed)
        trees.fit(rows[~held_out], taught[~held_out])
        predictions[held_out] = trees.predict(rows[held_out])
        worth = predictions[held_out] if model == "V" or ranks else -predictions[held_out]
        accuracies.append(_accuracy(worth, labels[held_out], model))
    error = float("nan") if ranks else rmse(predictions, labels)
    return Score(hyperparameters, float(np.nanmean(accuracies)), error, time.process_time() - start)


def _accuracy(worth: npt.NDArray[np.float64], labels: npt.NDArray[np.float64], model: Model) -> float:
    if model == "V":
        return float(np.mean((worth > 0.5) == (labels > 0.5)))
    return pairwise_accuracy(worth, 1 / labels).all


def _drawn(grid: Mapping[str, Sequence[float]], points: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the values of drawn points by name."""
    shape = [len(values) for values in grid.values()]
    size = int(np.prod(shape))
    for place in np.random.default_rng(seed).choice(size, size=min(points, size), replace=False).tolist():
        chosen = np.unravel_index(place, shape)
        yield {name: values[int(at)] for (name, values), at in zip(grid.items(), chosen, strict=True)}
