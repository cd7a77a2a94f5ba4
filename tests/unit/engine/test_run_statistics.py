"""The counts, the best and the time left that a run's progress tells, trial by trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hilt.engine.pace import StopForecast
from hilt.engine.run_statistics import RunStatistics
from hilt.store import RunSummary
from hilt.trial import Outcome, Trial
from tests.unit.engine.test_pace import Clock
from tests.unit.store.examples import run, trial

RUN = run("a" * 32, budget=20, batch=4)
UNMEASURED: dict[str, Any] = {"cycles": None, "microseconds": None, "repeats": (), "verification": None}


def failed(ordinal: int, outcome: Outcome) -> Trial:
    return replace(trial(ordinal, ordinal, 1.0), outcome=outcome, **UNMEASURED)


def test_each_trial_counts_once_and_the_fastest_earliest_is_best() -> None:
    clock = Clock()
    earlier = RunSummary(RUN, 3, 1, trial(2, 77, 900.0))
    statistics = RunStatistics(earlier, {Outcome.OK: 1, Outcome.REJECTED: 2}, clock)
    first = statistics.progress()
    assert (first.trials, first.budget, first.valid, first.counts) == (3, 20, 1, {"ok": 1, "rejected": 2})
    assert (first.best_number, first.best_index, first.best_cycles, first.best_microseconds) == (2, 77, 90_000, 900.0)
    assert first.best_gops == RUN.gops(900.0) and first.best_percent_of_bound == RUN.percent_of_bound(900.0)
    assert first.elapsed_seconds == 0.0 and first.trials_per_second is None and first.seconds_left is None
    seen = [
        (failed(3, Outcome.REJECTED), 1, 2),
        (trial(4, 9, 950.0), 2, 2),
        (failed(5, Outcome.TIMEOUT), 2, 2),
        (trial(6, 5, 900.0), 3, 2),
        (trial(8, 6, 899.5), 4, 8),
        (replace(trial(9, 7, 10.0), verification=None), 4, 8),
        (trial(7, 8, 899.5), 5, 7),
    ]
    statistics.measuring()
    for place, (each, valid, best) in enumerate(seen):
        clock.now += 2.0
        statistics.add(each)
        progress = statistics.progress()
        assert (progress.trials, progress.valid, progress.best_number) == (4 + place, valid, best)
        assert progress.elapsed_seconds == clock.now and statistics.trials == 4 + place
    assert progress.counts == {"ok": 6, "rejected": 3, "timeout": 1}
    assert progress.trials_per_second == pytest.approx(1 / (14 / 6 * (1 - 3 / 10)))
    assert progress.seconds_left is None, "the tuner has heard of nothing yet"
    statistics.told(8, 4.0)
    assert statistics.progress().seconds_left == pytest.approx(14 / 6 * 10 * (1 - 3 / 10))


def test_a_run_without_a_verified_trial_has_no_best() -> None:
    progress = RunStatistics(RunSummary(RUN, 0, 0, None), {}, Clock()).progress()
    best = (progress.best_number, progress.best_index, progress.best_cycles, progress.best_microseconds)
    assert {*best, progress.best_gops, progress.best_percent_of_bound} == {None}


@pytest.mark.parametrize(("stop_at", "believed"), [(0.9, 0.9), (0.6, 0.6), (True, None), ("0.9", None), (None, None)])
def test_the_confidence_tells_the_end_where_the_tuner_stops_by_it(stop_at: object, believed: float | None) -> None:
    clock, forecast = Clock(), StopForecast(believed)
    summary = RunSummary(run("b" * 32, budget=20, batch=4, tuner_options={"stop_at": stop_at}), 0, 0, None)
    statistics = RunStatistics(summary, {}, clock)
    statistics.measuring()
    for ordinal in range(4):
        clock.now += 1.0
        statistics.add(trial(ordinal, ordinal, 5.0))
    statistics.told(4, 0.0)
    statistics.confident(4, 0.5)
    forecast.add(4, 0.5)
    assert statistics.progress().seconds_left == pytest.approx(forecast.end(4, 4, 20) - 4)
