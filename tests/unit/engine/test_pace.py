"""The time that is left: from the pace of measured trials and the tuner's stop rule, not from the opening."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilt.engine.pace import Pace, StopForecast
from hilt.engine.run_statistics import RunStatistics
from hilt.store import RunSummary
from hilt.trial import Outcome, Trial
from tests.unit.store.examples import run


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_opening_the_board_is_no_part_of_the_pace() -> None:
    clock = Clock()
    pace = Pace(clock)
    clock.now = 300.0
    pace.begin()
    for ordinal in range(4):
        assert pace.seconds_per_trial is None and pace.seconds_for(8) is None
        clock.now += 2.0
        pace.add(ordinal, measured=True)
    assert pace.seconds_per_trial == 2.0 and pace.seconds_for(8) == 8.0
    for ordinal in range(4, 8):
        pace.add(ordinal, measured=False)
    assert pace.seconds_per_trial == 1.0, "half of the trials cost nothing"


def test_a_wait_of_the_board_is_no_part_of_its_pace() -> None:
    """The board waits for a tuner that thinks for a minute, and for a pause."""
    clock = Clock()
    pace = Pace(clock)
    for ordinal in range(8):
        clock.now += 60.0
        pace.begin()
        clock.now += 1.0
        pace.add(ordinal, measured=True)
    assert pace.seconds_for(16) == 8.0


def test_a_tuner_that_is_slower_than_the_board_sets_the_pace() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.begin()
    for ordinal in range(8):
        clock.now += 1.0
        pace.add(ordinal, measured=True)
    pace.told(8, 40.0)
    assert pace.seconds_for(24) == 8 * 5.0, "after the last eight it chooses nothing"
    assert pace.seconds_per_trial == 5.0
    clock.now += 10.0
    assert pace.seconds_for(24) == 8 * 5.0 - 10.0, "it has thought for ten seconds of them"


def test_long_programs_that_wait_for_the_board_are_expected_to_take_long() -> None:
    clock = Clock()
    pace = Pace(clock)
    lengths = {0: 1e6, 1: 2e6, 2: 1e6, 3: 3e6, 4: 20e6, 5: 1e6}
    pace.lowered(6, lengths)
    pace.begin()
    for ordinal in range(4):
        clock.now += 0.5 + lengths[ordinal] / 1e6
        pace.add(ordinal, measured=True)
    left = pace.seconds_for(6)
    assert left is not None and 22.0 / 1.5 < left <= 22.0


def test_one_long_program_among_equals_does_not_tilt_the_pace() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.lowered(6, {ordinal: 1000.0 + ordinal for ordinal in range(6)})
    pace.begin()
    for seconds in (1.0, 1.1, 0.9, 1.2):
        clock.now += seconds
        pace.add(len(pace._durations), measured=True)
    assert pace.seconds_for(6) == pytest.approx(2 * 1.05, rel=0.01), "lengths that hardly differ explain nothing"


def test_rejected_trials_are_recorded_before_their_batch_is_measured() -> None:
    """A batch of eight has four trials that are rejected at once and four that are measured in turn."""
    clock = Clock()
    pace = Pace(clock)
    pace.begin()
    for ordinal in (3, 5, 6, 7):
        pace.add(ordinal, measured=False)
    for ordinal in (8, 9, 12, 13, 15):  # of the next batch, which is asked for meanwhile
        pace.add(ordinal, measured=False)
    for ordinal in (0, 1, 2, 4):
        clock.now += 1.0
        pace.add(ordinal, measured=True)
    assert pace.asked == 16
    assert pace.seconds_for(16) == 3.0, "10, 11 and 14 wait for the board"
    assert pace.seconds_for(32) == 3.0 + 16 * 7 / 16


def test_the_stop_rule_shortens_the_time_left() -> None:
    clock = Clock()
    budget = run("a" * 32, budget=64, tuner_options={"stop_at": 0.99})
    statistics = RunStatistics(RunSummary(budget, 0, 0, None), {}, clock)
    statistics.measuring()
    for ordinal in range(8):
        clock.now += 1.0
        statistics.add(Trial(ordinal, ordinal, {}, Outcome.TIMEOUT))
    assert statistics.progress().seconds_left is None, "the tuner has not been seen at work"
    statistics.told(8, 0.0)
    assert statistics.progress().seconds_left == 36.0, "midway between trials 24 and 64"
    statistics.confident(4, 0.0)
    assert statistics.progress().seconds_left == 56.0, "the doubt does not fall"
    statistics.confident(8, 0.9)
    assert statistics.progress().seconds_left == pytest.approx(4.0), "the doubt falls tenfold in four trials"
    statistics.confident(8, 0.995)
    assert statistics.progress().seconds_left == 0.0
    assert statistics.progress().trials_per_second == 1.0


def test_a_pause_is_no_part_of_the_pace() -> None:
    clock = Clock()
    statistics = RunStatistics(RunSummary(run("a" * 32, budget=16), 0, 0, None), {}, clock)
    statistics.measuring()
    for ordinal in range(8):
        clock.now += 1.0 if ordinal != 4 else 3600.0
        if ordinal == 4:
            statistics.pause_ended()
        statistics.add(Trial(ordinal, ordinal, {}, Outcome.TIMEOUT))
    statistics.told(8, 0.0)
    assert statistics.progress().seconds_left == 8.0


def test_the_first_figure_of_the_confidence_tells_the_end() -> None:
    forecast = StopForecast(0.99)
    assert forecast.end(16, 8, 64) == (32 + 64) / 2
    forecast.add(8, 0.9)
    assert forecast.end(8, 8, 64) == pytest.approx(16), (
        "from no confidence to 0.9 in eight trials, to 0.99 in eight more"
    )
    forecast.add(16, 0.9)
    assert forecast.end(16, 8, 64) == pytest.approx(32), "and slower since"


def measured(pace: Pace, clock: Clock, seconds: list[float], of: str = "", first: int = 0) -> None:
    pace.begin()
    for ordinal, took in enumerate(seconds, first):
        clock.now += took
        pace.add(ordinal, measured=True, of=of)


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        ([3.0, 5.0, 7.0, 9.0], 6 + 2 * 1.25 / (1.25 + 0.625**2) * 7.5),  # a slope of 2, trusted in part
        ([9.0, 7.0, 5.0, 3.0], 6.0),  # a longer program takes no less
        ([0.0, 0.0, 0.0, 10.0], 10.0),  # the constant is not below 0: 2.5 s for a length of 2.5
        ([4.0, 4.0, 4.0, 4.0], 4.0),
        ([0.2, 0.0, 0.4, 0.2], 0.2 + 0.05 / (1.25 + 0.625**2) * 7.5),
    ],
)
def test_a_program_takes_a_constant_and_a_part_by_its_length(seconds: list[float], left: float) -> None:
    """Lengths of 1 to 4 were measured, one of 10 waits."""
    clock = Clock()
    pace = Pace(clock)
    pace.lowered(5, dict(enumerate([1.0, 2.0, 3.0, 4.0, 10.0])))
    measured(pace, clock, seconds)
    assert pace.seconds_for(5) == pytest.approx(left)


def test_programs_without_a_length_take_the_mean() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.lowered(6, dict.fromkeys(range(6), 0.0))
    measured(pace, clock, [1.0, 2.0, 3.0, 6.0])
    assert pace.seconds_for(6) == 2 * 3.0


def test_programs_that_are_not_asked_for_yet_have_the_mean_length() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.lowered(4, {ordinal: ordinal + 1.0 for ordinal in range(4)})
    measured(pace, clock, [3.0, 5.0, 7.0, 9.0])
    assert pace.seconds_for(7) == pytest.approx(3 * 6.0)
    assert pace.seconds_for(4) == 0.0 and pace.seconds_for(2) == 0.0


def test_the_pace_is_that_of_the_last_64_trials() -> None:
    clock = Clock()
    pace = Pace(clock)
    measured(pace, clock, [100.0] * 2 + [1.0] * 63)
    assert pace.seconds_per_trial == (100.0 + 63) / 64
    measured(pace, clock, [1.0], first=65)
    assert pace.seconds_per_trial == 1.0


def test_layers_count_their_trials_apart() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.lowered(8, {7: 4.0}, of="a")
    pace.lowered(4, {3: 2.0}, of="b")
    pace.lowered(6, {}, of="a")
    assert pace.asked == 8 + 4
    measured(pace, clock, [1.0] * 8, of="a")
    pace.add(9, measured=False, of="b")
    assert pace.asked == 8 + 10
    assert pace.seconds_for(18) == pytest.approx(9.0), "nine of b's ten wait"


def test_trials_of_earlier_sessions_are_recorded_and_tell_how_many_are_rejected() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.add_earlier(0, 0)
    assert pace.asked == 0
    pace.add_earlier(12, 6)
    assert pace.asked == 12
    measured(pace, clock, [2.0] * 4, first=12)
    assert pace.asked == 16
    assert pace.seconds_per_trial == pytest.approx(2.0 * 10 / 16)
    assert pace.seconds_for(32) == pytest.approx(2.0 * 10)


def test_the_board_counts_where_it_is_slower_than_the_tuner() -> None:
    clock = Clock()
    pace = Pace(clock)
    measured(pace, clock, [4.0] * 8)
    pace.told(4, 6.0)
    pace.told(8, 10.0)
    assert pace.seconds_per_trial == 4.0
    assert pace.seconds_for(16) == 8 * 4.0, "16 s for 8 trials, and four that it need not choose any more"
    pace.told(8, 100.0)
    assert pace.seconds_for(16) == 8 * 116.0 / 8


def test_before_any_confidence_the_end_is_midway_to_the_earliest_stop() -> None:
    forecast = StopForecast(0.5)
    for confidence in (None, 1.0, -0.1):
        forecast.add(8, confidence)
    assert forecast.trials is None
    assert forecast.end(9, 8, 64) == (32 + 64) / 2, "the second batch is on the board, and two more were asked for"
    assert forecast.end(56, 8, 64) == 64


def test_the_end_is_neither_past_the_budget_nor_before_the_trials_that_were_asked() -> None:
    forecast = StopForecast(0.75)
    forecast.add(8, 0.5)
    assert forecast.trials == pytest.approx(16), "the doubt halves in eight trials"
    assert forecast.end(8, 8, 64) == pytest.approx(16) and forecast.end(24, 8, 64) == 24
    assert forecast.end(8, 8, 12) == 12
    for confidence in (0.75, 0.875):
        forecast.add(16, confidence)
        assert forecast.trials == 16
    forecast.add(24, 0.0)
    assert forecast.trials is None and forecast.end(24, 8, 64) == 64
    forecast.add(32, 0.5)
    assert forecast.trials == pytest.approx(40), "it falls anew, from trial 24"


@pytest.mark.parametrize("stop_at", [None, 0, 1.0, 2.0])
def test_a_tuner_without_a_stop_rule_uses_its_budget(stop_at: float | None) -> None:
    forecast = StopForecast(stop_at)
    forecast.add(4, 0.1)
    forecast.add(8, 0.9)
    assert forecast.trials is None and forecast.end(8, 8, 64) == 64


RECORDED = json.loads(Path(__file__).with_name("recorded_runs.json").read_text(encoding="utf-8"))
"""Runs on virtual:pynq on a busy machine: each call of the statistics with its time, by record_pace.py.

