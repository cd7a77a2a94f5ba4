"""The mean over choices of changed costs: a difference in one cost stays in one, and a wrong start loses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hilt.silicon import changed_costs
from hilt.silicon.changed_costs import PriorCosts, mean_costs, robust_weights

Floats = NDArray[np.float64]

COSTS, MEASUREMENTS = 6, 8
SLOPES = np.random.default_rng(4).dirichlet(np.ones(COSTS), MEASUREMENTS)
NOISE = np.random.default_rng(5).normal(0, 0.004, MEASUREMENTS)


def prior(*unknown: int) -> PriorCosts:
    return PriorCosts(np.zeros(COSTS), np.full(COSTS, 0.7), np.full(COSTS, 0.02), np.isin(range(COSTS), unknown))


def measured(truth: Floats) -> Floats:
    return np.asarray(np.log(SLOPES @ np.exp(truth)) + NOISE)


def found(truth: Floats, start: Floats, known: PriorCosts) -> tuple[float, Floats]:
    seen = measured(truth)

    def differentiate(costs: Floats) -> tuple[Floats, Floats]:
        parts = SLOPES * np.exp(costs)
        total = parts.sum(axis=1)
        return np.asarray(np.log(total) - seen), np.asarray(parts / total[:, None])

    return mean_costs(differentiate, known, start, 0.01)


def test_one_changed_cost_is_told_from_those_that_are_kept() -> None:
    truth = np.array([0.0, 0.0, 0.9, 0.0, 0.0, 0.0])
    _, costs = found(truth, np.zeros(COSTS), prior())
    assert np.abs(costs - truth).max() < 0.03


def test_an_unknown_cost_is_free_beside_kept_ones() -> None:
    truth = np.array([0.0, 0.6, 0.0, 0.0, 0.0, -0.5])
    _, costs = found(truth, np.zeros(COSTS), prior(1, 5))
    assert np.abs(costs - truth).max() < 0.05


def test_all_costs_may_differ() -> None:
    truth = np.array([0.5, -0.6, 0.9, -0.4, 0.7, 0.6])
    _, costs = found(truth, np.zeros(COSTS), prior())
    predicted = np.log(SLOPES @ np.exp(costs))
    assert np.abs(predicted - measured(truth) + NOISE).max() < 0.02


def test_a_relative_that_is_nearer_has_more_evidence() -> None:
    truth = np.array([0.0, 0.0, 0.0, 0.0, 0.8, 0.0])
    near, _ = found(truth, np.zeros(COSTS), prior())
    other = PriorCosts(np.array([0.4, -0.5, 0.3, 0.5, -0.4, 0.3]), prior().changed, prior().kept, prior().unknown)
    far, _ = found(truth, other.means, other)
    assert near > far + 3


def test_far_errors_count_little() -> None:
    weights = robust_weights(np.array([0.0, 3.0, -30.0]))
    assert weights[0] == 1 and abs(weights[1] - 0.5**0.5) < 1e-12 and weights[2] < 0.1


@pytest.mark.parametrize("unknown", [[False] * 3, [True, False, False, False], [True, True], [False]])
def test_each_number_of_changed_costs_is_equally_likely(unknown: list[bool]) -> None:
    """Costs that are not known have changed in every choice, and do not count."""
    mask = np.array(unknown)
    choices = changed_costs._choices(mask)
    chances = np.exp(changed_costs._log_probability(choices, mask))
    known = int((~mask).sum())
    assert choices[:, mask].all() and len(choices) == 2**known == len(np.unique(choices, axis=0))
    changed = choices[:, ~mask].sum(axis=1)
    of_number = [chances[changed == number] for number in range(known + 1)]
    np.testing.assert_allclose([each.sum() for each in of_number], 1 / (known + 1))
    assert all(np.allclose(each, each[0]) for each in of_number)
