"""Gaussian process regression with a part that is linear in known directions.

It calibrates a model together with the model's error (Kennedy and O'Hagan, Bayesian calibration of computer models,
2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

Floats = npt.NDArray[np.float64]


_BY_KNOBS = 1.0
"""Cost of a kernel by knobs, as a logarithm of evidence: hidden features usually explain enough."""
_LEAST_VARIANCE = 1e-8
"""Least variance of logarithms: a deviation of a hundredth of a percent."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of the regression, n rows.

    Neighbours in `smooth` (n, d) have like errors. `linear` (n, k) holds directions, each times its prior deviation.
    `own` (n,), if given, is the deviation of each row's own, besides the kernel's noise. `knobs` (n, h), if given, has
    a column for each value of each knob: one over the root of the number of knobs where a row has the value, else 0.
    """

    smooth: Floats
    linear: Floats
    own: Floats | None = None
    knobs: Floats | None = None

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Inputs:
        own = None if self.own is None else self.own[rows]
        return Inputs(self.smooth[rows], self.linear[rows], own, None if self.knobs is None else self.knobs[rows])

    @property
    def own_variance(self) -> Floats:
        """Variance (n,) that no other row shares."""
        return np.zeros(len(self.smooth)) if self.own is None else self.own**2


class Distances(NamedTuple):
    """The distances of rows from other rows, each (n, m)."""

    squared: Floats
    """Half the mean squared difference over the columns of `smooth`."""
    shared: Floats | None
    """Share of the knobs with equal values; None if the knobs are not given."""


@dataclass(frozen=True)
class Kernel:
    """Deviations of the smooth part (`amplitude`) and of the noise, and which rows have like errors.

    Errors are alike over the distance `length`, the root mean square over the columns of `smooth`. Without a length
    a third is alike over the distance 1, and the rest by equal knobs: errors that belong to the values of a few knobs.
    """

    amplitude: float
    length: float | None
    noise: float

    def between(self, left: Inputs, right: Inputs, distances: Distances | None = None) -> Floats:
        """Return the covariance (n, m) without the noise; `distances` are those of `distances_between`, if known."""
        smooth = likeness(self.length, distances or distances_between(left, right))
        smooth *= self.amplitude**2
        smooth += left.linear @ right.linear.T
        return smooth

    def variance(self, inputs: Inputs) -> Floats:
        """Return the diagonal of `between(inputs, inputs)`, (n,)."""
        return np.asarray(self.amplitude**2 + (inputs.linear**2).sum(axis=1))


def likeness(length: float | None, distances: Distances) -> Floats:
    """Return the correlation (n, m) of errors, a new array."""
    if length is not None:
        return np.asarray(np.exp(distances.squared * (-1 / length**2)))
    assert distances.shared is not None, "a kernel by knobs needs inputs with knobs"
    return np.asarray((np.exp(-distances.squared) + distances.shared**2 + distances.shared**4) / 3)


def distances_between(left: Inputs, right: Inputs) -> Distances:
    """Return the distances (n, m) of rows."""
    scale = np.sqrt(2 * max(left.smooth.shape[1], 1))
    a, b = left.smooth / scale, right.smooth / scale
    squared: Floats = a @ b.T
    squared *= -2
    squared += (a**2).sum(axis=1)[:, None]
    squared += (b**2).sum(axis=1)
    np.maximum(squared, 0, out=squared)
    known = left.knobs is not None and right.knobs is not None
    return Distances(squared, left.knobs @ right.knobs.T if known else None)  # type: ignore[operator, union-attr]


class GaussianProcess:
    """The posterior after observations; without any, the prior."""

    def __init__(self, kernel: Kernel, inputs: Inputs, observed: Floats, distances: Distances | None = None) -> None:
        """Condition on `observed` (n,), which has the prior mean subtracted.

        `distances` (n, n) are those between the inputs, if known.
        """
        self.kernel = kernel
        self._inputs = inputs
        covariance = kernel.between(inputs, inputs, distances)
        covariance[np.diag_indices_from(covariance)] += kernel.noise**2 + inputs.own_variance
        root = cholesky(covariance, lower=True, check_finite=False) if len(observed) else covariance
        self._whiten = solve_triangular(root, np.eye(len(root)), lower=True, check_finite=False) if len(root) else root
        """Inverse (n, n) of the covariance's root."""
        self._whitened = self._whiten @ observed

    def predict(self, inputs: Inputs, distances: Distances | None = None) -> tuple[Floats, Floats]:
        """Return mean and deviation (m,) of the latent function; `distances` (m, n) are to the observed, if known."""
        across = self._whiten @ self.kernel.between(inputs, self._inputs, distances).T
        explained = np.einsum("ij,ij->j", across, across)
        deviation = np.sqrt(np.maximum(self.kernel.variance(inputs) - explained, 0))
        return np.asarray(self._whitened @ across), np.asarray(deviation)

    def misjudgement(self) -> float:
        """Return the root mean square error over the stated deviation, each observation predicted by the others."""
        weights, precision = self._whitened @ self._whiten, (self._whiten**2).sum(axis=0)
        return float(np.sqrt(np.mean(weights**2 / precision)))

    def sample(
        self, inputs: Inputs, count: int, generator: np.random.Generator, distances: Distances | None = None
    ) -> tuple[Floats, Floats]:
        """Return the mean (m,) of the latent function and joint deviations (count, m) from it."""
        across = self._whiten @ self.kernel.between(inputs, self._inputs, distances).T
        covariance = self.kernel.between(inputs, inputs) - across.T @ across
        drawn = generator.standard_normal((count, len(covariance))) @ root_of(covariance).T
        return np.asarray(self._whitened @ across), np.asarray(drawn)


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
    lengths: Sequence[float | None],
    noises: Sequence[float],
    usual: Kernel,
) -> list[tuple[Kernel, float]]:
    """Return every kernel of the grid with the logarithm of its evidence, the best first.

    `usual` is the most probable before any observation. Each factor of e away from it costs 0.25 in amplitude and
    length, and 0.5 in noise. A kernel without a length costs _BY_KNOBS.
    """
    found = []
    own = inputs.linear @ inputs.linear.T + np.diag(inputs.own_variance)
    distances = distances_between(inputs, inputs)
    for length in lengths:
        alike = likeness(length, distances)
        unusual = _BY_KNOBS if length is None or usual.length is None else abs(np.log(length / usual.length)) / 4
        for amplitude in amplitudes:
            # Noise only adds to the eigenvalues, so one decomposition serves all noises.
            variances, directions = np.linalg.eigh(own + amplitude**2 * alike)
            along = (directions.T @ observed) ** 2
            for noise in noises:
                variance = np.maximum(variances, 0) + noise**2
                score = -(along / variance + np.log(variance)).sum() / 2
                away = np.abs(np.log([amplitude / usual.amplitude, noise / usual.noise])) @ [0.25, 0.5]
                found.append((Kernel(amplitude, length, noise), float(score - away - unusual)))
    return sorted(found, key=lambda pair: -pair[1])
