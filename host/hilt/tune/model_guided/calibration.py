"""What a board's memory is like, out of the latencies of what was measured, and with it the latency of everything else.

Let y be the logarithm of a latency in cycles of the nominal clock. Then y = log cycles(x) + s + e(z) + noise, where
cycles(x) is the prediction with the memory at coordinates x (hilt.tune.model_guided.memories), s the clock's deviation
from the nominal one, and e what the prediction gets wrong, alike for alike configurations. x is found by Gauss-Newton
steps with its prior; around it all is linear, and so the posterior of every latency is a Gaussian process.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilt.tune.model_guided.gaussian_process import GaussianProcess, Inputs, Kernel, most_likely
from hilt.tune.model_guided.memories import PRIOR_DEVIATION, clipped
from hilt.tune.model_guided.prediction import Predictor

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

CLOCK_DEVIATION = 0.5
"""Of the logarithm of the true clock over the nominal one."""
_STEPS = np.array([0.25, 0.25, 0.15])
"""For the derivatives: latencies are whole cycles, so small ones would be lost in rounding."""
_MOST_FITTED = 24
_GAUSS_NEWTON = 4
_SETTLED = 0.02
_FIT_DEVIATION = 0.01
_FREEDOM = 3.0
"""Degrees of freedom of the Student t that outliers are weighed by."""
USUAL = Kernel(amplitude=0.01, length=1.0, noise=0.002)
_AMPLITUDES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
_LENGTHS = (0.5, 1.0, 2.0)
_NOISES = (0.0002, 0.001, 0.003, 0.01, 0.03)


def slopes(predictor: Predictor, rows: Rows, coordinates: Floats) -> tuple[Floats, Floats]:
    """log cycles (n,) at coordinates (3,), and their derivatives (n, 3)."""
    around = np.concatenate((coordinates[None], clipped(coordinates + np.diag(_STEPS))))
    cycles = predictor.log_cycles(rows.tolist(), around)
    return cycles[:, 0], (cycles[:, 1:] - cycles[:, :1]) / _STEPS


def find_memory(predictor: Predictor, rows: Rows, observed: Floats, start: Floats, prior: Floats) -> Floats:
    """The most probable coordinates (3,), given logarithms of latencies in nominal cycles `observed` (n,) of `rows`."""
    fastest = np.argsort(observed, kind="stable")[:_MOST_FITTED]
    rows, observed = rows[fastest], observed[fastest]
    found = start
    for _ in range(_GAUSS_NEWTON):
        base, slope = slopes(predictor, rows, found)
        moved = _gauss_newton(observed - base, slope, found, prior)
        settled = float(np.abs(moved - found).max()) < _SETTLED
        found = moved
        if settled:
            break
    return found


def _gauss_newton(residual: Floats, slope: Floats, here: Floats, prior: Floats) -> Floats:
    design = np.concatenate((slope, np.ones((len(slope), 1))), axis=1)
    precision = np.diag(np.concatenate((PRIOR_DEVIATION, [CLOCK_DEVIATION])) ** -2.0)
    centre = np.concatenate((prior - here, [0.0]))
    step, weights = centre, np.ones(len(residual))
    for _ in range(4):
        weighted = design * (weights / _FIT_DEVIATION**2)[:, None]
        step = np.linalg.solve(weighted.T @ design + precision, weighted.T @ residual + precision @ centre)
        errors = (residual - design @ step) / _FIT_DEVIATION
        weights = (_FREEDOM + 1) / (_FREEDOM + errors**2)
    return clipped(here + np.clip(step[:3], -1.0, 1.0))


class Calibration:
    """The posterior of latencies around one memory, for rows whose predictions are at hand."""

    def __init__(self, coordinates: Floats, prior: Floats, base: Floats, slope: Floats, smooth: Floats) -> None:
        """`base` (n,) and `slope` (n, 3) as `slopes` gives them; `smooth` (n, d) as the candidates have it."""
        self.coordinates = coordinates
        self.mean_before = base + slope @ (prior - coordinates)
        scaled = slope * PRIOR_DEVIATION
        self._inputs = Inputs(smooth, np.concatenate((scaled, np.full((len(base), 1), CLOCK_DEVIATION)), axis=1))
        self.process = GaussianProcess(USUAL, self._inputs[np.zeros(0, dtype=np.int64)], np.zeros(0))

    def learn(self, rows: Rows, observed: Floats, kernel: Kernel | None) -> None:
        """Of all measurements that count: rows (n,), logarithms (n,). Chooses a kernel where none is given."""
        inputs, errors = self._inputs[rows], observed - self.mean_before[rows]
        if kernel is None:
            self.process = most_likely(inputs, errors, _AMPLITUDES, _LENGTHS, _NOISES, USUAL)
        else:
            self.process = GaussianProcess(kernel, inputs, errors)

    def predict(self) -> tuple[Floats, Floats]:
        """Mean and deviation (n,) of the logarithms of all rows."""
        mean, deviation = self.process.predict(self._inputs)
        return self.mean_before + mean, deviation

    def sample(self, rows: Rows, count: int, generator: np.random.Generator) -> Floats:
        """Joint draws (count, n) of the logarithms of rows."""
        return self.mean_before[rows] + self.process.sample(self._inputs[rows], count, generator)
