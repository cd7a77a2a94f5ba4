"""SMAC3's facade for algorithm configuration (random forests, expected improvement), by ask and tell.

An invalid configuration is a crashed trial; its cost is `crash_cost` of SMAC's scenario.
"""

from __future__ import annotations

import tempfile
from typing import Any

from hilt.tune import Tuner, TuningProblem
from hilt_experiments.peers.proposals import ProposingTuner, crash_cost

_TRIALS = 100_000


def make(name: str, problem: TuningProblem, seed: int, **options: Any) -> Tuner:
    """Return a tuner; `options` are the scenario's."""
    return ProposingTuner(problem.space, _Facade(problem, seed, options), seed)


class _Facade:
    def __init__(self, problem: TuningProblem, seed: int, options: dict[str, Any]) -> None:
        from ConfigSpace import ConfigurationSpace, OrdinalHyperparameter
        from smac import HyperparameterOptimizationFacade, Scenario
        from smac.runhistory.dataclasses import TrialInfo, TrialValue
        from smac.runhistory.enumerations import StatusType

        self._info, self._value, self._status = TrialInfo, TrialValue, StatusType
        self._space = problem.space
        self._folder = tempfile.TemporaryDirectory(prefix="hilt-smac-")
        self._crash_cost = crash_cost(problem)
        knobs = ConfigurationSpace(seed=seed)
        knobs.add([OrdinalHyperparameter(knob.name, list(range(len(knob.values)))) for knob in problem.space.knobs])
        self._configurations = knobs
        settings = {"n_trials": _TRIALS, "crash_cost": self._crash_cost, "deterministic": True} | options
        scenario = Scenario(knobs, output_directory=self._folder.name, seed=seed, **settings)
        # The default initial design takes a tenth of the trials; Sobol points for ten a knob would be most of a run.
        design = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=2 * len(problem.space.knobs))
        self._facade = HyperparameterOptimizationFacade(
            scenario, self._never, initial_design=design, overwrite=True, logging_level=False
        )

    def propose(self) -> tuple[object, int]:
        trial = self._facade.ask()
        return trial, int(self._space.indices([int(trial.config[name]) for name in self._space.names]))

    def hear(self, proposal: Any, index: int, microseconds: float | None) -> None:
        if proposal is None:
            from ConfigSpace import Configuration

            places = dict(zip(self._space.names, self._space.positions(index).tolist(), strict=True))
            proposal = self._info(Configuration(self._configurations, values=places))
        if microseconds is None:
            self._facade.tell(proposal, self._value(cost=self._crash_cost, status=self._status.CRASHED))
        else:
            self._facade.tell(proposal, self._value(cost=microseconds))

    @staticmethod
    def _never(config: object, seed: int = 0) -> float:
        raise NotImplementedError("SMAC is asked and told; it measures nothing itself")
