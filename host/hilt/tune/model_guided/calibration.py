"""The coordinates of a machine model that explain measured latencies best: Gauss-Newton steps with a prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Predict = Callable[[Floats], Floats]
"""A function that returns logarithms of cycles (n, m) of the measured rows at coordinates (m, d)."""
Differentiate = Callable[[Floats], tuple[Floats, Floats]]
"""A function that returns the same (n,) at coordinates (d,), and their derivatives (n, d)."""

CLOCK_DEVIATION = 0.5
"""Prior deviation of the logarithm of the true clock over the nominal one."""
_STEPS = 6
_SETTLED = 0.02
_FIT_DEVIATION = 0.01
_FREEDOM = 3.0
"""Degrees of freedom of the Student t that outliers are weighed by."""


class Calibrated(Protocol):
    """The part of a machine model that calibration needs."""

    @property
    def prior(self) -> Floats:
        """The assumed coordinates (d,)."""

    @property
    def deviation(self) -> Floats:
        """Prior deviation of each coordinate (d,)."""

    def clipped(self, coordinates: Floats) -> Floats:
        """Return the nearest coordinates that a machine can have."""


def find_coordinates(
    machine: Calibrated,
    predict: Predict,
    differentiate: Differentiate,
    observed: Floats,
    starts: Floats,
    steps: int = _STEPS,
) -> Floats:
    """Return the most probable coordinates (d,), given logarithms of latencies in nominal cycles `observed` (n,).

    The search begins at the best of `starts` (m, d) and takes at most so many `steps`.
    """
    here = np.asarray(starts[0])
    if len(starts) > 1:
        cycles = predict(starts)
        losses = [_loss(machine, point, observed - column) for point, column in zip(starts, cycles.T, strict=True)]
        here = np.asarray(starts[int(np.argmin(losses))])
    best: Floats = here
    least = np.inf
    for _ in range(steps):
        base, slope = differentiate(here)
        finite = np.isfinite(base) & np.isfinite(slope).all(axis=1)
        residual = observed[finite] - base[finite]
        loss = _loss(machine, here, residual)
        if loss < least:
            best, least = here, loss
        moved = _gauss_newton(machine, residual, slope[finite], here)
        if float(np.abs(moved - here).max()) < _SETTLED:
            break
        here = moved
    return best


def _loss(machine: Calibrated, point: Floats, residual: Floats) -> float:
    """Return the negative log posterior, with the residuals' median as the clock's deviation."""
    if not len(residual) or not np.isfinite(residual).all():
        return float("inf")
    clock = float(np.median(residual))
    scaled = (residual - clock) / _FIT_DEVIATION
    away = (point - machine.prior) / machine.deviation
    fit = (_FREEDOM + 1) / 2 * np.log1p(scaled**2 / _FREEDOM).sum()
    return float(fit + (away @ away + (clock / CLOCK_DEVIATION) ** 2) / 2)


def _gauss_newton(machine: Calibrated, residual: Floats, slope: Floats, here: Floats) -> Floats:
    design = np.concatenate((slope, np.ones((len(slope), 1))), axis=1)
    precision = np.diag(np.concatenate((machine.deviation, [CLOCK_DEVIATION])) ** -2.0)
    centre = np.concatenate((machine.prior - here, [0.0]))
    step, weights = centre, np.ones(len(residual))
    for _ in range(4):
        weighted = design * (weights / _FIT_DEVIATION**2)[:, None]
        step = np.linalg.solve(weighted.T @ design + precision, weighted.T @ residual + precision @ centre)
        errors = (residual - design @ step) / _FIT_DEVIATION
        weights = (_FREEDOM + 1) / (_FREEDOM + errors**2)
    return machine.clipped(here + np.clip(step[:-1], -1.0, 1.0))
