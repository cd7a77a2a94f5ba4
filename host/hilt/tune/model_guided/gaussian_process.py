"""Gaussian process regression with a part that is linear in known directions.

It calibrates a model together with the model's error (Kennedy and O'Hagan, Bayesian calibration of computer models,
2001).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky

Floats = npt.NDArray[np.float64]


_LEAST_VARIANCE = 1e-8
"""Least variance of logarithms: a deviation of a hundredth of a percent."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of the regression, n rows.

    Neighbours in `smooth` (n, d) have like errors. `linear` (n, k) holds directions, each times its prior deviation.
    `own` (n,), if given, is the deviation of each row's own, besides the kernel's noise.
    """

    smooth: Floats
    linear: Floats
    own: Floats | None = None

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Inputs:
        return Inputs(self.smooth[rows], self.linear[rows], None if self.own is None else self.own[rows])

    @property
    def own_variance(self) -> Floats:
        """Variance (n,) that no other row shares."""
        return np.zeros(len(self.smooth)) if self.own is None else self.own**2


@dataclass(frozen=True)
class Kernel:
    """Deviations of the smooth part (`amplitude`) and of the noise, and the distance over which errors are alike.

    The distance `length` is the root mean square over the columns of `smooth`.
    """

    amplitude: float
    length: float
    noise: float

    def between(self, left: Inputs, right: Inputs) -> Floats:
        """Return the covariance (n, m) without the noise."""
        scale = self.length * np.sqrt(2 * max(left.smooth.shape[1], 1))
        a, b = left.smooth / scale, right.smooth / scale
        squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
        smooth = self.amplitude**2 * np.exp(-np.maximum(squared, 0))
        return np.asarray(smooth + left.linear @ right.linear.T)

    def variance(self, inputs: Inputs) -> Floats:
        """Return the diagonal of `between(inputs, inputs)`, (n,)."""
        return np.asarray(self.amplitude**2 + (inputs.linear**2).sum(axis=1))


class GaussianProcess:
    """The posterior after observations; without any, the prior."""

    def __init__(self, kernel: Kernel, inputs: Inputs, observed: Floats) -> None:
        """Condition on `observed` (n,), which has the prior mean subtracted."""
        self.kernel = kernel
        self._inputs = inputs
        covariance = kernel.between(inputs, inputs)
        covariance[np.diag_indices_from(covariance)] += kernel.noise**2 + inputs.own_variance
        self._factor = cholesky(covariance, lower=True) if len(observed) else covariance
        self._weights = cho_solve((self._factor, True), observed) if len(observed) else observed
        self.log_likelihood = 0.0
        if len(observed):
            self.log_likelihood = float(-observed @ self._weights / 2 - np.log(np.diag(self._factor)).sum())

    def predict(self, inputs: Inputs) -> tuple[Floats, Floats]:
        """Return mean and deviation (n,) of the latent function."""
        across = self.kernel.between(inputs, self._inputs)
        if not len(self._weights):
            return np.zeros(len(across)), np.sqrt(self.kernel.variance(inputs))
        explained = (across.T * cho_solve((self._factor, True), across.T)).sum(axis=0)
        return across @ self._weights, np.sqrt(np.maximum(self.kernel.variance(inputs) - explained, 0))

    def misjudgement(self) -> float:
        """Return the root mean square error over the stated deviation, each observation predicted by the others."""
        precision = np.diag(cho_solve((self._factor, True), np.eye(len(self._weights))))
        return float(np.sqrt(np.mean(self._weights**2 / precision)))

    def sample(self, inputs: Inputs, count: int, generator: np.random.Generator) -> Floats:
        """Return joint draws (count, n) of the latent function."""
        across = self.kernel.between(inputs, self._inputs)
        mean, covariance = np.zeros(len(across)), self.kernel.between(inputs, inputs)
        if len(self._weights):
            mean = across @ self._weights
            covariance -= across @ cho_solve((self._factor, True), across.T)
        return np.asarray(mean + generator.standard_normal((count, len(mean))) @ root_of(covariance).T)


def root_of(covariance: Floats) -> Floats:
    """Return a lower triangular root of a covariance.

    The matrix of like rows is close to singular, so each row gets a little variance of its own. A root by eigenvectors
    changes much with the last bits of the matrix; this one changes little.
    """
    own = _LEAST_VARIANCE
    while True:
        try:
            return np.asarray(np.linalg.cholesky(covariance + own * np.eye(len(covariance))))
        except np.linalg.LinAlgError:
            own *= 10


def weigh(
    inputs: Inputs,
    observed: Floats,
    amplitudes: Sequence[float],
    lengths: Sequence[float],
    noises: Sequence[float],
    usual: Kernel,
) -> list[tuple[Kernel, float]]:
    """Return every kernel of the grid with the logarithm of its evidence, the best first.

    `usual` is the most probable before any observation. Each factor of e away from it costs 0.25 in amplitude and
    length, and 0.5 in noise.
    """
    found = []
    linear = inputs.linear @ inputs.linear.T
    own = np.diag(inputs.own_variance)
    for length in lengths:
        alike = Kernel(1.0, length, 0.0).between(Inputs(inputs.smooth, np.zeros((len(observed), 1))), Inputs(
            inputs.smooth, np.zeros((len(observed), 1))
        ))  # fmt: skip
        for amplitude, noise in itertools.product(amplitudes, noises):
            covariance = linear + own + amplitude**2 * alike + noise**2 * np.eye(len(observed))
            factor = cholesky(covariance, lower=True, check_finite=False)
            weights = cho_solve((factor, True), observed, check_finite=False)
            score = -observed @ weights / 2 - np.log(np.diag(factor)).sum()
            away = np.abs(np.log([amplitude / usual.amplitude, length / usual.length, noise / usual.noise]))
            found.append((Kernel(amplitude, length, noise), float(score - away @ [0.25, 0.25, 0.5])))
    return sorted(found, key=lambda pair: -pair[1])
