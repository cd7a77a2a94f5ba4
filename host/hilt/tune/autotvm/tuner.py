"""AutoTVM's XGBTuner as TVM v0.9 has it (TVM_FACTS section 4): trees rank, annealing searches, a few are random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilt.trial import Outcome
from hilt.tune.annealing import Annealing, AnnealingSchedule
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.cost_model import FeaturesOf, scorer
from hilt.tune.feedback import Feedback
from hilt.tune.labels import relative_throughput
from hilt.tune.options import require
from hilt.tune.selection import EpsilonGreedyPlan
from hilt.tune.space import SearchSpace
from hilt.tune.unasked import Unasked


@dataclass(frozen=True)
class XGBOptions:
    """Defaults are TVM v0.9's."""

    plan_size: int = 64
    """Trials planned by one fit of the model; a fit every so many results."""
    random_share: float = 0.05
    """Share of a plan that is drawn at random."""
    loss: str = "rank"
    """rank or regression."""
    rounds: int = 8000
    """Boosting rounds at most."""
    patience: int = 20
    """Rounds without gain of average recall after which boosting stops."""
    annealing_iterations: int = 500
    annealing_points: int = 128
    annealing_patience: int = 50
    """Iterations without a better candidate after which annealing stops."""

    def __post_init__(self) -> None:
        require(0 <= self.random_share <= 1, f"random_share is between 0 and 1, not {self.random_share}")
        require(self.loss in set(Loss), f"loss is one of {', '.join(Loss)}; not {self.loss!r}")
        for name in ("plan_size", "rounds", "patience", "annealing_iterations", "annealing_points"):
            require(getattr(self, name) >= 1, f"{name} is at least 1, not {getattr(self, name)}")
        require(self.annealing_patience >= 1, f"annealing_patience is at least 1, not {self.annealing_patience}")


class XGBTuner:
    """Random until the first fit, then plan by plan: fit from scratch, anneal, measure the best that are new."""

    def __init__(self, space: SearchSpace, seed: int, options: XGBOptions, features_of: FeaturesOf) -> None:
        drawing, walking, fitting = np.random.SeedSequence(seed).spawn(3)
        self._generator = np.random.default_rng(drawing)
        self._size = len(space)
        self._features_of = features_of
        self._options = options
        self._unasked = Unasked(len(space))
        self._annealing = Annealing(
            space,
            AnnealingSchedule(options.annealing_iterations, options.annealing_points, options.annealing_patience),
            np.random.default_rng(walking),
        )
        model_seed = int(fitting.generate_state(1)[0] >> 1)  # XGBoost's seed is a signed 32-bit number
        self._model = BoostedTrees(Loss(options.loss), options.plan_size, options.rounds, options.patience, model_seed)
        self._history: list[Feedback] = []
        self._fits = 0
        self._plan = EpsilonGreedyPlan([], options.plan_size, options.random_share)

    def ask(self, count: int) -> list[int]:
        count = min(count, len(self._unasked))
        return [self._plan.take(self._unasked, self._generator) for _ in range(count)]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        # A lost board says nothing about the configuration.
        self._history += [item for item in feedback if item.outcome is not Outcome.BOARD_LOST]
        enough = len(self._history) >= self._options.plan_size * (self._fits + 1)
        if enough and any(item.outcome is Outcome.OK for item in self._history):
            self._fit_and_plan()

    def _fit_and_plan(self) -> None:
        indices = np.array([item.index for item in self._history], dtype=np.int64)
        self._model.fit(self._features_of(indices), relative_throughput(self._history))
        self._fits += 1
        score = scorer(self._model, self._features_of, self._size)
        found = self._annealing.search(score, self._options.plan_size, self._unasked)
        candidates = [index for value, index in found if value >= 0]
        self._plan = EpsilonGreedyPlan(candidates, self._options.plan_size, self._options.random_share)
