"""Errors of int8 that statistics of a tensor tell, by plain arithmetic on its values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hilt.network.quantize.headroom import growth
from hilt.network.quantize.statistics import MeanDecibels, TensorStatistics, best_exponent, loss_of

from .models import Array

CLIPPED = 2.0


def statistics_of(
    values: Array, counts: Array, growing: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
) -> TensorStatistics:
    none = np.zeros(0)
    return TensorStatistics(float(np.abs(values).max()), values, counts, none, none, none, growing)


def error(values: Array, counts: Array, step: float) -> float:
    """Return the power of the error of values in int8 by theirs; errors beyond the range count twice."""
    rounded = np.clip(np.rint(values / step), -128, 127) * step
    power = (rounded - values) ** 2 * np.where(np.abs(rounded - values) > step / 2, CLIPPED, 1.0)
    return float(np.average(power, weights=counts) / np.average(values**2, weights=counts))


@pytest.fixture
def sample() -> tuple[Array, Array]:
    random = np.random.default_rng(5)
    return random.standard_t(4, 3000).astype(np.float32), random.integers(1, 9, 3000).astype(np.float64)


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-0.5, np.inf), (-1.0, 1.5)])
@pytest.mark.parametrize("taken", [0.0, 0.75])
def test_shifted_values_are_clipped_shifted_and_rounded(
    sample: tuple[Array, Array], low: float, high: float, taken: float
) -> None:
    values, counts = sample
    found, exact = statistics_of(values, counts), values.astype(np.float64)
    for step in (0.01, 0.05):
        shifted = np.clip(exact, low, high) - taken
        power = np.average(shifted**2, weights=counts) / np.average(exact**2, weights=counts)
        expected = error(shifted, counts, step) * power
        for _ in range(2):
            assert found.error_of_shifted(low, high, taken, step) == pytest.approx(expected, rel=1e-9)


def test_a_loss_is_the_mean_over_values_to_come(sample: tuple[Array, Array]) -> None:
    values, counts = sample
    growing = tuple(growth([float(np.abs(part).max()) for part in np.split(values, 4)]))
    assert len(growing) > 1
    found = replace(statistics_of(values, counts, growing), ends=(float(values.min()), float(values.max())))
    exact = values.astype(np.float64)
    for exponent in (3, 4, 5):
        grown = [np.clip(exact * factor, exact.min(), exact.max()) for factor, _ in growing]
        expected = sum(
            share * error(each, counts, 2.0**-exponent) for (_, share), each in zip(growing, grown, strict=True)
        )
        assert loss_of(found, exponent) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 3e4])
def test_the_best_exponent_is_that_of_the_least_loss(sample: tuple[Array, Array], scale: float) -> None:
    values, counts = sample
    found = statistics_of(values * np.float32(scale), counts)
    best = best_exponent([found])
    losses = {exponent: error(found.values.astype(np.float64), counts, 2.0**-exponent) for exponent in range(-20, 40)}
    assert best == min(losses, key=lambda exponent: losses[exponent])


def decibels_of(pairs: list[tuple[Array, Array]]) -> float:
    found = MeanDecibels(["y"])
    for wanted, given in pairs:
        found.add({"y": wanted}, {"y": given})
    return found.means()["y"]


def test_a_sample_of_next_to_nothing_tells_nothing_of_the_decibels() -> None:
    loud = np.linspace(-1, 1, 100, dtype=np.float32)
    pairs = [(loud, loud * np.float32(1.01)), (loud * 2, loud * np.float32(2.1))]
    level = decibels_of(pairs)
    assert level == pytest.approx((40 + 20 * np.log10(20)) / 2, abs=0.01)
    nothing, zeros = loud * np.float32(1e-6), loud * np.float32(0)
    for given in (nothing * 5, zeros, nothing):
        assert decibels_of([*pairs, (nothing, given), (zeros, given)]) == level
    quiet = loud * np.float32(1e-3)
    assert decibels_of([*pairs, (quiet, zeros)]) == pytest.approx(level * 2 / 3, abs=0.01)
    assert decibels_of([(zeros, zeros)]) == 300
