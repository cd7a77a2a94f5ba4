from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from hilt.tune.model_guided.gaussian_process import (
    GaussianProcess,
    Inputs,
    Kernel,
    distances_between,
    root_of,
    weigh,
)


def some_inputs(generator: np.random.Generator, count: int) -> Inputs:
    return Inputs(generator.normal(size=(count, 3)), generator.normal(size=(count, 2)))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), seen=st.integers(1, 12), asked=st.integers(1, 8))
def test_the_posterior_is_that_of_the_joint_normal_distribution(seed: int, seen: int, asked: int) -> None:
    generator = np.random.default_rng(seed)
    every, observed = some_inputs(generator, seen + asked), generator.normal(size=seen)
    kernel = Kernel(amplitude=0.7, length=0.9, noise=0.3)
    old, new = every[np.arange(seen)], every[np.arange(seen, seen + asked)]
    mean, deviation = GaussianProcess(kernel, old, observed).predict(new)

    joint = np.empty((seen + asked, seen + asked))
    for i, j in np.ndindex(*joint.shape):
        apart = np.mean((every.smooth[i] - every.smooth[j]) ** 2)
        joint[i, j] = 0.49 * np.exp(-apart / (2 * 0.81)) + every.linear[i] @ every.linear[j]
    inverse = np.linalg.inv(joint[:seen, :seen] + 0.09 * np.eye(seen))
    assert mean == pytest.approx(joint[seen:, :seen] @ inverse @ observed, abs=1e-8)
    left = joint[seen:, seen:] - joint[seen:, :seen] @ inverse @ joint[:seen, seen:]
    assert deviation == pytest.approx(np.sqrt(np.diag(left)), abs=1e-6)


def test_draws_have_the_posteriors_moments_also_of_equal_rows() -> None:
    generator = np.random.default_rng(3)
    inputs = some_inputs(generator, 6)
    process = GaussianProcess(Kernel(0.5, 1.0, 0.1), inputs[np.arange(3)], np.array([0.3, -0.2, 1.0]))
    asked = inputs[np.array([3, 4, 4, 5])]
    centre, draws = process.sample(asked, 20_000, generator)
    mean, deviation = process.predict(asked)
    assert centre == pytest.approx(mean)
    assert draws.mean(axis=0) == pytest.approx(0, abs=0.05)
    assert draws.std(axis=0) == pytest.approx(deviation, rel=0.05)
    assert np.abs(draws[:, 1] - draws[:, 2]).max() < 0.01


def test_the_kernel_that_made_the_data_is_found() -> None:
    generator = np.random.default_rng(4)
    inputs = Inputs(generator.normal(size=(120, 1)), np.zeros((120, 1)))
    observed = 0.1 * np.sin(2 * inputs.smooth[:, 0]) + 0.003 * generator.normal(size=120)
    weighed = weigh(inputs, observed, (0.001, 0.1), (0.01, 0.7), (0.003, 0.03), Kernel(0.001, 0.01, 0.03))
    assert weighed[0][0] == Kernel(0.1, 0.7, 0.003)
    assert len(weighed) == 8


def test_a_kernels_weight_is_its_evidence() -> None:
    generator = np.random.default_rng(5)
    inputs = Inputs(generator.normal(size=(9, 2)), generator.normal(size=(9, 2)), np.abs(generator.normal(size=9)))
    observed = generator.normal(size=9)
    usual = Kernel(0.3, 1.0, 0.2)
    (kernel, score), *_ = weigh(inputs, observed, (0.3,), (1.0,), (0.2,), usual)
    assert kernel == usual
    covariance = usual.between(inputs, inputs) + np.diag(0.2**2 + inputs.own_variance)
    density = multivariate_normal(np.zeros(9), covariance).logpdf(observed)
    assert score == pytest.approx(density + 9 / 2 * np.log(2 * np.pi))


def test_known_distances_change_no_prediction() -> None:
    generator = np.random.default_rng(6)
    every, observed = some_inputs(generator, 7), generator.normal(size=4)
    old, new = every[np.arange(4)], every[np.arange(4, 7)]
    kernel = Kernel(0.5, 0.8, 0.1)
    plain = GaussianProcess(kernel, old, observed).predict(new)
    given_distances = GaussianProcess(kernel, old, observed, distances_between(old, old))
    assert np.allclose(given_distances.predict(new, distances_between(new, old)), plain)


def test_misjudgement_is_the_error_of_leaving_one_out() -> None:
    generator = np.random.default_rng(4)
    inputs = Inputs(generator.normal(size=(12, 2)), np.ones((12, 1)))
    observed = generator.normal(size=12)
    kernel = Kernel(0.3, 1.0, 0.1)
    errors = []
    for left in range(12):
        rest = np.array([row for row in range(12) if row != left])
        process = GaussianProcess(kernel, inputs[rest], observed[rest])
        mean, deviation = process.predict(inputs[np.array([left])])
        errors.append((observed[left] - mean[0]) ** 2 / (deviation[0] ** 2 + kernel.noise**2))
    assert GaussianProcess(kernel, inputs, observed).misjudgement() == pytest.approx(np.sqrt(np.mean(errors)))


