"""Optuna's samplers: each knob is an integer, the place of its value.

An invalid configuration is a failed trial, as in Optuna's documentation: its samplers do not learn from failed trials.
"""

from __future__ import annotations

import warnings
from typing import Any

from hilt.tune import Tuner, TuningProblem
from hilt_experiments.peers.proposals import ProposingTuner


def make(name: str, problem: TuningProblem, seed: int, **options: Any) -> Tuner:
    """Return a tuner for optuna-tpe, optuna-gp or optuna-cmaes; `options` are the sampler's."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = optuna.samplers
    kinds: dict[str, Any] = {
        "optuna-tpe": samplers.TPESampler,
        "optuna-gp": samplers.GPSampler,
        "optuna-cmaes": samplers.CmaEsSampler,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental
        sampler = kinds[name](seed=seed, **options)
    if name != "optuna-gp":
        return ProposingTuner(problem.space, _Study(problem, sampler), seed)
    # A proposal takes it up to a second, and one more result, of a configuration that it knows, makes the next slower.
    return ProposingTuner(problem.space, _OneThread(_Study(problem, sampler)), seed, patience=1)


class _Study:
    def __init__(self, problem: TuningProblem, sampler: Any) -> None:
        import optuna

        self._optuna = optuna
        self._space = problem.space
        self._study = optuna.create_study(sampler=sampler, direction="minimize")
        self._knobs = {
            knob.name: optuna.distributions.IntDistribution(0, len(knob.values) - 1) for knob in problem.space.knobs
        }

    def propose(self) -> tuple[object, int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = self._study.ask(self._knobs)
        return trial, int(self._space.indices([trial.params[name] for name in self._space.names]))

    def hear(self, proposal: Any, index: int, microseconds: float | None) -> None:
        state = self._optuna.trial.TrialState
        if proposal is not None:
            if microseconds is None:
                self._study.tell(proposal, state=state.FAIL)
            else:
                self._study.tell(proposal, microseconds)
            return
        places = dict(zip(self._space.names, self._space.positions(index).tolist(), strict=True))
        ended = state.FAIL if microseconds is None else state.COMPLETE
        made = self._optuna.trial.create_trial(
            params=places, distributions=self._knobs, value=microseconds, state=ended
        )
        self._study.add_trial(made)


class _OneThread:
    """Matrices of some hundred rows take PyTorch several times as long on two threads as on one."""

    def __init__(self, study: _Study) -> None:
        self.hear = study.hear
        self._study = study

    def propose(self) -> tuple[object, int]:
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self._study.propose()
        finally:
            torch.set_num_threads(threads)
