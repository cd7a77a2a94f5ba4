"""The check of a dataset: a seeded sample runs on the RTL and on the golden model.

The RTL checks cycles and answers. The golden model checks answers; it is faster, but has no pipeline that could lose
a sum, so it says nothing of hardware without interlock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset.dataset import Dataset
from hilt.measure.dataset.dataset_key import DatasetKey
from hilt.measure.dataset.outcomes import Predictions
from hilt.schedule import Workload, lower, make_tensors
from hilt.schedule.tensors import Tensors
from hilt.simulator.build import build as build_model
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.simulator.twin import TwinStatus
from hilt.trial import Outcome
from hilt.vta.accelerator import Accelerator


@dataclass(frozen=True)
class Sampling:
    """The number of configurations that each model runs, drawn with `seed`.

    A model gets `cycles` in all, or one configuration: a large layer takes minutes on the RTL.
    """

    rtl: int = 4
    golden: int = 8
    seed: int = 0
    cycles: int = 10_000_000


def check(subject: DatasetKey, dataset: Dataset, predictions: Predictions, sampling: Sampling) -> dict[str, Any]:
    """Return the models' results for the sample, as plain values for JSON.

    For each model: how many were `run`, in how many the `outcome` differs, and the `disagreements`. The RTL adds
    the largest relative `cycles_error`.
    """
    if not len(predictions.indices) or not (sampling.rtl or sampling.golden):
        return {}
    tensors = _tensors(subject.workload, replace(subject.accelerator, hazards="interlock"), sampling.seed)
    report: dict[str, Any] = {"seed": sampling.seed}
    for form, count in (("rtl", sampling.rtl), ("golden", sampling.golden)):
        if count and not (form == "golden" and subject.accelerator.hazards == "none"):
            drawn = _draw(predictions, count, np.random.default_rng(sampling.seed), sampling.cycles)
            report[form] = _compare(subject, dataset, predictions, tensors, drawn, form, sampling.cycles)
    return report


@lru_cache(maxsize=1)
def _tensors(workload: Workload, accelerator: Accelerator, seed: int) -> Tensors:
    """Return the tensors, which boards whose datasets are built together share."""
    return make_tensors(workload, accelerator, seed)


def _draw(predictions: Predictions, count: int, generator: np.random.Generator, cycles: int) -> npt.NDArray[np.int64]:
    """Draw rows of the predictions, in a random order.

    Draw as many as end within `cycles`; at least one.
    """
    drawn, spent = [], 0
    for row in generator.permutation(len(predictions.indices)).tolist():
        cost = int(predictions.cycles[row])
        if spent + cost <= cycles:
            drawn.append(row)
            spent += cost
        if len(drawn) == count:
            break
    return np.array(drawn or [int(np.argmin(predictions.cycles))], dtype=np.int64)


def _compare(
    subject: DatasetKey,
    dataset: Dataset,
    predictions: Predictions,
    tensors: Tensors,
    rows: npt.NDArray[np.int64],
    form: Any,
    cycles: int,
) -> dict[str, Any]:
    library = build_model(subject.accelerator, form)
    disagreements, largest_error = [], 0.0
    for row in rows.tolist():
        index = int(predictions.indices[row])
        knobs = subject.space.knobs_at(index)
        program = lower(subject.workload, knobs, subject.accelerator, subject.checks)
        limit = 2 * max(cycles, int(predictions.cycles[row]))
        run = run_program(library, program, tensors.inputs, memory=subject.memory, max_cycles=limit)
        outcome = _outcome(run.execution.status, bool(np.array_equal(run.output, tensors.expected.ravel())))
        if outcome != dataset.outcome_of(index):
            recorded = ":".join(filter(None, (dataset.outcome_of(index), dataset.reason_of(index))))
            disagreements.append({"index": index, "recorded": recorded, form: str(outcome)})
        if form == "rtl" and run.execution.status is DeviceStatus.DONE and predictions.status[row] == TwinStatus.DONE:
            predicted = int(predictions.cycles[row])
            largest_error = max(largest_error, abs(predicted - run.execution.cycles) / run.execution.cycles)
    report: dict[str, Any] = {"run": len(rows), "outcome": len(disagreements), "disagreements": disagreements}
    return report | ({"cycles_error": largest_error} if form == "rtl" else {})


def _outcome(status: DeviceStatus, right: bool) -> Outcome:
    if status is DeviceStatus.FAULT:
        return Outcome.CRASH
    if status is not DeviceStatus.DONE:
        return Outcome.TIMEOUT
    return Outcome.OK if right else Outcome.WRONG_ANSWER
