"""An adapter that turns a sampler that may repeat itself into a tuner that may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hilt.schedule import bound_cycles
from hilt.tune import Feedback, TuningProblem
from hilt.tune.search_space import SearchSpace
from hilt.tune.untried import Untried

PATIENCE = 16
"""A sampler that proposes known configurations so often in a row gets a random new one."""


CRASH_COST_OVER_BOUND = 100
"""The cost of a crash over the bound: the longest that a program may run (hilt.engine.run_spec.LIMIT_OVER_BOUND)."""


def crash_cost(problem: TuningProblem) -> float:
    """Return the microseconds that a failure counts as, for peers that know no failure."""
    bound = bound_cycles(problem.workload, problem.accelerator)
    return CRASH_COST_OVER_BOUND * bound * 1e6 / problem.accelerator.clock_hz


class Sampler(Protocol):
    """A peer's sampler behind its adapter.

    A `proposal` is the peer's own object for a configuration that it proposed.
    """

    def propose(self) -> tuple[object, int]:
        """Return the proposal and its index."""

    def hear(self, proposal: object | None, index: int, microseconds: float | None) -> None:
        """Record the latency; None is invalid. Without a proposal, another tuner chose that configuration."""


class ProposingTuner:
    """A Tuner. A proposal that was measured before is answered again at no trial's cost, and another is asked for."""

    def __init__(self, space: SearchSpace, sampler: Sampler, seed: int, patience: int = PATIENCE) -> None:
        self._sampler = sampler
        self._patience = patience
        self._untried = Untried(len(space))
        self._generator = np.random.default_rng(seed)
        self._open: dict[int, object | None] = {}
        self._known: dict[int, float | None] = {}

    def ask(self, count: int) -> list[int]:
        return [self._next() for _ in range(min(count, len(self._untried)))]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        for item in feedback:
            self._known[item.index] = item.microseconds
            self._sampler.hear(self._open.pop(item.index), item.index, item.microseconds)

    def _next(self) -> int:
        for _ in range(self._patience):
            proposal, index = self._sampler.propose()
            if index in self._untried:
                self._untried.take(index)
                self._open[index] = proposal
                return index
            if index in self._known:
                self._sampler.hear(proposal, index, self._known[index])
        index = self._untried.draw(self._generator)
        self._open[index] = None
        return index
