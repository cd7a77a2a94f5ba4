"""The machine of a user's own bitstream, from the user's own measurements: most probable costs, and honest errors.

Each cost of the machine model is free within its prior: a clock beside the stated one, the bus, the memory behind it,
rows of LOAD and STORE, initiation intervals of GEMM and ALU. A search begins at each machine that ships, and the most
probable end is kept. The error is that of fits which never saw the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hilt.silicon.fitted_machine import FittedMachine
from hilt.simulator.builds import NEWER, shipped_builds
from hilt.simulator.machine import EventMachine, MachineParameters, MachineStatus
from hilt.vta.accelerator import Accelerator
from hilt.vta.program import Program

Floats = NDArray[np.float64]

FEWEST = 5
"""Measurements that a fit needs."""
_MOST = 160
"""Measurements that a fit takes at most, evenly from all: more tell it little."""
_FEW = 12
"""Fewer measurements leave open which shipped machine is nearest."""
_ERROR = 0.01
"""Deviation of a measurement from the model, as a logarithm."""
_STEPS = 30
_REFIT_STEPS = 12
_STEP = 1e-3
_FARTHEST = 4.0
"""Deviations of the prior that a cost may be away from its start."""
_MOST_FOLDS = 5
_CALL_SECONDS, _CALL_DEVIATION = 1e-5, 1.5
"""Time around a program: writing registers and reading a clock."""


class TooFewMeasurementsError(ValueError):
    """A fit needs more measurements."""


@dataclass(frozen=True)
class _Cost:
    """A free cost: the parameters that it sets, the least start in their unit, its deviation as a logarithm."""

    parameters: tuple[str, ...]
    least: float
    deviation: float


_COSTS = (
    _Cost(("hit_bytes", "store_bytes"), 1.0, 0.5),
    _Cost(("miss_bytes",), 0.5, 0.5),
    _Cost(("cache_bytes",), 65536.0, 0.15),  # the part's data sheet says its size
    _Cost(("load_start", "store_start"), 3.0, 1.0),
    _Cost(("load_row",), 3.0, 0.7),
    _Cost(("store_row",), 3.0, 0.7),
    _Cost(("pad_element",), 0.5, 0.8),
    _Cost(("gemm_iteration", "reset_iteration"), 0.5, 1.2),
    _Cost(("gemm_micro_op",), 0.5, 0.5),
    _Cost(("alu_iteration",), 0.3, 1.0),
    _Cost(("alu_micro_op",), 0.5, 1.2),
    _Cost(("instruction",), 2.0, 1.0),
)
_CLOCK_DEVIATION = 0.35
"""Prior deviation of the logarithm of the true clock over the stated one."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """A program's seconds on a board."""

    workload: str
    program: Program
    seconds: float


@dataclass(frozen=True, eq=False)
class _Start:
    """A search's start: a shipped machine, whose prior the free costs (d,) have as logarithms."""

    name: str
    base: MachineParameters
    mean: Floats
    deviation: Floats

    def machine(self, point: Floats) -> tuple[MachineParameters, float]:
        """Return the machine at a point (d,) in deviations, in cycles of the stated clock, and seconds a call."""
        values = np.exp(self.mean + self.deviation * point)
        clock, call = values[-2:]
        costs = {name: float(value) for cost, value in zip(_COSTS, values, strict=False) for name in cost.parameters}
        costs["miss_bytes"] = min(costs["miss_bytes"], costs["hit_bytes"])
        if not self.base.cache_bytes:
            costs["cache_bytes"] = 0.0
        return _at_clock(replace(self.base, **costs), float(clock)), float(call)


def _starts(accelerator: Accelerator) -> list[_Start]:
    """Return the starts: each shipped machine, and the newer public build with a DMA whose rows overlap."""
    machines = shipped_builds().machines
    kinds = [*machines.items(), (NEWER, replace(machines[NEWER], rows_overlap=1.0))]
    return [_start(name, base, accelerator) for name, base in kinds]


def _start(name: str, base: MachineParameters, accelerator: Accelerator) -> _Start:
    """Return the start at a shipped machine, with the bus of this bitstream."""
    wider = accelerator.bus_bits / 64
    base = replace(base, hit_bytes=base.hit_bytes * wider, store_bytes=base.store_bytes * wider)
    costs = [max(getattr(base, cost.parameters[0]), cost.least) for cost in _COSTS]
    mean = np.log([*costs, 1.0, _CALL_SECONDS])
    deviation = np.array([*(cost.deviation for cost in _COSTS), _CLOCK_DEVIATION, _CALL_DEVIATION])
    return _Start(name, base, mean, deviation)


def _at_clock(machine: MachineParameters, factor: float) -> MachineParameters:
    """Return a machine at `factor` times the stated clock in cycles of the stated one."""
    kept = ("rows_overlap", "store_allocates", "cache_bytes")
    rates = ("hit_bytes", "miss_bytes", "store_bytes")
    values = {
        name: value * factor if name in rates else value / factor
        for name, value in vars(machine).items()
        if name not in kept
    }
    return replace(machine, **values)


