"""AutoTVM's loop (its Algorithm 1, as TVM v0.9 runs it) for any cost model: fit, anneal, select, measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune.annealing import Annealing, AnnealingSchedule
from hilt.tune.cost_model import CostModel, FeaturesOf, Score, scorer
from hilt.tune.feedback import Feedback
from hilt.tune.labels import relative_throughput
from hilt.tune.options import require
from hilt.tune.search_space import SearchSpace
from hilt.tune.selection import EpsilonGreedyPlan
from hilt.tune.untried import Untried

Ints = npt.NDArray[np.int64]


def pick_diverse(scores: npt.NDArray[np.floating], positions: Ints, count: int, weight: float) -> Ints:
    """Return the rows of up to `count` candidates in the order of their choice.

    L(S) of a set is the sum of its scores (n,), larger is better, plus `weight` for each different value of each knob
    among its `positions` (n, knobs). Each row adds the most to L(S) of those before it; among equals the first is
    taken. The greedy choice is within 1 - 1/e of the best set if no score is negative (Nemhauser et al., 1978).
    """
    count = min(count, len(scores))
    gains = scores.astype(np.float64)
    is_new = [np.ones(int(column.max(initial=0)) + 1, dtype=np.bool_) for column in positions.T]
    picked = np.empty(count, dtype=np.int64)
    for place in range(count):
        added = sum(new[column] for new, column in zip(is_new, positions.T, strict=True))
        row = int(np.argmax(gains + weight * added))
        picked[place] = row
        gains[row] = -np.inf
        for new, value in zip(is_new, positions[row], strict=True):
            new[value] = False
    return picked


@dataclass(frozen=True)
class PlanOptions:
    """The options of the loop; defaults are TVM v0.9's."""

    plan_size: int = 64
    """Trials planned by one fit of the model; the model is fitted after as many results."""
    random_share: float = 0.05
    """Share of a plan that is drawn at random."""
    diversity: int = 0
    """Equation 3's lambda: a plan is chosen from the best `diversity` times its size; 0 takes the best."""
    diversity_weight: float = 0.02
    """Equation 3's alpha: the worth of a knob's value that is new to the plan, in units of the prediction."""
    annealing_iterations: int = 500
    """Steps of one annealing, at most."""
    annealing_points: int = 128
    """Walkers of the annealing, each a configuration."""
    annealing_patience: int = 50
    """Iterations without a better candidate after which annealing stops."""

    def __post_init__(self) -> None:
        require(0 <= self.random_share <= 1, f"random_share is between 0 and 1, not {self.random_share}")
        require(self.diversity >= 0, f"diversity is 0 (off) or a factor from 1 on, not {self.diversity}")
        require(self.diversity_weight >= 0, f"diversity_weight is not negative, as {self.diversity_weight} is")
        require_positive(self, "plan_size", "annealing_iterations", "annealing_points", "annealing_patience")


def require_positive(options: object, *names: str) -> None:
    """Raise TunerOptionError for the first of these whole numbers that is below 1."""
    for name in names:
        require(getattr(options, name) >= 1, f"{name} is at least 1, not {getattr(options, name)}")


@dataclass(frozen=True)
class Streams:
    """Three independent seeds from one: for draws, for annealing, for the model."""

    drawing: np.random.SeedSequence
    walking: np.random.SeedSequence
    fitting: np.random.SeedSequence

    @classmethod
    def of(cls, seed: int) -> Streams:
        return cls(*np.random.SeedSequence(seed).spawn(3))

    def model_seeds(self, count: int) -> list[int]:
        """Return seeds for libraries with signed 32-bit seeds; the first seed does not depend on `count`."""
        return [int(state >> 1) for state in self.fitting.generate_state(count)]


class PlannedTuner:
    """A tuner that is random until the first fit and then goes plan by plan.

    If `prior` is given, it scores the space before any measurement and replaces the random start.
    """

    def __init__(
        self,
        space: SearchSpace,
        streams: Streams,
        options: PlanOptions,
        model: CostModel,
        features_of: FeaturesOf,
        prior: Score | None = None,
        least_score: float = 0.0,
    ) -> None:
        """Drop candidates that the model scores below `least_score`, as TVM drops those below 0."""
        self._space = space
        self._generator = np.random.default_rng(streams.drawing)
        self._model = model
        self._features_of = features_of
        self._options = options
        self._least_score = least_score
        self._untried = Untried(len(space))
        schedule = AnnealingSchedule(options.annealing_iterations, options.annealing_points, options.annealing_patience)
        self._annealing = Annealing(space, schedule, np.random.default_rng(streams.walking))
        self._history: list[Feedback] = []
        self._fits = 0
        self._prior = prior
        self._plan = EpsilonGreedyPlan([], options.plan_size, options.random_share)

    @property
    def annealing_steps(self) -> int:
        """Return the moves of the annealing's points so far."""
        return self._annealing.steps

    def ask(self, count: int) -> list[int]:
        if self._prior is not None:
            self._plan = self._planned(self._prior, -np.inf)
            self._prior = None
        count = min(count, len(self._untried))
        return [self._plan.take(self._untried, self._generator) for _ in range(count)]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        # A lost board gives no result for the configuration.
        self._history += [item for item in feedback if item.outcome is not Outcome.BOARD_LOST]
        enough = len(self._history) >= self._options.plan_size * (self._fits + 1)
        if enough and any(item.outcome is Outcome.OK for item in self._history):
            self._fit()
            self._plan = self._planned(scorer(self._model, self._features_of, len(self._space)), self._least_score)

    def _fit(self) -> None:
        indices = np.array([item.index for item in self._history], dtype=np.int64)
        self._model.fit(self._features_of(indices), relative_throughput(self._history))
        self._fits += 1

    def _planned(self, score: Score, least_score: float) -> EpsilonGreedyPlan:
        options = self._options
        found = self._annealing.search(score, options.plan_size * max(options.diversity, 1), self._untried)
        candidates = [(value, index) for value, index in found if value >= least_score]
        if options.diversity and candidates:
            scores, indices = (np.array(column) for column in zip(*candidates, strict=True))
            positions = self._space.positions(indices)
            picked = pick_diverse(scores, positions, options.plan_size, options.diversity_weight)
            chosen = indices[picked].tolist()
        else:
            chosen = [index for _, index in candidates]
        return EpsilonGreedyPlan(chosen, options.plan_size, options.random_share)
