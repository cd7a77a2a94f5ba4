"""The loop of ML2Tuner (Cha et al. 2024, section 2 and Figure 1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.trial import Outcome
from hilt.tune.annealing import Annealing, AnnealingSchedule
from hilt.tune.cost_model import Features, FeaturesOf, Indices, Score, remembered, scorer
from hilt.tune.feedback import Feedback
from hilt.tune.ml2tuner.features import Hidden, advanced_features, visible_features
from hilt.tune.ml2tuner.hyperparameters import PERFORMANCE, VALIDITY
from hilt.tune.ml2tuner.models import Trees, relative_latency
from hilt.tune.options import require
from hilt.tune.problem import TuningProblem
from hilt.tune.search_space import SearchSpace
from hilt.tune.stopwatch import Stopwatch
from hilt.tune.untried import Untried

ValidityModel = Callable[[Indices], npt.NDArray[np.bool_]]
"""A check whether the configurations with these indices (n,) are predicted to be valid (n,)."""


def explore(
    annealing: Annealing, score: Score, looks_valid: ValidityModel, count: int, allowed: Container[int]
) -> Indices:
    """Return `count` allowed configurations (n,) that look valid, the best scored of each pass first.

    Each pass of the search leaves out the results of earlier passes. It requests twice as many as the one before,
    because
    V may reject all of P's favourites. If a pass returns fewer than requested, the search ends with fewer results.
    """
    found: list[int] = []
    seen: set[int] = set()
    wanted = count
    while len(found) < count:
        ranked = [index for _, index in annealing.search(score, wanted, _Without(allowed, seen))]
        seen.update(ranked)
        candidates = np.array(ranked, dtype=np.int64)
        found += candidates[looks_valid(candidates)].tolist() if ranked else []
        if len(ranked) < wanted:
            break
        wanted *= 2
    return np.array(found[:count], dtype=np.int64)


class _Without(Container[int]):
    """The allowed indices that no pass has returned yet."""

    def __init__(self, allowed: Container[int], seen: set[int]) -> None:
        self._allowed = allowed
        self._seen = seen

    def __contains__(self, index: object) -> bool:
        return index not in self._seen and index in self._allowed


@dataclass(frozen=True)
class ML2TunerOptions:
    """The options of the tuner: defaults are the paper's, and TVM's for the search, which the paper keeps."""

    N: int = 10
    """Trials of a round, after which the models are fitted anew."""
    alpha: float = 1.0
    """A chooses N of (alpha + 1) * N compiled configurations."""
    model_v: bool = True
    """Leave out configurations that V predicts to be invalid."""
    model_a: bool = True
    """Let A choose; otherwise P's best N are measured."""
    hidden: str = "table5"
    """The hidden features of A: the paper's nineteen (table5), or all that our compiler derives (all)."""
    refit_growth: float = 0.0
    """Share by which the records must grow before the models are fitted anew; 0: before each round."""
    annealing_iterations: int = 500
    """Steps of one annealing, at most."""
    annealing_points: int = 128
    """Walkers of the annealing, each a configuration."""
    annealing_patience: int = 50
    """Iterations without a better candidate after which annealing stops."""

    def __post_init__(self) -> None:
        for name in ("N", "annealing_iterations", "annealing_points", "annealing_patience"):
            require(getattr(self, name) >= 1, f"{name} is at least 1, not {getattr(self, name)}")
        require(0 <= self.alpha <= 1000, f"alpha is between 0 and 1000, not {self.alpha}")
        require(0 <= self.refit_growth <= 1, f"refit_growth is between 0 and 1, not {self.refit_growth}")
        require(self.hidden in set(Hidden), f"hidden is one of {', '.join(Hidden)}; not {self.hidden!r}")


