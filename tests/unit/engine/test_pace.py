"""The time that is left: from the pace of measured trials and the tuner's stop rule, not from the opening."""

from __future__ import annotations

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
    for now in (300.0, 302.0, 304.0):
        assert pace.seconds_per_trial is None
        clock.now = now
        pace.add(measured=True)
    assert pace.seconds_per_trial == 2.0
    for _ in range(3):
        pace.add(measured=False)
    assert pace.seconds_per_trial == 1.0, "half of the trials cost nothing"
    pace.pause_ended()
    assert pace.seconds_per_trial is None


def test_the_stop_rule_shortens_the_time_left() -> None:
    clock = Clock()
    budget = run("a" * 32, budget=64, tuner_options={"stop_at": 0.99})
    statistics = RunStatistics(RunSummary(budget, 0, 0, None), {}, clock)
    for ordinal in range(8):
        clock.now += 1.0
        statistics.add(Trial(ordinal, ordinal, {}, Outcome.TIMEOUT))
    assert statistics.progress().seconds_left == 56.0
    statistics.confident(4, 0.0)
    assert statistics.progress().seconds_left == 56.0, "one figure says nothing of its growth"
    statistics.confident(8, 0.9)
    assert statistics.progress().seconds_left == pytest.approx(4.0), "the doubt falls tenfold in four trials"
    statistics.confident(12, 0.995)
    assert statistics.progress().seconds_left == pytest.approx(4.0)
    assert statistics.progress().trials_per_second == 1.0


def test_a_pause_is_no_part_of_the_pace() -> None:
    clock = Clock()
    statistics = RunStatistics(RunSummary(run("a" * 32, budget=16), 0, 0, None), {}, clock)
    for ordinal in range(8):
        clock.now += 1.0 if ordinal != 4 else 3600.0
        if ordinal == 4:
            statistics.pause_ended()
        statistics.add(Trial(ordinal, ordinal, {}, Outcome.TIMEOUT))
    assert statistics.progress().seconds_left == 8.0


@pytest.mark.parametrize("stop_at", [None, 0, 1.0, 2.0])
def test_a_tuner_without_a_stop_rule_uses_its_budget(stop_at: float | None) -> None:
    forecast = StopForecast(stop_at)
    forecast.add(4, 0.1)
    forecast.add(8, 0.9)
    assert forecast.trials is None
