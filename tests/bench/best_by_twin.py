"""The best configuration of a layer, found by the twin and confirmed on the RTL."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from hilt.schedule import Conv2d, Rejected, lower, lower_many, make_tensors, space_for, verdicts
from hilt.schedule.checks import Checks
from hilt.schedule.space import Orders
from hilt.simulator.build import build
from hilt.simulator.device import DeviceStatus
from hilt.simulator.program_run import run_program
from hilt.simulator.twin import Twin, TwinStatus
from hilt.virtual.board_model import board_model

BOARD = board_model("pynq")
PYNQ = BOARD.accelerator
LAYERS = [f"resnet18.C{number}" for number in range(2, 12)]
SEED = 1
_AT_ONCE = 64


@dataclass(frozen=True)
class Found:
    """`cycles` by the twin; `searched` configurations were accepted and predicted."""

    index: dict[str, int]
    checks: Checks
    cycles: int
    searched: int


def best_by_twin(twin: Twin, workload: Conv2d, *, orders: Orders, checks: Checks) -> Found:
    """The fewest cycles of all configurations that `checks` accepts; the earlier of two equals."""
    space = space_for(workload, PYNQ, orders=orders)
    accepted = np.flatnonzero(verdicts(workload, PYNQ, space.columns(np.arange(len(space))), checks) == 0)
    programs = lower_many(workload, space.columns(accepted), PYNQ, checks)
    predicted = []
    while batch := list(islice(programs, _AT_ONCE)):
        assert not any(isinstance(each, Rejected) for each in batch), workload.name
        answers = twin.predict([each for each in batch if not isinstance(each, Rejected)], BOARD.memory_model)
        assert (answers["status"] == TwinStatus.DONE).all(), workload.name
        predicted.append(answers["cycles"])
    cycles = np.concatenate(predicted)
    best = int(np.argmin(cycles))
    return Found(space.knobs_at(int(accepted[best])), checks, int(cycles[best]), len(accepted))


def cycles_on_rtl(workload: Conv2d, found: Found) -> int:
    """Return the cycles on the RTL of a run whose whole output is right."""
    tensors = make_tensors(workload, PYNQ, SEED)
    program = lower(workload, found.index, PYNQ, found.checks)
    run = run_program(build(PYNQ, "rtl"), program, tensors.inputs, memory=BOARD.memory_model)
    assert run.execution.status is DeviceStatus.DONE, run.execution
    assert np.array_equal(run.output, tensors.expected.ravel()), f"{workload.name} gave a wrong answer"
    return run.execution.cycles
