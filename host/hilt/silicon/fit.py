"""Machine parameters from measurements: least squares of the log error, and their errors on unseen workloads.

Only costs that the source or physics leaves open are fitted, each within its range. Every other cost is fixed: a bus
moves 8 bytes a cycle, a micro-op takes a cycle, an instruction's own cost cannot be told from the runtime's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hilt.silicon.measured import MeasuredWorkload, cycles_of
from hilt.silicon.packed_task import CONV2D
from hilt.simulator.builds import CLOCK_HZ, NEWER, OLDER, Builds, Runtime
from hilt.simulator.machine import MachineParameters

FITTED_TASKS = (CONV2D,)
"""Group convolutions, transposed convolutions and dense layers are kept for judging."""

KIB = 1024.0
_STEP = 1e-3
_REFIT_EVALUATIONS = 6
"""A fit without one workload starts at the fit with all, and moves little."""


@dataclass(frozen=True)
class FreeParameter:
    """A cost that the fit looks for between `low` and `high`, from `start`."""

    name: str
    unit: str
    start: float
    low: float
    high: float


FREE = (
    FreeParameter("load_row", "cycles a row", 55, 30, 80),
    FreeParameter("store_row", "cycles a row", 35, 10, 60),
    FreeParameter("miss_bytes", "bytes a cycle", 3.9, 2, 8),
    FreeParameter("cache_kib", "KiB", 500, 384, 512),
    FreeParameter("pad_element", "cycles an element", 4, 0, 8),
    FreeParameter("newer_gemm_iteration", "cycles an iteration", 1, 0, 2.4),
    FreeParameter("newer_alu_element", "cycles an element", 1.75, 1, 2.5),
    FreeParameter("older_gemm_iteration", "cycles an iteration", 10, 5, 15),
    FreeParameter("older_alu_element", "cycles an element", 26, 16, 40),
    FreeParameter("call", "us a call", 80, 30, 150),
    FreeParameter("host_instruction", "us an instruction", 0.3, 0, 1),
)


@dataclass(frozen=True)
class Fit:
    """Values of FREE by name, their standard errors, and the log error of each record that was fitted."""

    values: dict[str, float]
    standard_errors: dict[str, float]
    correlations: NDArray[np.float64]
    errors: NDArray[np.float64]

    @property
    def rms(self) -> float:
        """Root mean square of the log errors."""
        return root_mean_square(self.errors)


def root_mean_square(errors: NDArray[np.float64]) -> float:
    """Return the root mean square; 0 of nothing."""
    return float(np.sqrt(np.mean(errors**2))) if errors.size else 0.0


def builds_of(values: dict[str, float]) -> Builds:
    """Return both public builds with these values of FREE."""
    shared = {
        "instruction": 0.0,
        "fetch": 0.0,
        "load_start": 0.0,
        "load_row": values["load_row"],
        "store_start": 0.0,
        "store_row": values["store_row"],
        "rows_overlap": 0.0,
        "hit_bytes": 8.0,
        "miss_bytes": values["miss_bytes"],
        "store_bytes": 8.0,
        "store_allocates": 1.0,
        "cache_bytes": values["cache_kib"] * KIB,
        "pad_element": values["pad_element"],
        "gemm_micro_op": 1.0,
        "alu_iteration": 0.0,
    }
    machines = {}
    for name, prefix in ((NEWER, "newer"), (OLDER, "older")):
        iteration = values[f"{prefix}_gemm_iteration"]
        own = {"gemm_iteration": iteration, "reset_iteration": iteration}
        machines[name] = MachineParameters(**shared, **own, alu_micro_op=values[f"{prefix}_alu_element"])
    return Builds(machines, Runtime(values["call"] * 1e-6, values["host_instruction"] * 1e-6))


def log_errors(measured: Sequence[MeasuredWorkload], builds: Builds) -> NDArray[np.float64]:
    """Return log(predicted / measured) (records,)."""
    instructions = np.array([item.instructions for item in measured])
    seconds = cycles_of(measured, builds.machines) / CLOCK_HZ + builds.runtime.call_seconds
    seconds += builds.runtime.instruction_seconds * instructions
    measured_seconds = np.array([item.record.mean_seconds for item in measured], dtype=np.float64)
    errors: NDArray[np.float64] = np.log(seconds / measured_seconds)
    return errors


def fit(
    measured: Sequence[MeasuredWorkload], start: dict[str, float] | None = None, evaluations: int | None = None
) -> Fit:
    """Return the parameters that fit these records best.

    Args:
        measured: Records with seconds, all of them counted alike.
        start: Values of FREE to begin with; without, their own starts.
        evaluations: Most steps to take; without, until nothing improves.
    """
    scale = np.array([max(free.start, 0.1) for free in FREE])
    first = np.array([(start or {}).get(free.name, free.start) for free in FREE]) / scale
    low, high = (np.array([getattr(free, end) for free in FREE]) / scale for end in ("low", "high"))

    def errors(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return log_errors(measured, builds_of(_named(values * scale)))

    solution = least_squares(
        errors,
        np.clip(first, low, high),
        diff_step=_STEP,
        bounds=(low, high),
        xtol=1e-5,
        ftol=1e-5,
        max_nfev=evaluations,
    )
    return Fit(_named(solution.x * scale), *_uncertainty(solution.jac, scale, solution.fun), solution.fun)


def _named(values: NDArray[np.float64]) -> dict[str, float]:
    return {free.name: float(value) for free, value in zip(FREE, values, strict=True)}


def _uncertainty(
    jacobian: NDArray[np.float64], scale: NDArray[np.float64], errors: NDArray[np.float64]
) -> tuple[dict[str, float], NDArray[np.float64]]:
    """Standard errors of the values and the correlations between them, from the curvature at the best fit."""
    variance = float(np.sum(errors**2)) / max(len(errors) - len(scale), 1)
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * variance
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-30))
    return _named(deviations * scale), covariance / np.outer(deviations, deviations)


@dataclass(frozen=True)
class CrossValidation:
    """The log error of each record, predicted by a fit that never saw its workload."""

    errors: NDArray[np.float64]
    rank_correlation: float

    @property
    def rms(self) -> float:
        """Root mean square of the log errors."""
        return root_mean_square(self.errors)


def cross_validate(
    measured: Sequence[MeasuredWorkload], start: dict[str, float], report: Callable[[int, int], None] | None = None
) -> CrossValidation:
    """Return the errors of each workload left out in turn; `report` hears how many of how many are done."""
    workloads = list(dict.fromkeys(item.record.task for item in measured))
    errors = np.zeros(len(measured))
    for number, workload in enumerate(workloads):
        left_out = [row for row, item in enumerate(measured) if item.record.task == workload]
        rest = [item for item in measured if item.record.task != workload]
        refit = fit(rest, start, _REFIT_EVALUATIONS)
        errors[left_out] = log_errors([measured[row] for row in left_out], builds_of(refit.values))
        if report is not None:
            report(number + 1, len(workloads))
    return CrossValidation(errors, rank_correlation(measured, errors))


def rank_correlation(measured: Sequence[MeasuredWorkload], errors: NDArray[np.float64]) -> float:
    """Return Spearman's correlation of predicted and measured time per MAC."""
    tasks = [item.record.task for item in measured]
    macs = np.array([task.micro_ops * task.images * task.block**2 for task in tasks])
    seconds = np.array([item.record.mean_seconds for item in measured], dtype=np.float64)
    first, second = (np.argsort(np.argsort(times)) for times in (seconds / macs, seconds * np.exp(errors) / macs))
    return float(np.corrcoef(first.astype(np.float64), second.astype(np.float64))[0, 1])


def unidentified(result: Fit) -> list[str]:
    """Return sentences on the limits of the measurements, by standard error, bound and correlation."""
    sentences = []
    for free in FREE:
        value, error = result.values[free.name], result.standard_errors[free.name]
        if min(value - free.low, free.high - value) < 1e-3 * (free.high - free.low):
            sentences.append(f"{free.name} ends at {value:.4g}, a limit of its range {free.low:g} to {free.high:g}.")
        elif error > 0.25 * abs(value):
            sentences.append(f"{free.name} is {value:.3g} with a standard error of {error:.2g}.")
    for row, first in enumerate(FREE):
        for column in range(row):
            correlation = result.correlations[row, column]
            if abs(correlation) > 0.8:
                pair = f"{FREE[column].name} and {first.name}"
                sentences.append(f"{pair} trade against each other (correlation {correlation:.2f}).")
    sentences.append("An instruction's cost in its stage and the runtime's for it act alike; the first is fixed at 0.")
    sentences.append("All records are winners of a search, so slow configurations are extrapolated.")
    return sentences
