from __future__ import annotations

import numpy as np
import pytest

from hilt.tune.autotvm.trees import AcquisitionRule, Bootstrap, expected_improvement, upper_confidence_bound
from hilt.tune.cost_model import Features, Scores


def test_expected_improvement_is_the_mean_gain() -> None:
    """Against samples: the error of their mean is about deviation / sqrt(n)."""
    generator = np.random.default_rng(0)
    means, deviations = np.array([-1.0, 0.2, 1.0, 2.5]), np.array([0.7, 1.5, 0.3, 1.0])
    samples = generator.normal(means, deviations, (400_000, 4))
    gained = np.maximum(samples - 1.0, 0).mean(axis=0)
    assert expected_improvement(means, deviations, 1.0) == pytest.approx(gained, abs=0.01)


def test_expected_improvement_without_variance() -> None:
    zero = np.zeros(2)
    assert expected_improvement(np.array([0.5, 1.5]), zero, 1.0).tolist() == [0.0, 0.5]
    # At the best, with deviation 1: the density of the normal distribution at 0.
    assert expected_improvement(np.ones(1), np.ones(1), 1.0) == pytest.approx([1 / np.sqrt(2 * np.pi)])


def test_upper_confidence_bound() -> None:
    assert upper_confidence_bound(np.array([1.0, 2.0]), np.array([0.5, 0.0]), 2.0).tolist() == [2.0, 2.0]


class Recorder:
    """A model that predicts a constant and keeps the labels of its fit."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.labels = np.zeros(0)

    def fit(self, features: Features, labels: Scores) -> None:
        assert (features[:, 0] == labels).all()  # rows and labels are drawn together
        self.labels = labels

    def predict(self, features: Features) -> Scores:
        return np.full(len(features), self.value, dtype=np.float32)


@pytest.mark.parametrize(
    ("acquisition", "expected"),
    [
        (AcquisitionRule.MEAN, 2.0),
        (AcquisitionRule.UCB, 2.0 + 3 * 1.0),
        (AcquisitionRule.EI, float(expected_improvement(np.array([2.0]), np.array([1.0]), 99.0)[0])),
    ],
)
def test_mean_and_deviation_are_those_of_the_models(acquisition: AcquisitionRule, expected: float) -> None:
    models = [Recorder(1.0), Recorder(2.0), Recorder(3.0)]
    bootstrap = Bootstrap(models, acquisition, kappa=3.0, seed=0)
    labels = np.arange(100, dtype=np.float32)
    bootstrap.fit(labels[:, None], labels)
    assert bootstrap.predict(np.zeros((2, 1), dtype=np.float32)) == pytest.approx([expected, expected])


def test_each_model_has_its_own_sample_with_replacement() -> None:
    models = [Recorder(0.0) for _ in range(5)]
    labels = np.arange(1000, dtype=np.float32)
    Bootstrap(models, AcquisitionRule.MEAN, 1.0, seed=1).fit(labels[:, None], labels)
    samples = [set(model.labels.tolist()) for model in models]
    assert all(len(model.labels) == 1000 for model in models)
    # Of n drawn with replacement 1 - 1/e are different.
    assert [len(sample) / 1000 for sample in samples] == pytest.approx([1 - 1 / np.e] * 5, abs=0.04)
    assert len({frozenset(sample) for sample in samples}) == 5
