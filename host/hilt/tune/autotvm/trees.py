"""The tuner `autotvm`: boosted trees over a choice of features, alone or bootstrapped, with or without transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hilt.tune.autotvm.planned import PlannedTuner, PlanOptions, Streams, require_positive
from hilt.tune.autotvm.transfer import GlobalModel, GlobalPlusLocal, with_global
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.cost_model import CostModel, Features, FeaturesOf, Score, Scores, remembered
from hilt.tune.history import History, HistoryError, digest_of
from hilt.tune.options import TunerOptionError, require
from hilt.tune.problem import TuningProblem
from hilt.tune.search_space import SearchSpace

Floats = npt.NDArray[np.float64]


class Representation(StrEnum):
    """The features of a configuration that the trees use."""

    KNOB = "knob"
    AST = "ast"
    CONTEXT = "context"


@dataclass(frozen=True)
class AutoTVMOptions(PlanOptions):
    """The options of the tuner; defaults are TVM v0.9's, which make the baseline."""

    features: str = "knob"
    """knob (the configuration), ast (the loops' contexts, flattened) or context (context relations)."""
    loss: str = "rank"
    """rank or regression."""
    rounds: int = 8000
    """Boosting rounds at most."""
    patience: int = 20
    """Rounds without gain of average recall after which boosting stops."""
    acquisition: str = "none"
    """none: one model's prediction. mean, ei or ucb: that of bootstrapped models, with loss regression."""
    bootstraps: int = 5
    """Number of models, if there is an acquisition."""
    kappa: float = 1.96
    """Deviations that ucb adds to the mean."""
    history: str = ""
    """File of other workloads' results (hilt.tune.history) to transfer from; empty: none."""
    history_sha256: str = ""
    """The SHA-256 of the history file: computed if it is empty, else checked against the file."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_one_of(Representation, "features", self.features)
        _require_one_of(Loss, "loss", self.loss)
        _require_one_of(AcquisitionRule, "acquisition", self.acquisition)
        require_positive(self, "rounds", "patience")
        if self.acquisition != AcquisitionRule.NONE:
            require(self.bootstraps >= 2, f"bootstraps is at least 2, not {self.bootstraps}")
            require(
                self.loss == Loss.REGRESSION,
                f"acquisition {self.acquisition} needs loss=regression: ranks of several models are not comparable",
            )
        require(self.kappa >= 0, f"kappa is not negative, as {self.kappa} is")
        object.__setattr__(self, "history_sha256", _checked_digest(self.history, self.history_sha256))


def autotvm(problem: TuningProblem, seed: int, options: AutoTVMOptions) -> PlannedTuner:
    """Return the tuner of that name. Raises TunerOptionError for a history that cannot be read or is too short."""
    features_of = _features_of(problem, Representation(options.features))
    prior = None
    if options.history:
        try:
            model = _global_model(options.history, options.history_sha256, options.loss, options.plan_size)
        except HistoryError as error:
            raise TunerOptionError(str(error)) from error
        prior = model.over(problem)
        features_of = remembered(with_global(features_of, prior), len(problem.space))
    return trees_tuner(problem.space, seed, options, features_of, prior)


@lru_cache(maxsize=4)
def _global_model(history: str, sha256: str, loss: str, plan_size: int) -> GlobalModel:
    """Return the global model, kept for the next run with the same arguments.

    The seeds of an experiment learn from one history.
    """
    return GlobalModel.of(History.load(history), Loss(loss), 2 * plan_size)


def trees_tuner(
    space: SearchSpace, seed: int, options: AutoTVMOptions, features_of: FeaturesOf, prior: Score | None = None
) -> PlannedTuner:
    """Return the same tuner over any space and features; with a `prior`, its scores are the features' last column."""
    streams = Streams.of(seed)
    if options.acquisition == AcquisitionRule.NONE:
        model = _trees(options, streams.model_seeds(1)[0], prior is not None)
    else:
        drawing, *seeds = streams.model_seeds(1 + options.bootstraps)
        trees = [_trees(options, seed, prior is not None) for seed in seeds]
        model = Bootstrap(trees, AcquisitionRule(options.acquisition), options.kappa, drawing)
    return PlannedTuner(space, streams, options, model, features_of, prior)


