"""One schedule for each layer that the selftest runs: the fastest of a few by the timing model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilt import schedule
from hilt.measure.interfaces import Request
from hilt.measure.selftest.memory import MemoryFit
from hilt.schedule.checks import Rejected, verdicts
from hilt.simulator.device import MemoryModel
from hilt.simulator.twin import Twin
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

_CANDIDATES = 400
_TRIED = 24
_SEED = 18
_LIMIT_OVER_BOUND = 200
_SHORTEST_LIMIT_SECONDS = 0.5


@dataclass(frozen=True)
class SelftestLayer:
    """A layer as one program, with the cycles that the timing model predicts for it on the memory that was found."""

    name: str
    request: Request
    predicted: float | None


def choose_layer(name: str, accelerator: Accelerator, fit: MemoryFit | None) -> SelftestLayer:
    """Return the fastest of a few random schedules that every check accepts. Raises WorkloadError."""
    workload = schedule.load_convolution(name)
    space = schedule.space_for(workload, accelerator)
    random = np.random.default_rng(_SEED)
    candidates = random.choice(len(space), min(_CANDIDATES, len(space)), replace=False)
    accepted = candidates[verdicts(workload, accelerator, space.columns(candidates)) == 0][:_TRIED]
    lowered = schedule.lower_many(workload, space.columns(accepted), accelerator)
    tried = [program for program in lowered if not isinstance(program, Rejected)]
    memory = MemoryModel() if fit is None else fit.model(accelerator)
    cycles = Twin(accelerator).predict(tried, memory)["cycles"]
    fastest = int(np.argmin(cycles))
    predicted = None if fit is None else float(cycles[fastest])
    return SelftestLayer(name, _request(workload, accelerator, tried[fastest]), predicted)


def _request(workload: schedule.Workload, accelerator: Accelerator, program: Program) -> Request:
    bound = schedule.bound_cycles(workload, accelerator)
    limit = max(_SHORTEST_LIMIT_SECONDS, _LIMIT_OVER_BOUND * bound / accelerator.clock_hz)
    return Request(0, "", program, schedule.make_tensors(workload, accelerator, _SEED), limit)
