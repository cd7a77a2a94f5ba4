"""Uncertainty by bootstrap (AutoTVM, section 3.3).

The acquisition functions are the mean, expected improvement and the upper confidence bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from hilt.tune.cost_model import CostModel, Features, Scores

Floats = npt.NDArray[np.float64]


class AcquisitionRule(StrEnum):
    """The objective of the search: one model's prediction, or the mean, EI or UCB of several bootstrapped models."""

    NONE = "none"
    MEAN = "mean"
    EI = "ei"
    UCB = "ucb"


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return E[max(X - best, 0)] of X ~ N(mean, deviation^2), shape (n,).

    It is max(mean - best, 0) if the deviation is 0.
    """
    from scipy.special import ndtr

    gain = mean - best
    spread = np.where(deviation > 0, deviation, 1.0)
    standard = gain / spread
    density = np.exp(-(standard**2) / 2) / np.sqrt(2 * np.pi)
    return np.where(deviation > 0, gain * ndtr(standard) + spread * density, np.maximum(gain, 0.0))


def upper_confidence_bound(mean: Floats, deviation: Floats, kappa: float) -> Floats:
    """Return mean + kappa * deviation, shape (n,)."""
    return mean + kappa * deviation


class Bootstrap:
    """A CostModel of several models. Each learns from as many samples as there are, drawn with replacement."""

    def __init__(self, models: Sequence[CostModel], acquisition: AcquisitionRule, kappa: float, seed: int) -> None:
        self._models = models
        self._acquisition = acquisition
        self._kappa = kappa
        self._generator = np.random.default_rng(seed)
        self._best = 0.0

    def fit(self, features: Features, labels: Scores) -> None:
        self._best = float(labels.max(initial=0.0))
        for model in self._models:
            drawn = self._generator.integers(len(labels), size=len(labels))
            model.fit(features[drawn], labels[drawn])

    def predict(self, features: Features) -> Scores:
        """Return the acquisition function (n,). EI is over the best label of the training set."""
        predictions = np.stack([model.predict(features) for model in self._models]).astype(np.float64)
        mean, deviation = predictions.mean(axis=0), predictions.std(axis=0, ddof=1)
        if self._acquisition is AcquisitionRule.EI:
            mean = expected_improvement(mean, deviation, self._best)
        if self._acquisition is AcquisitionRule.UCB:
            mean = upper_confidence_bound(mean, deviation, self._kappa)
        return np.asarray(mean, dtype=np.float32)
