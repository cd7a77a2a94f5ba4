"""AutoTVM started from the compiler's verdicts (Rieber et al. 2022). Each of its three parts can be switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hilt.trial import Outcome
from hilt.tune.annealing import Annealing, AnnealingSchedule
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.cost_model import Features, FeaturesOf, Indices, Score, Scores, remembered, scorer
from hilt.tune.feedback import Feedback
from hilt.tune.hardware_aware.presampling import Presamples, ValidityCheck, balanced_epoch, presample, sample_uniformly
from hilt.tune.labels import relative_throughput
from hilt.tune.options import require
from hilt.tune.problem import TuningProblem
from hilt.tune.search_space import SearchSpace
from hilt.tune.selection import EpsilonGreedyPlan
from hilt.tune.stopwatch import Stopwatch
from hilt.tune.untried import Untried

KNOWN_INVALID = np.float32(-1e6)
"""The score of a configuration that is known to be invalid."""
KNOWN_VALID = np.float32(1)
"""The bonus on the score of a configuration that is known to be valid: predictions were mostly between -7 and 7."""


def biased(score: Score, presamples: Presamples) -> Score:
    """Return the score with the paper's bias for presampled configurations; others keep their score."""
    order = np.argsort(presamples.indices)
    known, valid = presamples.indices[order], presamples.valid[order]

    def with_bias(indices: Indices) -> Scores:
        scores = score(indices)
        places = np.minimum(np.searchsorted(known, indices), len(known) - 1)
        is_known = known[places] == indices
        better = np.where(is_known & valid[places], scores + KNOWN_VALID, scores)
        return np.where(is_known & ~valid[places], KNOWN_INVALID, better)

    return with_bias


INVALID = ("zero", "left_out")


@dataclass(frozen=True)
class HardwareAwareOptions:
    """The options of the tuner: defaults are the paper's, and TVM v0.9's if the paper gives none."""

    presampling: bool = True
    """Check configurations by Algorithm 1; otherwise the same number, drawn uniformly."""
    selection: bool = True
    """Choose a balanced first epoch, far apart; otherwise draw it uniformly from the checked configurations."""
    biased_annealing: bool = True
    """Bias the annealing by the verdicts of the checks."""
    invalid: str = "zero"
    """The label of invalid configurations for the model: zero performance (zero), or none (left_out)."""
    samples: int = 1000
    """Configurations checked before the first epoch, at most."""
    parallel: int = 50
    """Configurations checked at a time; the paper gives no number."""
    epoch: int = 50
    """Trials planned by one fit of the model; the model is fitted after as many results."""
    random_share: float = 0.05
    """Share of an epoch that is drawn at random; the first epoch has no such share."""
    loss: str = "rank"
    """rank or regression."""
    rounds: int = 8000
    """Boosting rounds at most."""
    patience: int = 20
    """Rounds without gain of average recall after which boosting stops."""
    annealing_iterations: int = 500
    """Steps of one annealing, at most."""
    annealing_points: int = 128
    """Walkers of the annealing, each a configuration."""
    annealing_patience: int = 50
    """Iterations without a better candidate after which annealing stops."""

    def __post_init__(self) -> None:
        require(0 <= self.random_share <= 1, f"random_share is between 0 and 1, not {self.random_share}")
        require(self.loss in set(Loss), f"loss is one of {', '.join(Loss)}; not {self.loss!r}")
        require(self.invalid in INVALID, f"invalid is one of {', '.join(INVALID)}; not {self.invalid!r}")
        for name in ("samples", "parallel", "epoch", "rounds", "patience", "annealing_iterations", "annealing_points"):
            require(getattr(self, name) >= 1, f"{name} is at least 1, not {getattr(self, name)}")
        require(self.annealing_patience >= 1, f"annealing_patience is at least 1, not {self.annealing_patience}")


