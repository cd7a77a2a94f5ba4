"""Steps in latencies: their evidence against the joint normal distribution, how many are found, and their rivals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hilt.tune.model_guided.gaussian_process import Inputs, Kernel
from hilt.tune.model_guided.steps import MeasuredCandidates, StepEvidence, find_steps, rivals, with_steps

KERNEL = Kernel(0.2, 1.0, 0.05)


def some(count: int, seed: int) -> tuple[Inputs, np.random.Generator]:
    generator = np.random.default_rng(seed)
    own = np.abs(generator.normal(0, 0.1, count))
    return Inputs(generator.normal(size=(count, 2)), 0.1 * generator.normal(size=(count, 2)), own), generator


def covariance(inputs: Inputs) -> np.ndarray:
    """Return the covariance of measurements, element by element."""
    found = np.empty((len(inputs.smooth), len(inputs.smooth)))
    for i, j in np.ndindex(*found.shape):
        apart = np.mean((inputs.smooth[i] - inputs.smooth[j]) ** 2)
        found[i, j] = 0.04 * np.exp(-apart / 2) + inputs.linear[i] @ inputs.linear[j]
    assert inputs.own is not None
    return found + np.diag(0.0025 + inputs.own**2)


def test_a_step_is_one_more_direction_of_deviation_one_half() -> None:
    inputs, _ = some(4, 0)
    sides = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=np.bool_)
    stepped = with_steps(inputs, sides)
    assert np.array_equal(stepped.linear, np.hstack([inputs.linear, 0.5 * sides]))
    assert with_steps(inputs, np.zeros((4, 0), dtype=np.bool_)) is inputs


def test_the_gain_of_a_step_is_its_evidence_and_its_size_is_the_posteriors_mean() -> None:
    inputs, generator = some(12, 1)
    sides = generator.random((12, 5)) < 0.5
    residual = generator.normal(0, 0.3, 12)
    evidence = StepEvidence.of(inputs, residual, sides, KERNEL)
    plain = covariance(inputs)
    without = multivariate_normal(np.zeros(12), plain).logpdf(residual)
    for place, side in enumerate(sides.T.astype(float)):
        stepped = plain + 0.25 * np.outer(side, side)
        gain = multivariate_normal(np.zeros(12), stepped).logpdf(residual) - without
        assert evidence.gain[place] == pytest.approx(gain)
        solved = np.linalg.solve(stepped, residual)
        assert evidence.size[place] == pytest.approx(0.25 * side @ solved)
        assert evidence.directions[:, place] == pytest.approx(inputs.linear.T @ solved)


def planted(*factors: float, seed: int = 2) -> tuple[Inputs, np.ndarray, np.ndarray]:
    """Return inputs, measurements and ten sides. The first sides have these logarithms of factors."""
    inputs, generator = some(60, seed)
    sides = generator.random((60, 10)) < 0.5
    residual = sides[:, : len(factors)] @ np.array(factors) + generator.normal(0, 0.05, 60)
    return inputs, residual, sides


def test_steps_that_are_there_are_found_the_most_evident_first() -> None:
    inputs, residual, sides = planted(0.6, -1.2)
    found, cost = find_steps(inputs, residual, sides, KERNEL)
    assert found == [1, 0] and cost == pytest.approx(2 * np.log(10))
    assert find_steps(*planted(0.0), KERNEL) == ([], 0.0), "noise is no step"


def test_no_more_than_three_steps_are_taken() -> None:
    found, cost = find_steps(*planted(1.0, 1.2, 1.4, 1.6), KERNEL)
    assert len(found) == 3 and set(found) <= {0, 1, 2, 3} and cost == pytest.approx(3 * np.log(10))


def test_sides_with_the_same_measurements_are_one_choice_and_none_are_no_step() -> None:
    inputs, residual, sides = planted(0.6)
    twice = np.hstack([sides, sides])
    found, cost = find_steps(inputs, residual, twice, KERNEL)
    assert found == [0] and cost == pytest.approx(np.log(10)), "the same ten"
    assert find_steps(inputs, residual, sides[:, :0], KERNEL) == ([], 0.0)


def test_a_first_step_that_stood_for_two_is_exchanged_once_the_second_is_there() -> None:
    """The union of two sides explains more than either; beside one of them the other explains all."""
    inputs, generator = some(80, 3)
    one, two = generator.random((2, 80)) < 0.5
    sides = np.stack([one | two, one, two], axis=1)
    residual = one * 0.8 + two * 0.8 + generator.normal(0, 0.05, 80)
    assert sorted(find_steps(inputs, residual, sides, KERNEL)[0]) == [1, 2]


def candidates(mean: np.ndarray, sides: np.ndarray, tried: np.ndarray, step: float) -> MeasuredCandidates:
    inputs = Inputs(np.zeros((len(mean), 1)), np.zeros((len(mean), 0)))
    observed = mean[tried] + step * sides[tried, 0]
    return MeasuredCandidates(mean, inputs, sides, tried, tried, observed, inputs[tried])


def test_rivals_are_sides_that_explain_as_much_and_make_another_the_best() -> None:
    """Rows 0 to 3 are measured, two of them slow; which of the cuts it is decides whether row 4 or row 5 is fast."""
    mean = np.array([0.0, 0.01, 0.02, 0.03, -0.5, -0.6, 0.5])
    slow = np.array([1, 1, 0, 0], dtype=np.bool_)
    sides = np.stack(
        [
            np.concatenate((slow, [0, 1, 0])),  # row 5 is slow: row 4 is the best
            np.concatenate((slow, [1, 0, 0])),  # row 4 is slow: row 5 is
            np.concatenate((slow, [0, 1, 1])),  # as the first: row 4 is
            np.concatenate((~slow, [1, 0, 0])),  # explains less
        ],
        axis=1,
    ).astype(np.bool_)
    space = candidates(mean, sides, np.arange(4), 1.0)
    ((steps, share),) = rivals(space, KERNEL, (0,), 0)
    assert steps == (1,), "the third side makes the same row the best"
    assert share == pytest.approx(1 / 3, abs=0.01), "three sides explain the same"


def test_a_rival_beside_other_steps_keeps_them_in_their_places() -> None:
    mean = np.array([0.0, 0.01, 0.02, 0.03, -0.5, -0.6])
    first = np.array([1, 1, 0, 0, 0, 1], dtype=np.bool_)
    other = np.array([1, 0, 1, 0, 0, 0], dtype=np.bool_)
    rival = np.array([1, 1, 0, 0, 1, 0], dtype=np.bool_)
    space = candidates(mean, np.stack([first, other, rival], axis=1), np.arange(4), 1.0)
    assert [steps for steps, _ in rivals(space, KERNEL, (1, 0), 1)] == [(1, 2)]
    assert [steps for steps, _ in rivals(space, KERNEL, (0, 1), 0)] == [(2, 1)]


def test_without_a_hopeful_row_there_is_no_rival() -> None:
    mean = np.array([0.0, 0.01, 0.02, 0.03, 0.5, 0.6])
    first = np.array([1, 1, 0, 0, 0, 1], dtype=np.bool_)
    rival = np.array([1, 1, 0, 0, 1, 0], dtype=np.bool_)
    space = candidates(mean, np.stack([first, rival], axis=1), np.arange(4), 1.0)
    assert rivals(space, KERNEL, (0,), 0) == []
