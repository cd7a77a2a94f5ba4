"""The machine of a user's own bitstream, from the user's own measurements: most probable costs, and honest errors.

A bitstream is taken as a relative of a machine that ships: most of its costs are that machine's, and some differ
(hilt.silicon.changed_costs). A search begins at each shipped machine, with and without a cache, with rows that overlap
and without. The error is that of fits which never saw the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hilt.silicon.changed_costs import mean_costs, robust_weights
from hilt.silicon.fitted_machine import FittedMachine
from hilt.silicon.relatives import Relative, relatives
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
"""Most steps of a search."""
_COMPARED, _FARTHER = 4, 8.0
"""Most starts that are compared by all choices of changed costs, and their losses beyond the least."""
_STEP = 1e-3
_FARTHEST = 4.0
"""Deviations of the prior that a cost may be away from its start."""
_MOST_FOLDS = 5
_NEVER = 50.0
"""Error of a program that never ends, as a logarithm."""


class TooFewMeasurementsError(ValueError):
    """A fit needs more measurements."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """A program's seconds on a board."""

    workload: str
    program: Program
    seconds: float


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
    starts = relatives(accelerator)
    few = len(measurements) < _FEW
    searched = _counted(on_search, len(starts) + _refits(measurements) * (len(starts) if few else 1))
    start, costs = _best(starts, measurements, accelerator, searched)
    machine, call = start.machine(costs)
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
    starts: Sequence[Relative],
    measurements: Sequence[Measurement],
    accelerator: Accelerator,
    searched: Callable[[], None],
) -> tuple[Relative, Floats]:
    """Return the start with the most evident costs, and the logarithms (d,) of these.

    Costs that all may differ can be explained by costs far from those of few that differ, so the choices of changed
    costs are weighed around the start as well.
    """
    ends = []
    for start in starts:
        fit = _Fit(start, measurements, accelerator)
        ends.append((*fit.search(), fit))
        searched()
    ends.sort(key=lambda end: end[0])
    compared = [end for end in ends[:_COMPARED] if end[0] <= ends[0][0] + _FARTHER]
    near = [(fit, costs) for _, end, fit in compared for costs in (fit.start.prior.means, end)]
    found = [(*fit.mean(costs), fit.start) for fit, costs in near]
    _, costs, start = max(found, key=lambda end: end[0])
    return start, costs


class _Fit:
    """The search for the costs of one start's relative; logarithms (d,) stand for machines."""

    def __init__(self, start: Relative, measurements: Sequence[Measurement], accelerator: Accelerator) -> None:
        self.start = start
        self._library = _library(accelerator)
        self._programs = [item.program for item in measurements]
        self._cycles = np.log([item.seconds * accelerator.clock_hz for item in measurements])
        self._clock_hz = accelerator.clock_hz

    def search(self) -> tuple[float, Floats]:
        """Return the loss and the most probable costs if each one may differ."""
        prior = self.start.prior

        def residuals(point: Floats) -> Floats:
            errors = self._errors((prior.means + prior.changed * point)[None])[:, 0]
            return np.concatenate((_robust(errors / _ERROR), point))

        def slopes(point: Floats) -> Floats:
            errors, slope = self._linear(prior.means + prior.changed * point)
            weights = _robust_slope(errors / _ERROR)[:, None]
            return np.concatenate((weights * slope * prior.changed / _ERROR, np.eye(len(point))))

        solution = least_squares(
            residuals,
            np.zeros(len(prior.means)),
            jac=slopes,
            bounds=(-_FARTHEST, _FARTHEST),
            xtol=1e-4,
            ftol=1e-4,
            max_nfev=_STEPS,
        )
        return float(solution.cost), prior.means + prior.changed * np.asarray(solution.x)

    def mean(self, costs: Floats) -> tuple[float, Floats]:
        """Return the evidence and the mean costs over all choices of changed ones, from costs that are near."""
        return mean_costs(self._linear, self.start.prior, costs, _ERROR)

    def _errors(self, points: Floats) -> Floats:
        """Return log(predicted / measured) (n, m) at points (m, d)."""
        machines = [self.start.machine(point) for point in points]
        predicted = self._library.compare(self._programs, [machine for machine, _ in machines])
        cycles = predicted["cycles"] + np.array([call for _, call in machines]) * self._clock_hz
        errors = np.log(np.maximum(cycles, 1)) - self._cycles[:, None]
        return np.where(predicted["status"] == MachineStatus.DONE, errors, _NEVER)

    def _linear(self, costs: Floats) -> tuple[Floats, Floats]:
        """Return the errors (n,) at costs (d,), and their slopes (n, d)."""
        errors = self._errors(np.concatenate((costs[None], costs + _STEP * np.eye(len(costs)))))
        return errors[:, 0], (errors[:, 1:] - errors[:, :1]) / _STEP


def _robust(scaled: Floats) -> Floats:
    """Return residuals with the squares of a pseudo-Huber loss: far ones count by their distance, not its square."""
    return np.asarray(scaled * np.sqrt(2 / (1 + 1 / robust_weights(scaled))))


def _robust_slope(scaled: Floats) -> Floats:
    """Return the derivative of `_robust`."""
    weights = robust_weights(scaled)
    return np.asarray(weights / np.sqrt(2 / (1 + 1 / weights)))


def _unseen_error(
    starts: Sequence[Relative],
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
        start, costs = _best(starts, rest, accelerator, searched)
        unseen = [measurements[place] for place in left_out]
        errors.append(log_errors(unseen, *start.machine(costs), accelerator))
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
