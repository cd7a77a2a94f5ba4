"""Likenesses of configurations: each part of them by its definition, pair by pair."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from hilt.tune.model_guided.knobs import Knobs
from hilt.tune.problem import TuningProblem

ROWS = np.arange(7)
COLUMNS = {
    "one": np.array([1, 2, 4, 1, 2, 4, 6]),
    "two": np.array([3, 3, 5, 5, 1, 49, 1]),
    "same": np.full(7, 4),
    "three": np.array([0, 0, 0, 1, 1, 1, 1]),
}
VARY = [values for values in COLUMNS.values() if len(set(values.tolist())) > 1]


def knobs_of(columns: dict[str, np.ndarray]) -> Knobs:
    return Knobs.of(cast(TuningProblem, SimpleNamespace(columns=lambda indices: columns)), ROWS)


KNOBS = knobs_of(COLUMNS)


def parts() -> list[np.ndarray]:
    """Return the likeness (7, 7) of each part in the order of its weight: knobs, pairs, near values and alignments."""
    equal = [values[:, None] == values for values in VARY]
    found = [*equal, *(first & second for first, second in combinations(equal, 2))]
    octaves = np.log2(np.maximum(np.stack(VARY, axis=1), 1))
    squared = ((octaves[:, None] - octaves) ** 2).sum(axis=2)
    found.append(np.exp(-squared / (2 * 1.2**2)))
    products = [*VARY, *(first * second for first, second in combinations(VARY, 2))]
    alignments: list[np.ndarray] = []
    for prime in (2, 3, 5, 7):
        for product in products:
            divides = product % prime == 0
            alike = divides[:, None] == divides
            if not alike.all() and not any((alike == other).all() for other in alignments):
                alignments.append(alike)
    return [np.asarray(part, np.float64) for part in [*found, *alignments]]


def test_a_knob_of_one_value_is_left_out() -> None:
    assert KNOBS.codes.shape == (7, 3) and KNOBS.codes[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 3]
    np.testing.assert_allclose(KNOBS.scaled[:, 2], 0)
    assert KNOBS.scaled[:, 0].tolist() == np.log2(VARY[0]).tolist()
    assert set(np.unique(KNOBS.aligned)) == {-1, 1}


@pytest.mark.parametrize("place", range(len(parts())))
def test_a_part_is_where_two_rows_are_equal_or_near(place: int) -> None:
    weights = np.zeros(len(KNOBS.even_weights))
    weights[place] = 1.0
    np.testing.assert_allclose(KNOBS.alike(ROWS, ROWS[2:], weights), parts()[place][:, 2:], atol=1e-12)


def test_even_weights_give_each_kind_of_part_a_quarter() -> None:
    weights = KNOBS.even_weights
    assert len(weights) == len(parts())
    kinds = np.split(weights, [3, 6, 7])
    assert [kind.sum() for kind in kinds] == pytest.approx([0.25] * 4)
    assert all(len(set(kind.tolist())) == 1 for kind in kinds)


def test_shares_of_equal_knobs_are_products_of_indicators() -> None:
    shares = np.mean([values[:, None] == values for values in VARY], axis=0)
    np.testing.assert_allclose(KNOBS.indicators @ KNOBS.indicators.T, shares)


def test_parts_that_explain_more_weigh_more() -> None:
    rows, even = ROWS[:6], KNOBS.even_weights
    slope = np.array([1.0, -2.0, 0.5, 1.5, -1.0, 0.25])
    explained = np.array([slope @ part[:6, :6] @ slope for part in parts()])
    strengths = even * np.sqrt(np.maximum(explained, 0))
    wanted = 0.05 * even + 0.95 * strengths / strengths.sum()
    made = KNOBS.reweighted(even, rows, slope)
    np.testing.assert_allclose(made, wanted)
    assert made.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(KNOBS.reweighted(even, rows, np.zeros(6)), even)


def test_configurations_without_a_knob_that_varies_are_all_alike() -> None:
    knobs = knobs_of({"same": np.full(7, 4)})
    assert knobs.codes.shape == (7, 1) and knobs.aligned.shape == (7, 0)
    assert knobs.even_weights.tolist() == [0.5, 0.5]
    np.testing.assert_array_equal(knobs.alike(ROWS, ROWS, knobs.even_weights), np.ones((7, 7)))


@pytest.mark.parametrize(("value", "count"), [(2, 1), (3, 1), (6, 1), (1, 0)])
def test_a_prime_that_is_a_knobs_own_value_aligns_it(value: int, count: int) -> None:
    """Both primes of 6 divide the same rows: they are one alignment."""
    assert knobs_of({"one": np.array([1, value] * 3 + [1])}).aligned.shape == (7, count)
