"""Glimpse's loop (its Algorithm 1).

The first samples come from the prior. Then the surrogate's annealing finds candidates, the neural acquisition function
orders them, the threshold ensemble refuses some, and the rest is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilt.schedule.operator import convolution
from hilt.trial import Outcome
from hilt.tune.annealing import Annealing, AnnealingSchedule
from hilt.tune.boosted_trees import BoostedTrees, Loss
from hilt.tune.cost_model import Features, Indices, remembered, scorer
from hilt.tune.feedback import Feedback
from hilt.tune.glimpse.acquisition import NeuralAcquisition, SearchProgress, distance_in_knobs, search_features
from hilt.tune.glimpse.encoding import KnobSpace, layer_features
from hilt.tune.glimpse.prior import Prior
from hilt.tune.glimpse.target import HardwareTarget
from hilt.tune.glimpse.thresholds import ThresholdEnsemble
from hilt.tune.glimpse.weights import Weights, load_weights
from hilt.tune.labels import relative_throughput
from hilt.tune.one_thread import on_one_thread
from hilt.tune.options import require
from hilt.tune.problem import TuningProblem
from hilt.tune.stopwatch import Stopwatch
from hilt.tune.untried import Untried

SURROGATE_ROUNDS = 60
SURROGATE_PATIENCE = 10
"""The acquisition function was trained beside this surrogate, so there is no option for it."""


@dataclass(frozen=True)
class GlimpseOptions:
    """The choices that its paper leaves open, and its three parts for ablation."""

    prior: bool = True
    """Draw first samples from the prior distributions, a feature of the surrogate too; else uniformly."""
    acquisition: bool = True
    """Order candidates by the neural acquisition function; else by the surrogate's prediction."""
    sampling: bool = True
    """Refuse configurations by the threshold ensemble."""
    tau: float = 1 / 3
    """Largest share of predictors that may reject a configuration that is measured."""
    plan_size: int = 16
    """Trials between two fits of the surrogate."""
    candidates: int = 256
    """Candidates of the surrogate's annealing for the acquisition function."""
    budget: int = 750
    """Planned trials of the search; the acquisition function was trained for up to 128, and counts more as 128."""
    read_latency_ns: float = 0.0
    """Read latency of the target's memory by its data sheet, in ns; 0: 300 ns, as for a Zynq."""
    write_latency_ns: float = 0.0
    """Write latency of the target's memory, in ns; 0: 150 ns."""
    memory_bytes_per_cycle: float = 0.0
    """Bandwidth of the target's memory in bytes per accelerator cycle; 0: the width of the bus."""

    def __post_init__(self) -> None:
        require(0 <= self.tau <= 1, f"tau is between 0 and 1, not {self.tau}")
        for name in ("plan_size", "candidates", "budget"):
            require(getattr(self, name) >= 1, f"{name} is at least 1, not {getattr(self, name)}")
        for name in ("read_latency_ns", "write_latency_ns", "memory_bytes_per_cycle"):
            require(getattr(self, name) >= 0, f"{name} is at least 0, not {getattr(self, name)}")


