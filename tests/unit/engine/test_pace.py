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


@pytest.mark.parametrize("stop_at", [None, 0, 1.0, 2.0])
def test_a_tuner_without_a_stop_rule_uses_its_budget(stop_at: float | None) -> None:
    forecast = StopForecast(stop_at)
    forecast.add(4, 0.1)
    forecast.add(8, 0.9)
    assert forecast.trials is None


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