def calibrate(
    measurements: Sequence[Measurement], accelerator: Accelerator, on_search: Callable[[int, int], None] | None = None
) -> FittedMachine:
    """Return the machine that explains the measurements of one bitstream best.

    Args:
        measurements: At least FEWEST, of programs for `accelerator`.
        accelerator: The bitstream's geometry, instruction set, bus and stated clock.
        on_search: Is called with the searches done and their number.

    Raises:
        TooFewMeasurementsError: There are fewer.
        MissingToolError, BuildError: The machine models cannot be built.
    """
    if len(measurements) < FEWEST:
        raise TooFewMeasurementsError(f"{len(measurements)} measurements; a fit needs {FEWEST}")
    measurements = [measurements[place] for place in _evenly(len(measurements))]
    starts = _starts(accelerator)
    few = len(measurements) < _FEW
    searched = _counted(on_search, len(starts) + _refits(measurements) * (len(starts) if few else 1))
    start, point = _best(starts, measurements, accelerator, _STEPS, searched)
    machine, call = start.machine(point)
    plausible = starts if few else [start]
    return FittedMachine(
        machine,
        call,
        start.name,
        len(measurements),
        len({item.workload for item in measurements}),
        _rms(log_errors(measurements, machine, call, accelerator)),
        _unseen_error(plausible, measurements, accelerator, searched),
    )


def log_errors(
    measurements: Sequence[Measurement], machine: MachineParameters, call_seconds: float, accelerator: Accelerator
) -> Floats:
    """Return log(predicted / measured) (n,); infinity for a program that never ends."""
    predicted = _library(accelerator).predict([item.program for item in measurements], machine)
    seconds = predicted["cycles"] / accelerator.clock_hz + call_seconds
    seconds = np.where(predicted["status"] == MachineStatus.DONE, seconds, np.inf)
    return np.asarray(np.log(seconds / np.array([item.seconds for item in measurements])))


@lru_cache(maxsize=8)
def _library(accelerator: Accelerator) -> EventMachine:
    return EventMachine(accelerator)


def _counted(report: Callable[[int, int], None] | None, count: int) -> Callable[[], None]:
    """Return a function that reports one more of `count` searches as done."""
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if report is not None:
            report(done, count)

    return advance


def _best(
    starts: Sequence[_Start],
    measurements: Sequence[Measurement],
    accelerator: Accelerator,
    steps: int,
    searched: Callable[[], None],
) -> tuple[_Start, Floats]:
    """Return the start with the most probable end, and that end (d,)."""
    ends = []
    for start in starts:
        ends.append(_search(start, measurements, accelerator, steps))
        searched()
    best = min(range(len(ends)), key=lambda place: ends[place][0])
    return starts[best], ends[best][1]


def _search(
    start: _Start, measurements: Sequence[Measurement], accelerator: Accelerator, steps: int
) -> tuple[float, Floats]:
    """Return the loss and the point (d,) in deviations of the most probable machine."""

    def residuals(point: Floats) -> Floats:
        errors = log_errors(measurements, *start.machine(point), accelerator)
        return np.concatenate((_robust(np.nan_to_num(errors, posinf=50.0) / _ERROR), point))

    solution = least_squares(
        residuals,
        np.zeros(len(start.mean)),
        diff_step=_STEP,
        bounds=(-_FARTHEST, _FARTHEST),
        xtol=1e-4,
        ftol=1e-4,
        max_nfev=steps,
    )
    return float(solution.cost), np.asarray(solution.x)


def _robust(scaled: Floats) -> Floats:
    """Return residuals with the squares of a pseudo-Huber loss: far ones count by their distance, not its square."""
    far = 3.0
    return np.asarray(np.sign(scaled) * far * np.sqrt(2 * (np.sqrt(1 + (scaled / far) ** 2) - 1)))


def _unseen_error(
    starts: Sequence[_Start],
    measurements: Sequence[Measurement],
    accelerator: Accelerator,
    searched: Callable[[], None],
) -> float | None:
    """Return the error on workloads left out in turn; None with one."""
    if not _refits(measurements):
        return None
    errors = []
    for left_out in _folds(measurements):
        rest = [item for place, item in enumerate(measurements) if place not in left_out]
        start, point = _best(starts, rest, accelerator, _REFIT_STEPS, searched)
        unseen = [measurements[place] for place in left_out]
        errors.append(log_errors(unseen, *start.machine(point), accelerator))
    return _rms(np.concatenate(errors))


def _refits(measurements: Sequence[Measurement]) -> int:
    """Return how many groups of workloads are left out in turn: none of a single workload."""
    folds = _folds(measurements)
    return len(folds) if len(folds) > 1 else 0


def _folds(measurements: Sequence[Measurement]) -> list[list[int]]:
    """Return the places of each group of workloads that is left out together."""
    workloads = list(dict.fromkeys(item.workload for item in measurements))
    groups = [workloads[first::_MOST_FOLDS] for first in range(min(_MOST_FOLDS, len(workloads)))]
    return [[place for place, item in enumerate(measurements) if item.workload in group] for group in groups]


def _evenly(count: int) -> list[int]:
    return sorted(set(np.linspace(0, count - 1, min(count, _MOST)).round().astype(int).tolist()))


def _rms(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))
