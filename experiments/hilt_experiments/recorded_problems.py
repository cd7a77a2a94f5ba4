"""Tuners on any recorded space, one of an accelerator that hilt has no compiler of included."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset import Dataset, DatasetStore
from hilt.measure.dataset.recorded_space import is_imported, space_of
from hilt.trial import Outcome
from hilt.tune import TuningProblem
from hilt.tune.metrics import trials_to_within
from hilt_experiments.contenders import Contender
from hilt_experiments.errors import ExperimentError
from hilt_experiments.problem import SharedTuningProblem
from hilt_experiments.replay import Protocol, replay

NEAR = 0.01
Row = dict[str, Any]


class RecordedProblem(TuningProblem):
    """The problem of an imported dataset: its space, and which configurations its restrictions leave.

    There is no compiler and no timing model, so tuners that ask for either fail with ExperimentError. Those that go by
    knobs run: random, grid, ga, autotvm, hw-aware, tuners of Optuna, SMAC and Kernel Tuner, and a user's own.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.__dict__.update(space=space_of(dataset), _dataset=dataset)

    @cached_property
    def compiles(self) -> npt.NDArray[np.bool_]:
        """Whether each configuration is on record and not rejected, (len(space),): the others reach no board."""
        return np.asarray(self._dataset.outcome != self._dataset.metadata["outcomes"].index(Outcome.REJECTED))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ExperimentError(
            f"the tuner asks for the {name} of a VTA workload, which an imported dataset does not have; "
            "random, grid, ga, autotvm and hw-aware need none"
        )


def open_dataset(name: str) -> tuple[Dataset, TuningProblem]:
    """Return a dataset by the beginning of its name, and the problem of its space. Raises DatasetError."""
    dataset = DatasetStore().find(name)
    return dataset, problem_of(dataset)


def problem_of(dataset: Dataset) -> TuningProblem:
    """Return the problem of a dataset's space. Raises DatasetError where hilt's own is outdated."""
    return RecordedProblem(dataset) if is_imported(dataset) else SharedTuningProblem.of_subject(dataset.subject())


def replays(
    dataset: Dataset,
    contender: Contender,
    protocol: Protocol,
    seeds: int,
    advance: Callable[[int, int], None] = lambda done, count: None,
    *,
    restricted: bool = False,
) -> list[Row]:
    """Return a row for each seed: the trials to 1 % and the best found, in a run on the records.

    `advance` is called with the seeds done and all.

    With `restricted` the tuner's proposals that do not compile, or that the dataset lacks, are no trials.

    Raises ExperimentError for a tuner that needs facts that the dataset lacks, TunerOptionError, UnknownTunerError.
    """
    problem = problem_of(dataset)
    contender = contender.restricted() if restricted else contender
    rows = []
    for seed in range(seeds):
        advance(seed, seeds)
        run = replay(contender.make(problem, seed), dataset, protocol)
        latencies = dataset.microseconds[run.indices]
        best = float(latencies.min(initial=np.inf))
        rows.append(
            {
                "dataset": dataset.name,
                "tuner": contender.label,
                "seed": seed,
                "trials": len(run.indices),
                "to_1%": trials_to_within(latencies.tolist(), dataset.optimum, NEAR),
                "best_microseconds": best if np.isfinite(best) else None,
                "off": best / dataset.optimum - 1 if np.isfinite(best) else None,
                "invalid": int((~dataset.valid[run.indices]).sum()),
            }
        )
    return rows