def _trees(options: AutoTVMOptions, seed: int, transferred: bool) -> CostModel:
    trees = BoostedTrees(Loss(options.loss), options.plan_size, options.rounds, options.patience, seed)
    return GlobalPlusLocal(trees) if transferred else trees


def _features_of(problem: TuningProblem, representation: Representation) -> FeaturesOf:
    worked_out = _worked_out(problem, representation)
    return problem.once(("features", str(representation)), lambda: remembered(worked_out, len(problem.space)))


def _worked_out(problem: TuningProblem, representation: Representation) -> FeaturesOf:
    match representation:
        case Representation.KNOB:
            return problem.knob_features
        case Representation.AST:
            return lambda indices: problem.ast_features(indices).values
        case Representation.CONTEXT:
            return lambda indices: problem.context_relation_features(indices).values


def _require_one_of(choices: type[StrEnum], name: str, value: str) -> None:
    require(value in set(choices), f"{name} is one of {', '.join(choices)}; not {value!r}")


def _checked_digest(history: str, expected: str) -> str:
    """Return the digest of the file `history`. Raises TunerOptionError if the file has changed."""
    if not history:
        require(not expected, "history_sha256 is given, but no history")
        return ""
    try:
        found = digest_of(history)
    except HistoryError as error:
        raise TunerOptionError(str(error)) from error
    require(
        expected in ("", found),
        f"history {history} has changed: its sha256 is {found[:12]}, not {expected[:12]}; bring back the old file",
    )
    return found


class AcquisitionRule(StrEnum):
    """The objective of the search: one model's prediction, or the mean, EI or UCB of several bootstrapped models."""

    NONE = "none"
    MEAN = "mean"
    EI = "ei"
    UCB = "ucb"


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return E[max(X - best, 0)] of X ~ N(mean, deviation^2), shape (n,).

    It is max(mean - best, 0) if the deviation is 0.
    """
    from scipy.special import ndtr

    gain = mean - best
    spread = np.where(deviation > 0, deviation, 1.0)
    standard = gain / spread
    density = np.exp(-(standard**2) / 2) / np.sqrt(2 * np.pi)
    return np.where(deviation > 0, gain * ndtr(standard) + spread * density, np.maximum(gain, 0.0))


def upper_confidence_bound(mean: Floats, deviation: Floats, kappa: float) -> Floats:
    """Return mean + kappa * deviation, shape (n,)."""
    return mean + kappa * deviation


class Bootstrap:
    """A CostModel of several models (AutoTVM, section 3.3).

    Each learns from as many samples as there are, drawn with replacement.
    """

    def __init__(self, models: Sequence[CostModel], acquisition: AcquisitionRule, kappa: float, seed: int) -> None:
        self._models = models
        self._acquisition = acquisition
        self._kappa = kappa
        self._generator = np.random.default_rng(seed)
        self._best = 0.0

    def fit(self, features: Features, labels: Scores) -> None:
        self._best = float(labels.max(initial=0.0))
        for model in self._models:
            drawn = self._generator.integers(len(labels), size=len(labels))
            model.fit(features[drawn], labels[drawn])

    def predict(self, features: Features) -> Scores:
        """Return the acquisition function (n,). EI is over the best label of the training set."""
        predictions = np.stack([model.predict(features) for model in self._models]).astype(np.float64)
        mean, deviation = predictions.mean(axis=0), predictions.std(axis=0, ddof=1)
        if self._acquisition is AcquisitionRule.EI:
            mean = expected_improvement(mean, deviation, self._best)
        if self._acquisition is AcquisitionRule.UCB:
            mean = upper_confidence_bound(mean, deviation, self._kappa)
        return np.asarray(mean, dtype=np.float32)
