"""A small layer on zcu102 in ML2Tuner's space, with an outcome for every configuration."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from hilt.schedule import load_workload, verdicts
from hilt.schedule.features import hidden_features
from hilt.trial import Outcome
from hilt.tune import Feedback, TuningProblem
from hilt.tune.ml2tuner.records import Records
from hilt.vta.accelerator import Accelerator, load_parameters

ACCELERATOR = Accelerator.for_parameters(load_parameters("zcu102"))
PROBLEM = TuningProblem.of(
    load_workload("conv2d:n=1,ci=512,h=7,w=7,co=512,k=3x3,s=1x1,p=1x1"), ACCELERATOR, checks="off", kind="ml2"
)


@cache
def latencies() -> npt.NDArray[np.float64]:
    """Return the microseconds of each configuration, from its moved bytes and its instructions.

    A configuration's knobs say little of them and the compiler says much. The value is NaN if hilt's own compiler
    would have refused the configuration.
    """
    columns = PROBLEM.space.columns(np.arange(len(PROBLEM.space)))
    derived = hidden_features(PROBLEM.workload, ACCELERATOR, columns)
    found = derived.column("bytes.all") / 16 + 90.0 * derived.column("instructions.all")
    refused = verdicts(PROBLEM.workload, ACCELERATOR, columns, "compiler") != 0
    return np.where(refused, np.nan, found.astype(np.float64) / 333)


def measure(index: int) -> Feedback:
    latency = float(latencies()[index])
    return Feedback(index, Outcome.TIMEOUT) if np.isnan(latency) else Feedback(index, Outcome.OK, latency)


def records(count: int, seed: int = 0) -> Records:
    """Return records of configurations drawn uniformly."""
    indices = PROBLEM.space.sample(count, np.random.default_rng(seed))
    return Records(indices, latencies()[indices])