class GlimpseTuner:
    """A Tuner. It knows the layer and the target's public figures, and never uses the compiler."""

    def __init__(
        self, problem: TuningProblem, seed: int, options: GlimpseOptions, weights: Weights | None = None
    ) -> None:
        """Take `weights`, or the shipped ones if none are given. Raises WeightsError."""
        drawing, walking, fitting = np.random.SeedSequence(seed).spawn(3)
        weights = load_weights() if weights is None else weights
        self._stopwatch = Stopwatch()
        self._generator = np.random.default_rng(drawing)
        self._problem = problem
        self._options = options
        layer = layer_features(convolution(problem.workload), problem.accelerator, problem.space, problem.checks)
        description = weights.description(layer, _target(problem, options).figures())
        self._knobs = KnobSpace.of(problem.space, convolution(problem.workload))
        self._prior = Prior.generate(weights.prior, description, self._knobs)
        self._thresholds = ThresholdEnsemble.generate(weights.thresholds, description, self._knobs)
        self._acquisition = NeuralAcquisition(weights.acquisition, description)
        self._untried = Untried(len(problem.space))
        self._annealing = Annealing(problem.space, AnnealingSchedule(), np.random.default_rng(walking))
        self._surrogate = new_surrogate(options.plan_size, int(fitting.generate_state(1)[0] >> 1))
        size = len(problem.space)
        knobs = problem.once(("features", "knob"), lambda: remembered(problem.knob_features, size))
        logarithm = self._prior.logarithm if options.prior else lambda indices: None
        self._features_of = remembered(lambda indices: surrogate_features(knobs(indices), logarithm(indices)), size)
        """The features of the surrogate."""
        self._configuration_features = problem.once(
            "Glimpse's configuration features", lambda: remembered(self._knobs.configuration_features, size)
        )
        self._history: list[Feedback] = []
        self._fitted = 0
        with self._stopwatch.part("prior"):
            self._plan = self._in_order(self._first_samples())

    def overheads(self) -> dict[str, float]:
        """Return the processor seconds so far: prior, training, search, acquisition, sampling."""
        return self._stopwatch.seconds

    @property
    def annealing_steps(self) -> int:
        """Return the moves of the annealing's points so far: the paper's search steps."""
        return self._annealing.steps

    @on_one_thread
    def ask(self, count: int) -> list[int]:
        return [self._next() for _ in range(min(count, len(self._untried)))]

    @on_one_thread
    def tell(self, feedback: Sequence[Feedback]) -> None:
        # A lost board gives no result for the configuration.
        self._history += [item for item in feedback if item.outcome is not Outcome.BOARD_LOST]
        enough = len(self._history) >= self._fitted + self._options.plan_size
        if enough and any(item.outcome is Outcome.OK for item in self._history):
            self._fitted = len(self._history)
            self._plan = self._in_order(self._best_candidates())

    def _next(self) -> int:
        """Return the next index of the plan; after its end, any that is not refused; at the very end a refused one."""
        while self._plan:
            index = self._plan.pop()
            if index in self._untried:
                self._untried.take(index)
                return index
        for _ in range(_DRAWS):
            index = int(self._generator.integers(len(self._problem.space)))
            if index in self._untried and not self._refused(np.array([index]))[0]:
                self._untried.take(index)
                return index
        return self._untried.draw(self._generator)

    def _in_order(self, indices: Indices) -> list[int]:
        """Return the indices as a stack, without refused ones."""
        kept: list[int] = indices[~self._refused(indices)].tolist()
        return kept[::-1]

    def _first_samples(self) -> Indices:
        if self._options.prior:
            return self._prior.first_samples(self._generator)
        return self._problem.space.sample(_MOST_FIRST, self._generator)

    def _best_candidates(self) -> Indices:
        measured = np.array([item.index for item in self._history], dtype=np.int64)
        with self._stopwatch.part("training"):
            self._surrogate.fit(self._features_of(measured), relative_throughput(self._history))
        with self._stopwatch.part("search"):
            score = scorer(self._surrogate, self._features_of, len(self._problem.space))
            found = self._annealing.search(score, self._options.candidates, self._untried)
        if not found:
            return np.empty(0, dtype=np.int64)
        indices = np.array([index for _, index in found], dtype=np.int64)
        if not self._options.acquisition:
            return indices
        with self._stopwatch.part("acquisition"):
            predicted = np.array([value for value, _ in found], dtype=np.float32)
            return indices[np.argsort(-self._worth(indices, predicted, measured), kind="stable")]

    def _worth(self, indices: Indices, predicted: Features, measured: Indices) -> Features:
        positions = self._problem.space.positions
        valid = sum(item.outcome is Outcome.OK for item in self._history)
        progress = SearchProgress(len(measured), self._options.budget, valid / len(measured))
        distance = distance_in_knobs(positions(indices), positions(measured))
        search = search_features(progress, predicted, self._prior.logarithm(indices), distance)
        return self._acquisition(self._configuration_features(indices), search)

    def _refused(self, indices: Indices) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if not self._options.sampling or not len(indices):
            return np.zeros(len(indices), dtype=np.bool_)
        with self._stopwatch.part("sampling"):
            return self._thresholds.rejects(self._configuration_features(indices), self._options.tau)


_DRAWS = 64
"""Random configurations tried in search of one that is not refused."""
_MOST_FIRST = 4096
"""Uniform first samples; the plan is replaced long before it ends."""


def new_surrogate(plan_size: int, seed: int) -> BoostedTrees:
    """Return AutoTVM's trees, fitted to relative throughput so that predictions compare with measurements."""
    return BoostedTrees(Loss.REGRESSION, plan_size, SURROGATE_ROUNDS, SURROGATE_PATIENCE, seed)


def surrogate_features(knob_features: Features, prior: Features | None) -> Features:
    """Return knob features (n, f), then the prior's logarithm (n,) if there is one."""
    return knob_features if prior is None else np.column_stack([knob_features, prior]).astype(np.float32)


def _target(problem: TuningProblem, options: GlimpseOptions) -> HardwareTarget:
    assumed = HardwareTarget.assumed(problem.accelerator)
    return HardwareTarget(
        problem.accelerator,
        options.read_latency_ns or assumed.read_latency_ns,
        options.write_latency_ns or assumed.write_latency_ns,
        options.memory_bytes_per_cycle or assumed.bytes_per_cycle,
    )