class HardwareAwareTuner:
    """The first epoch from presampling, then epochs as in AutoTVM: fit anew, anneal, measure untried configurations."""

    def __init__(
        self,
        space: SearchSpace,
        seed: int,
        options: HardwareAwareOptions,
        features_of: FeaturesOf,
        check: ValidityCheck,
    ) -> None:
        drawing, walking, fitting, presampling = np.random.SeedSequence(seed).spawn(4)
        self._generator = np.random.default_rng(drawing)
        self._presampling_generator = np.random.default_rng(presampling)
        self._space = space
        self._features_of = features_of
        self._check = check
        self._options = options
        self._untried = Untried(len(space))
        self._annealing = Annealing(
            space,
            AnnealingSchedule(options.annealing_iterations, options.annealing_points, options.annealing_patience),
            np.random.default_rng(walking),
        )
        model_seed = int(fitting.generate_state(1)[0] >> 1)  # XGBoost's seed is a signed 32-bit number
        self._model = BoostedTrees(Loss(options.loss), options.epoch, options.rounds, options.patience, model_seed)
        self._history: list[Feedback] = []
        self._fits = 0
        self._plan: EpsilonGreedyPlan | None = None
        self._stopwatch = Stopwatch()

    def ask(self, count: int) -> list[int]:
        if self._plan is None:
            self._plan = self._first_plan()
        count = min(count, len(self._untried))
        return [self._plan.take(self._untried, self._generator) for _ in range(count)]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        # A lost board gives no result for the configuration.
        self._history += [item for item in feedback if item.outcome is not Outcome.BOARD_LOST]
        enough = len(self._history) >= self._options.epoch * (self._fits + 1)
        if enough and any(item.outcome is Outcome.OK for item in self._history):
            self._fit_and_plan()

    def overheads(self) -> dict[str, float]:
        """Return the processor seconds so far: presampling, selection, features, training, search."""
        return self._stopwatch.seconds

    @cached_property
    def presamples(self) -> Presamples:
        """The checked configurations with their verdicts."""
        options, generator = self._options, self._presampling_generator
        with self._stopwatch.part("presampling"):
            if options.presampling:
                return presample(self._space, self._check, options.samples, options.parallel, generator)
            return sample_uniformly(self._space, self._check, options.samples, generator)

    def first_epoch(self) -> Indices:
        """Return the paper's E0."""
        presamples = self.presamples
        with self._stopwatch.part("selection"):
            if self._options.selection:
                return balanced_epoch(self._space, presamples, self._options.epoch)
            # Algorithm 1 reaches valid configurations late: the first of its order would not be a fair draw.
            count = min(self._options.epoch, len(presamples.indices))
            return self._presampling_generator.choice(presamples.indices, size=count, replace=False)

    def _first_plan(self) -> EpsilonGreedyPlan:
        """Return a plan of E0, then of other configurations that are known to be valid, as far as there are any.

        The others serve if more trials are requested before E0 is measured: the paper measures an epoch at once.
        """
        first, presamples = self.first_epoch(), self.presamples
        spare = presamples.indices[presamples.valid & ~np.isin(presamples.indices, first)]
        candidates = [*first.tolist(), *(spare.tolist() if self._options.selection else [])]
        return EpsilonGreedyPlan(candidates, self._options.epoch, random_share=0.0)

    def _fit_and_plan(self) -> None:
        options = self._options
        learnt = [item for item in self._history if options.invalid == "zero" or item.outcome is Outcome.OK]
        features = self._features(np.array([item.index for item in learnt], dtype=np.int64))
        with self._stopwatch.part("training"):
            self._model.fit(features, relative_throughput(learnt))
        self._fits += 1
        with self._stopwatch.part("search"):
            score = scorer(self._model, self._features, len(self._space))
            if options.biased_annealing:
                score = biased(score, self.presamples)
            found = self._annealing.search(score, options.epoch, self._untried)
        candidates = [index for value, index in found if value >= 0]
        self._plan = EpsilonGreedyPlan(candidates, options.epoch, options.random_share)

    def _features(self, indices: Indices) -> Features:
        with self._stopwatch.part("features"):
            return self._features_of(indices)


def hardware_aware(problem: TuningProblem, seed: int, options: HardwareAwareOptions) -> HardwareAwareTuner:
    """Return the tuner in the paper's form: knob features, and the compiler as the validity check."""
    features_of = problem.once(("features", "knob"), lambda: remembered(problem.knob_features, len(problem.space)))
    return HardwareAwareTuner(problem.space, seed, options, features_of, lambda indices: problem.compiles[indices])
