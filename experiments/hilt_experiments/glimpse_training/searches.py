"""Searches for training: Glimpse's loop over a pool with known measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hilt.schedule.features import knob_features
from hilt.tune.boosted_trees import BoostedTrees
from hilt.tune.glimpse.acquisition import SearchProgress, distance_in_knobs, search_features
from hilt.tune.glimpse.encoding import KnobSpace
from hilt.tune.glimpse.network import NumpyPerceptron
from hilt.tune.glimpse.prior import Prior
from hilt.tune.glimpse.thresholds import ThresholdEnsemble
from hilt.tune.glimpse.tuner import new_surrogate, surrogate_features
from hilt_experiments.glimpse_training.dataset import LayerTask
from hilt_experiments.glimpse_training.modules import Floats
from hilt_experiments.glimpse_training.pools import Example, Pools

Indices = npt.NDArray[np.int64]

TAU = 1 / 3
CANDIDATES = 96
"""Candidates of a step: the remaining ones with the highest prediction, as annealing over a whole space would find."""
BUDGETS = ((32, 4), (64, 8), (128, 16))
"""Trials of a search, and trials between two fits."""
WORST_REGRET = float(np.log(4))
"""Regret of a search that found nothing valid, or nothing within four times the best."""


@dataclass(frozen=True, eq=False)
class Course:
    """The common part of the searches on one example: the prior, the vote, and the merit of each of its pool."""

    pools: Pools
    number: int
    description: Floats
    prior_network: NumpyPerceptron
    threshold_network: NumpyPerceptron

    @cached_property
    def members(self) -> Indices:
        """Pool members that exist and pass the ensemble."""
        exists = np.flatnonzero(self._indices >= 0)
        ensemble = ThresholdEnsemble.generate(self.threshold_network, self.description, self._knobs)
        passed = exists[~ensemble.rejects(self.features[exists], TAU)]
        return passed if np.any(self.merit[passed] > 0) else exists

    @cached_property
    def prior(self) -> Floats:
        """The logarithm of the prior, (POOL,)."""
        prior = Prior.generate(self.prior_network, self.description, self._knobs)
        return prior.logarithm(np.maximum(self._indices, 0))

    @cached_property
    def merit(self) -> Floats:
        """The merit (POOL,): 0 if invalid, 1 for the best."""
        merit = self.pools.merit(self.pools.examples[self.number])
        return np.asarray(merit / merit.max())

    @cached_property
    def features(self) -> Floats:
        return np.asarray(self.pools.features[self._example.task])

    @cached_property
    def positions(self) -> Indices:
        return self._task.space.positions(np.maximum(self._indices, 0))

    @cached_property
    def surrogate_features(self) -> Floats:
        return surrogate_features(knob_features(self._task.space, np.maximum(self._indices, 0)), self.prior)

    @cached_property
    def _knobs(self) -> KnobSpace:
        return KnobSpace.of(self._task.space, self._task.workload)

    @property
    def _indices(self) -> Indices:
        return np.asarray(self.pools.indices[self._example.task])

    @property
    def _example(self) -> Example:
        return self.pools.examples[self.number]

    @property
    def _task(self) -> LayerTask:
        return self.pools.tasks[self._example.task]


@dataclass(frozen=True)
class Step:
    """One decision of a search.

    It holds the inputs of the acquisition function (candidates, inputs), merits (candidates,), the picked candidates in
    order (picks,), and the regret after their measurement.
    """

    inputs: Floats
    merits: Floats
    picks: Indices
    regret: float


@dataclass(eq=False)
class Search:
    """One search: first samples by the prior, then batch by batch by the picks of a policy."""

    course: Course
    budget: int
    batch: int
    generator: np.random.Generator
    measured: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        course = self.course
        keys = course.prior[course.members] + self.generator.gumbel(size=len(course.members))
        self.measured = course.members[np.argsort(-keys, kind="stable")[: self.batch]].tolist()
        self._surrogate: BoostedTrees = new_surrogate(self.batch, 1)

    @property
    def over(self) -> bool:
        return len(self.measured) >= min(self.budget, len(self.course.members) - self.batch)

    def candidates(self) -> tuple[Indices, Floats]:
        """Return the members of the pool still to be measured, and the inputs that describe them now."""
        course = self.course
        predicted = np.ones(len(course.merit), dtype=np.float32)
        best = max(course.merit[self.measured].max(), 1e-6)
        if best > 1e-6:
            self._surrogate.fit(course.surrogate_features[self.measured], course.merit[self.measured] / best)
            predicted = self._surrogate.predict(course.surrogate_features)
        left = np.setdiff1d(course.members, self.measured)
        chosen = left[np.argsort(-predicted[left], kind="stable")[:CANDIDATES]]
        valid = float(np.mean(course.merit[self.measured] > 0))
        search = search_features(
            SearchProgress(len(self.measured), self.budget, valid),
            predicted[chosen],
            course.prior[chosen],
            distance_in_knobs(course.positions[chosen], course.positions[self.measured]),
        )
        described = np.tile(course.description, (len(chosen), 1))
        return chosen, np.concatenate([course.features[chosen], search, described], axis=1)

    def measure(self, candidates: Indices, inputs: Floats, picks: Indices) -> None:
        """Measure the candidates at these positions."""
        self.measured += candidates[picks].tolist()
        best = float(self.course.merit[self.measured].max())
        regret = min(-np.log(max(best, 1e-6)), WORST_REGRET)
        self.steps.append(Step(inputs, self.course.merit[candidates], picks, regret))


def pick(logits: Sequence[float] | Floats, count: int, generator: np.random.Generator) -> Indices:
    """Draw `count` positions without replacement, one after the other with the probabilities of softmax(logits)."""
    keys = np.asarray(logits) + generator.gumbel(size=len(logits))
    return np.argsort(-keys, kind="stable")[:count]