Those that are `derived` were recorded by their trials and confidences alone. The tuner's time is that from the last
result of a batch, or its last answer, to the confidence; programs have no lengths.
"""


def first_estimate(recorded: dict[str, Any]) -> tuple[float, float]:
    """Return the first seconds left that are stated, and the truth at that moment."""
    clock = Clock()
    options = {} if recorded["stop_at"] is None else {"stop_at": recorded["stop_at"]}
    settings = run("a" * 32, budget=recorded["budget"], batch=recorded["batch"], tuner_options=options)
    statistics = RunStatistics(RunSummary(settings, 0, 0, None), {}, clock)
    for at, method, *values in recorded["calls"]:
        clock.now = at
        if method == "add":
            ordinal, outcome = values
            statistics.add(Trial(ordinal, ordinal, {}, Outcome(outcome)))
        elif method == "lowered":
            asked, lengths = values
            statistics.lowered(asked, {int(ordinal): length for ordinal, length in lengths.items()})
        else:
            getattr(statistics, method)(*values)
        left = statistics.progress().seconds_left
        if left is not None and method == "add":  # progress is published with each trial
            return left, recorded["finished"] - at
    raise AssertionError("no estimate was stated")


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["settings"])
def test_the_first_estimate_is_within_a_factor_of_two(recorded: dict[str, Any]) -> None:
    left, truth = first_estimate(recorded)
    assert truth / 2 <= left <= 2 * truth
