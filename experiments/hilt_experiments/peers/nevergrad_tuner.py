"""Nevergrad's optimizers by ask and tell: each knob is a choice between its ordered values.

Nevergrad has no word for a failure: an invalid configuration has the cost of a crash.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hilt.tune import Tuner, TuningProblem
from hilt_experiments.peers.proposals import ProposingTuner, crash_cost

OPTIMIZERS = {
    "nevergrad-ngopt": "NGOpt",
    "nevergrad-discrete": "PortfolioDiscreteOnePlusOne",
    "nevergrad-de": "TwoPointsDE",
}
_BUDGET = 300
"""Evaluations that an optimizer plans by, unless the option `budget` says otherwise."""


def make(name: str, problem: TuningProblem, seed: int, **options: Any) -> Tuner:
    """Return a tuner; the option `budget` is the optimizer's."""
    return ProposingTuner(problem.space, _Optimizer(OPTIMIZERS[name], problem, seed, **options), seed)


class _Optimizer:
    def __init__(self, kind: str, problem: TuningProblem, seed: int, budget: int = _BUDGET) -> None:
        import nevergrad

        self._space = problem.space
        self._crash_cost = crash_cost(problem)
        choices = {knob.name: nevergrad.p.TransitionChoice(range(len(knob.values))) for knob in problem.space.knobs}
        knobs = nevergrad.p.Dict(**choices)
        knobs.random_state = np.random.RandomState(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._optimizer = nevergrad.optimizers.registry[kind](parametrization=knobs, budget=budget, num_workers=1)

    def propose(self) -> tuple[object, int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it goes on beyond its budget
            asked = self._optimizer.ask()
        return asked, int(self._space.indices([int(asked.value[name]) for name in self._space.names]))

    def hear(self, proposal: Any, index: int, microseconds: float | None) -> None:
        if proposal is None:
            places = dict(zip(self._space.names, self._space.positions(index).tolist(), strict=True))
            proposal = self._optimizer.parametrization.spawn_child(new_value=places)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._optimizer.tell(proposal, self._crash_cost if microseconds is None else microseconds)
