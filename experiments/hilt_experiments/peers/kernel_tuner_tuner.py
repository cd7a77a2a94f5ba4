"""Kernel Tuner's strategies on their own search space and cost function.

Instead of a runner that compiles and measures a kernel, ours hands the configuration out and waits for the answer. The
strategy runs in a thread of its own.

An invalid configuration is a result with `__error__`, a RuntimeFailedConfig, as its runners report one.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from hilt.tune import Feedback, Tuner, TuningProblem

STRATEGIES = {
    "kernel-tuner-genetic": "genetic_algorithm",
    "kernel-tuner-annealing": "simulated_annealing",
    "kernel-tuner-mls": "mls",
    "kernel-tuner-bayes": "bayes_opt",
    "kernel-tuner-ils": "greedy_ils",
    "kernel-tuner-pso": "pso",
    "kernel-tuner-diff-evo": "diff_evo",
    "kernel-tuner-vndx": "gen_hybrid_vndx",
    "kernel-tuner-greywolf": "gen_adaptive_tabu_greywolf",
}
_SEEDED: dict[str, dict[str, Any]] = {
    "kernel-tuner-bayes": {"samplingmethod": "random"},
    "kernel-tuner-diff-evo": {"constraint_aware": False},
}
"""Options of strategies that begin with a Latin hypercube by default: it takes no seed."""
_EVALUATIONS = 1_000_000
_PATIENCE_SECONDS = 600.0


def make(name: str, problem: TuningProblem, seed: int, *, restricted: bool = False, **options: Any) -> Tuner:
    """Return a tuner; `options` are the strategy's. If `restricted`, its configurations are those that compile."""
    return _KernelTuner(STRATEGIES[name], problem, seed, {**_SEEDED.get(name, {}), **options}, restricted)


class _KernelTuner:
    """A Tuner that asks for one configuration at a time; a strategy that has ended begins anew.

    A strategy draws from the random generators of the process, so its thread runs only while the tuner waits for it.
    If it ran on after an answer, it would draw the numbers of the next tuner.
    """

    def __init__(
        self, strategy: str, problem: TuningProblem, seed: int, options: dict[str, Any], restricted: bool
    ) -> None:
        from kernel_tuner.searchspace import Searchspace

        self._problem = problem
        self._strategy = import_module(f"kernel_tuner.strategies.{strategy}")
        self._options = options
        self._knobs = {knob.name: list(knob.values) for knob in problem.space.knobs}
        if restricted:
            columns = problem.space.columns(np.flatnonzero(problem.compiles))
            rows = np.stack(list(columns.values()), axis=1).tolist()
            compiling = {place: dict(zip(columns, row, strict=True)) for place, row in enumerate(rows)}
            self._searchspace = Searchspace(
                None, None, None, from_cache={"tune_params": self._knobs, "cache": compiling}
            )
        else:
            self._searchspace = Searchspace(self._knobs, None, 1024)
        self._left = self._searchspace.size
        """Number of configurations that were not asked for."""
        self._known: dict[int, float | None] = {}
        self._wanted: queue.Queue[int | BaseException] = queue.Queue()
        self._answered: queue.Queue[None] = queue.Queue()
        self._seed = seed
        self._asked: int | None = None
        self._thread: threading.Thread | None = None

    def ask(self, count: int) -> list[int]:
        if not count or not self._left:
            return []
        if self._thread is None:
            self._thread = threading.Thread(target=self._search, name="kernel-tuner", daemon=True)
            self._thread.start()
        elif self._asked in self._known:
            self._answered.put(None)
        else:
            raise ValueError("a strategy of Kernel Tuner is told of a configuration before it is asked for another")
        wanted = self._wanted.get(timeout=_PATIENCE_SECONDS)
        if isinstance(wanted, BaseException):
            raise wanted
        self._left -= 1
        self._asked = wanted
        return [wanted]

    def tell(self, feedback: Sequence[Feedback]) -> None:
        for item in feedback:
            self._known[item.index] = item.microseconds

    def measure(self, configuration: Sequence[Any]) -> float | None:
        """Return the latency of the configuration; None is invalid. Called from the strategy's thread."""
        index = self._problem.space.index(dict(zip(self._knobs, map(int, configuration), strict=True)))
        if index not in self._known:
            self._wanted.put(index)
            self._answered.get()
        return self._known[index]

    def _search(self) -> None:
        from kernel_tuner.interface import Options
        from kernel_tuner.util import StopCriterionReached, TuningBudget

        # Its strategies draw from the generators of the process.
        random.seed(self._seed)
        np.random.seed(self._seed)
        try:
            while True:
                budget = TuningBudget(max_fevals=_EVALUATIONS)
                settings = Options(
                    objective=["time"],
                    objective_higher_is_better=[False],
                    strategy_options=Options({"max_fevals": len(self._problem.space), **self._options}),
                    tune_params=self._knobs,
                    restrictions=None,
                    metrics=None,
                    verbose=False,
                    cache={},
                    eps=1.0,
                    budget=budget,
                )
                try:
                    self._strategy.tune(self._searchspace, _Runner(self), settings)
                except StopCriterionReached:
                    continue
        except BaseException as error:
            self._wanted.put(error)


class _Runner:
    """The attributes and methods of a runner that Kernel Tuner's cost function and strategies use."""

    def __init__(self, tuner: _KernelTuner) -> None:
        self._tuner = tuner
        self.dev = SimpleNamespace(max_threads=1024)

    def run(self, configurations: Sequence[Sequence[Any]], settings: Any) -> list[dict[str, Any]]:
        from kernel_tuner.util import RuntimeFailedConfig

        results = []
        for configuration in configurations:
            latency = self._tuner.measure(configuration)
            result: dict[str, Any] = dict(zip(settings.tune_params, configuration, strict=True))
            result["time"] = RuntimeFailedConfig() if latency is None else latency
            if latency is None:
                result["__error__"] = RuntimeFailedConfig()
            settings.budget.add_evaluations(1)
            results.append(result)
        return results

    def add_strategy_time(self, seconds: float) -> None:
        """Ignore the time: seconds are counted outside."""
