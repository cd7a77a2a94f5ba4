"""Latencies measured again: their medians, spreads and drift, and the certainty of a winner, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hilt.store.remeasurements import (
    Confirmed,
    Purpose,
    Remeasurement,
    certainty,
    confirmations,
    is_decided,
    largest_drift,
    with_confirmations,
    with_noise,
)

from .examples import trial


def again(ordinal: int, *latencies: float, purpose: Purpose = Purpose.CONFIRMATION) -> list[Remeasurement]:
    return [Remeasurement(purpose, place, ordinal, each, "desk") for place, each in enumerate(latencies)]


def test_only_rounds_at_the_end_confirm() -> None:
    rows = [*again(3, 10.0, 14.0, 11.0), *again(5, 20.0), *again(3, 1.0, purpose=Purpose.DRIFT)]
    found = confirmations(rows)
    assert found == {3: Confirmed((10.0, 14.0, 11.0)), 5: Confirmed((20.0,))}
    assert (found[3].microseconds, found[5].microseconds) == (11.0, 20.0)
    assert found[3].spread == pytest.approx(4 / 2 / 11) and found[5].spread == 0.0
    changed = found[3].replacing(trial(3, 7, 2.0))
    assert (changed.microseconds, changed.repeats, changed.cycles) == (11.0, (10.0, 14.0, 11.0), 200)


def test_the_certainty_is_that_of_normal_medians() -> None:
    """Deviations are 10 % and 10 % of four latencies, with two degrees of freedom; the errors add as squares."""
    winner, other = Confirmed((90.0, 110.0)), Confirmed((99.0, 121.0))
    noise = math.sqrt(math.pi / 2) * math.sqrt(4 * 0.01 / 2)
    error = noise * math.hypot(1.01 * 110 / math.sqrt(2), 100 / math.sqrt(2))
    sure = 0.5 * (1 + math.erf((1.01 * 110 - 100) / error / math.sqrt(2)))
    assert certainty({7: other, 2: winner}) == pytest.approx(sure)
    assert certainty({1: winner, 2: other, 3: other}) < certainty({1: winner, 2: other})
    assert with_noise(0.5, {7: other, 2: winner}) == pytest.approx(0.5 * sure)
    assert with_noise(0.5, {}) == 0.5 and with_noise(None, {7: other}) is None


@pytest.mark.parametrize(
    ("made", "rounds", "decided"),
    [
        (0, 2, False), (1, 2, False), (2, 2, True), (3, 2, True), (0, 0, True),
        (2, None, False), (3, None, True), (31, None, True), (32, None, True), (33, None, True),
    ],
)  # fmt: skip
def test_rounds_end_by_number_or_once_the_winner_is_sure(made: int, rounds: int | None, decided: bool) -> None:
    sure = [*again(0, *[5.0] * 40), *again(1, *[9.0] * 40)]
    assert is_decided(sure, made, rounds) is decided
    shaky = [*again(0, *[5.0, 9.0] * 20), *again(1, *[5.1, 9.1] * 20)]
    assert is_decided(shaky, made, rounds) is (decided and (rounds is not None or made >= 32))


def test_later_rounds_do_not_count_and_nothing_confirmed_needs_none() -> None:
    turns = [*again(0, 5.0, 5.0, 5.0, 50.0), *again(1, 9.0, 9.0, 9.0, 1.0)]
    assert is_decided(turns, 3, None) and not is_decided(turns, 4, None)
    assert is_decided([], 3, None) and not is_decided([], 2, None)


def test_a_trial_that_was_only_lucky_is_left_out() -> None:
    rows = [*again(1, 10.0, 12.0, 11.0), *again(2, 15.0)]
    failed = replace(trial(5, 5, 1.0), microseconds=None)
    trials = [trial(0, 0, 10.9), trial(1, 1, 9.0), trial(2, 2, 9.5), trial(3, 3, 11.0), failed]
    assert [(each.ordinal, each.microseconds) for each in with_confirmations(trials, rows)] == [
        (1, 11.0),
        (2, 15.0),
        (3, 11.0),
        (5, None),
    ]
    assert with_confirmations(trials, []) == trials


def test_the_drift_is_the_furthest_from_the_first_on_the_same_board() -> None:
    drift = again(0, 100.0, 103.0, 98.0, purpose=Purpose.DRIFT)
    other = [replace(row, board="bench", microseconds=2 * row.microseconds) for row in drift[:1]]
    assert largest_drift(drift + other) == pytest.approx(0.03)
    assert largest_drift([*drift[::-1], *again(0, 500.0)]) == pytest.approx(0.03), "in the order of the rounds"
    assert largest_drift([*drift, *again(0, *[100.0] * 3, 94.0, purpose=Purpose.DRIFT)]) == pytest.approx(0.06)
    assert largest_drift([]) == largest_drift(again(0, 5.0, 9.0)) == 0.0