class ML2Tuner:
    """A tuner that is random until one configuration is valid, then goes round by round.

    A round explores by P and V, compiles, and chooses by A.
    """

    def __init__(
        self, space: SearchSpace, seed: int, options: ML2TunerOptions, visible: FeaturesOf, advanced: FeaturesOf
    ) -> None:
        """Take the features of P and V (`visible`) and those of A (`advanced`), which cost a compilation each."""
        drawing, walking, fitting = np.random.SeedSequence(seed).spawn(3)
        self._generator = np.random.default_rng(drawing)
        self._size = len(space)
        self._visible_of = visible
        self._advanced_of = advanced
        self._options = options
        self._untried = Untried(len(space))
        self._annealing = Annealing(
            space,
            AnnealingSchedule(options.annealing_iterations, options.annealing_points, options.annealing_patience),
            np.random.default_rng(walking),
        )
        # XGBoost's seed is a signed 32-bit number
        seeds = (fitting.generate_state(3) >> 1).tolist()
        self._p, self._v, self._a = (
            Trees(objective, seed) for objective, seed in zip((PERFORMANCE, VALIDITY, PERFORMANCE), seeds, strict=True)
        )
        self._latency: Score | None = None
        """The prediction of P, computed once for a fit, over the whole space if that fits a table."""
        self._history: list[Feedback] = []
        self._learnt = 0
        self._learnt_valid = 0
        self._round: list[int] = []
        self._stopwatch = Stopwatch()

    def ask(self, count: int) -> list[int]:
        asked: list[int] = []
        while len(asked) < count and (self._round or len(self._untried)):
            if not self._round:
                self._round = self._next_round()
            taken = self._round[: count - len(asked)]
            del self._round[: len(taken)]
            asked += taken
        return asked

    def tell(self, feedback: Sequence[Feedback]) -> None:
        # A lost board gives no result for the configuration.
        self._history += [item for item in feedback if item.outcome is not Outcome.BOARD_LOST]

    def overheads(self) -> dict[str, float]:
        """Return the processor seconds so far: training, features, search, compilation (features of A)."""
        return self._stopwatch.seconds

    def _next_round(self) -> list[int]:
        """Return N untried configurations; random ones if the models offer too few."""
        chosen = self._chosen() if self._learn() else []
        for index in chosen:
            self._untried.take(index)
        missing = min(self._options.N - len(chosen), len(self._untried))
        return chosen + [self._untried.draw(self._generator) for _ in range(missing)]

    def _learn(self) -> bool:
        """Fit the models to all results, if there are new ones, and return whether they are fitted.

        The models are fitted once a result was valid.
        """
        if len(self._history) > self._learnt * (1 + self._options.refit_growth):
            latencies = np.array(
                [math.nan if item.microseconds is None else item.microseconds for item in self._history]
            )
            valid = ~np.isnan(latencies)
            if valid.any():
                self._learnt = len(self._history)
                self._fit(np.array([item.index for item in self._history], dtype=np.int64), latencies, valid)
        return self._p.fitted

    def _fit(self, indices: Indices, latencies: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_]) -> None:
        """Fit V to all records, P and A to the valid ones. Without a new valid record, P and A would stay the same."""
        visible = self._visible(indices)
        with self._stopwatch.part("training"):
            if self._options.model_v:
                self._v.fit(visible, valid.astype(np.float32))
            if valid.sum() > self._learnt_valid:
                self._learnt_valid = int(valid.sum())
                labels = relative_latency(latencies[valid])
                self._p.fit(visible[valid], labels)
                self._latency = None
                if self._options.model_a:
                    self._a.fit(self._advanced(indices[valid]), labels)

    def _chosen(self) -> list[int]:
        options = self._options
        with self._stopwatch.part("search"):
            latency = self._latency = self._latency or scorer(self._p, self._visible, self._size)
            count = math.ceil((options.alpha + 1) * options.N) if options.model_a else options.N
            candidates = explore(
                self._annealing, lambda indices: -latency(indices), self._looks_valid, count, self._untried
            )
            if options.model_a and len(candidates) > options.N:
                fastest = np.argsort(self._a.predict(self._advanced(candidates)), kind="stable")
                candidates = candidates[fastest]
            return [int(index) for index in candidates[: options.N]]

    def _looks_valid(self, indices: Indices) -> npt.NDArray[np.bool_]:
        if not self._options.model_v:
            return np.ones(len(indices), dtype=np.bool_)
        return self._v.predict(self._visible(indices)) > 0.5

    def _visible(self, indices: Indices) -> Features:
        with self._stopwatch.part("features"):
            return self._visible_of(indices)

    def _advanced(self, indices: Indices) -> Features:
        with self._stopwatch.part("compilation"):
            return self._advanced_of(indices)


def ml2tuner(problem: TuningProblem, seed: int, options: ML2TunerOptions) -> ML2Tuner:
    """Return the tuner over the knobs of the problem's space and the features that its compiler derives."""
    hidden, size = Hidden(options.hidden), len(problem.space)
    visible = problem.once(
        "ML2Tuner's visible features",
        lambda: remembered(lambda indices: visible_features(problem, indices).values, size),
    )
    advanced = problem.once(
        ("ML2Tuner's advanced features", str(hidden)),
        lambda: remembered(lambda indices: advanced_features(problem, indices, hidden).values, size),
    )
    return ML2Tuner(problem.space, seed, options, visible, advanced)