def with_knobs(generator: np.random.Generator, count: int) -> tuple[Inputs, np.ndarray]:
    """Return inputs, and the values (count, 4) of their knobs, each 0 to 3."""
    values = generator.integers(0, 4, (count, 4))
    columns = (values[:, :, None] == np.arange(4)).reshape(count, 16) / 2
    return Inputs(generator.normal(size=(count, 3)), np.zeros((count, 1)), knobs=columns), values


def test_a_kernel_without_length_counts_equal_knobs() -> None:
    inputs, values = with_knobs(np.random.default_rng(6), 9)
    found = Kernel(0.5, None, 0.1).between(inputs, inputs)
    for i, j in np.ndindex(9, 9):
        share = (values[i] == values[j]).mean()
        near = np.exp(-np.mean((inputs.smooth[i] - inputs.smooth[j]) ** 2) / 2)
        assert found[i, j] == pytest.approx(0.25 * (near + share**2 + share**4) / 3)
    assert Kernel(0.5, None, 0.1).variance(inputs) == pytest.approx(np.diag(found))


def test_errors_that_belong_to_the_values_of_knobs_are_found_and_predicted() -> None:
    generator = np.random.default_rng(7)
    inputs, values = with_knobs(generator, 160)
    factors = generator.normal(size=(2, 4))
    errors = 0.2 * factors[0][values[:, 0]] + 0.2 * factors[1][values[:, 2]] + 0.003 * generator.normal(size=160)
    seen, asked = np.arange(60), np.arange(60, 160)
    weighed = weigh(
        inputs[seen], errors[seen], (0.1, 0.3), (0.5, 1.0, 2.0, None), (0.003, 0.1), Kernel(0.02, 1.0, 0.002)
    )
    (best, _), *_ = weighed
    assert best.length is None
    mean, _ = GaussianProcess(best, inputs[seen], errors[seen]).predict(inputs[asked])
    smooth = next(kernel for kernel, _ in weighed if kernel.length is not None)
    other, _ = GaussianProcess(smooth, inputs[seen], errors[seen]).predict(inputs[asked])
    assert np.std(mean - errors[asked]) < 0.4 * np.std(other - errors[asked])


def test_an_unusual_kernel_needs_more_evidence_by_each_factor_of_e() -> None:
    inputs = some_inputs(np.random.default_rng(8), 5)
    e = float(np.e)
    usual = Kernel(0.3, 1.0, 0.2)
    for kernel, cost in (
        *((Kernel(0.3 * e, 1.0, 0.2), 0.25), (Kernel(0.3 / e**2, 1.0, 0.2), 0.5)),
        *((Kernel(0.3, e, 0.2), 0.25), (Kernel(0.3, 1 / e, 0.2), 0.25)),
        *((Kernel(0.3, 1.0, 0.2 * e), 0.5), (Kernel(0.3, 1.0, 0.2 / e), 0.5)),
    ):
        scores = [
            weigh(inputs, np.ones(5), (kernel.amplitude,), (kernel.length,), (kernel.noise,), prior)[0][1]
            for prior in (kernel, usual)
        ]
        assert scores[0] - scores[1] == pytest.approx(cost)


def test_a_kernel_by_knobs_costs_one_and_the_evident_ones_come_first() -> None:
    inputs, _ = with_knobs(np.random.default_rng(9), 6)
    usual = Kernel(0.3, 1.0, 0.2)
    by_knobs, smooth = (
        weigh(inputs, np.ones(6), (0.3,), (None,), (0.2,), prior)[0][1] for prior in (Kernel(0.3, None, 0.2), usual)
    )
    assert by_knobs == pytest.approx(smooth), "its cost does not depend on the usual length"
    free = weigh(inputs, np.ones(6), (0.3,), (1.0,), (0.2,), usual)[0][1]
    dear = weigh(inputs, np.ones(6), (0.3,), (1.0,), (0.2,), Kernel(0.3, None, 0.2))[0][1]
    assert free - dear == pytest.approx(1.0)
    scores = [score for _, score in weigh(inputs, np.ones(6), (0.1, 0.3), (0.5, None), (0.2, 0.4), usual)]
    assert scores == sorted(scores, reverse=True) and len(scores) == 8


def test_a_root_of_like_rows_is_the_covariances_but_for_a_little() -> None:
    covariance = np.array([[2.0, 2.0, 0.5], [2.0, 2.0, 0.5], [0.5, 0.5, 1.0]])
    root = root_of(covariance)
    assert np.allclose(root, np.tril(root)) and np.abs(root @ root.T - covariance).max() <= 2e-8
    broken = covariance - 1e-5 * np.eye(3)  # not a covariance by its last bits
    assert np.abs(root_of(broken) @ root_of(broken).T - broken).max() < 2e-4


def test_without_measurements_the_prior_is_predicted() -> None:
    inputs = some_inputs(np.random.default_rng(10), 4)
    none = GaussianProcess(Kernel(0.5, 1.0, 0.1), inputs[np.arange(0)], np.zeros(0))
    mean, deviation = none.predict(inputs)
    assert np.array_equal(mean, np.zeros(4))
    assert deviation == pytest.approx(np.sqrt(0.25 + (inputs.linear**2).sum(axis=1)))
