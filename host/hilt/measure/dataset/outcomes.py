"""The outcome of a configuration that is sent to the board: decided by the compiler, the twin and rules.

The rules are about answers, which the twin does not compute: hilt.measure.dataset.check holds a sample of them
against the RTL and the golden model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilt.measure.dataset.dataset_key import DatasetKey
from hilt.run_choices import CheckLevel
from hilt.schedule import convolution, hazard_distance, verdicts
from hilt.schedule.loops import HAZARD_DISTANCE
from hilt.schedule.reasons import TVM_RUNTIME, Reason
from hilt.simulator.twin import TwinStatus
from hilt.trial import Outcome
from hilt_runtime.registers import FaultCode

OUTCOMES = list(Outcome)
REASONS = [
    "",
    *(Reason(number).text for number in range(1, len(Reason))),
    *(f"fault:{code.name.lower()}" for code in FaultCode),
    "never_ends",
]
"""The names of the file's numbers: the compiler's reasons keep theirs."""
_LOST_BITS = [reason for reason in Reason if reason.name.startswith("FIELD_OVERFLOW")]
_FIRST_FAULT = len(Reason)
_NEVER_ENDS = len(REASONS) - 1
_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Predictions:
    """The twin's results for the configurations `indices`, all (m,): TwinStatus, fault code, cycles."""

    indices: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    fault: npt.NDArray[np.uint8]
    cycles: npt.NDArray[np.uint64]


def to_lower(subject: DatasetKey) -> npt.NDArray[np.int64]:
    """Return the configurations whose programs run.

    The compiler and, if `checks` asks for it, TVM's runtime accept them.
    """
    return np.flatnonzero(subject.summarize_validity.verdicts == Reason.OK)


def decide(
    subject: DatasetKey, predictions: Predictions
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.unsignedinteger]]:
    """Return outcome, reason and cycles (n,) of the whole space, as Dataset has them.

    `predictions` are of `to_lower`.
    """
    found = subject.summarize_validity.verdicts
    outcome = np.full(len(found), OUTCOMES.index(Outcome.REJECTED), dtype=np.uint8)
    outcome[np.isin(found, list(TVM_RUNTIME))] = OUTCOMES.index(Outcome.CRASH)
    reason = found.astype(np.uint8)
    cycles = np.zeros(len(found), dtype=np.uint64)

    ran = predictions.indices
    outcome[ran] = OUTCOMES.index(Outcome.OK)
    faulty = predictions.status == TwinStatus.FAULT
    outcome[ran[faulty]] = OUTCOMES.index(Outcome.CRASH)
    reason[ran[faulty]] = _FIRST_FAULT + predictions.fault[faulty]
    endless = predictions.status == TwinStatus.NEVER
    outcome[ran[endless]] = OUTCOMES.index(Outcome.TIMEOUT)
    reason[ran[endless]] = _NEVER_ENDS

    done = predictions.status == TwinStatus.DONE
    wrong = _wrong_answers(subject, ran[done])
    outcome[ran[done]] = np.where(wrong > 0, OUTCOMES.index(Outcome.WRONG_ANSWER), OUTCOMES.index(Outcome.OK))
    reason[ran[done]] = wrong
    right = ran[done][wrong == 0]
    cycles[right] = predictions.cycles[done][wrong == 0]
    narrow = not len(cycles) or int(cycles.max()) < 1 << 32
    return outcome, reason, cycles.astype(np.uint32) if narrow else cycles


def _wrong_answers(subject: DatasetKey, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return why the answer of a program that ends is wrong, as a Reason, or 0 if it is right (m,).

    Hardware without interlock loses a sum if two updates are too close, and a field that overflowed has lost its
    high bits. All else that a compiler rejects either stops at an index past its buffer, which the twin knows, or is
    right: of 142 such programs of three layers in ML2Tuner's space that ended, the golden model had every answer
    right.
    """
    wrong = np.zeros(len(indices), dtype=np.uint8)
    for first in range(0, len(indices), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        columns = subject.space.columns(indices[part])
        if subject.accelerator.hazards == "none":
            near = hazard_distance(convolution(subject.workload), subject.accelerator, columns) < HAZARD_DISTANCE
            wrong[part] = np.where(near, Reason.ACC_HAZARD, wrong[part])
        if subject.checks == "off":
            rejected = verdicts(subject.workload, subject.accelerator, columns, CheckLevel.COMPILER)
            wrong[part] = np.where(np.isin(rejected, _LOST_BITS), rejected, wrong[part])
    return wrong
