"""The loop: the order of its calls, records before events, groups, and the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from hilt.engine.events import Event, RunProgress, TrialRecorded, TunerUpdated
from hilt.engine.run_control import Control
from hilt.measure import Report, Request
from hilt.store import Trial
from hilt.trial import Outcome
from hilt.tune import Feedback

from .loop_bench import (
    BUDGET,
    UUID,
    AssessingTuner,
    Bench,
    GreedyTuner,
    WaitingTuner,
    by_configuration,
)
from .table import ELEMENTS, TableMeasurer


def test_a_batch_is_asked_for_while_the_one_before_is_on_the_board(bench: Bench) -> None:
    tuner = GreedyTuner()
    assert bench.session(tuner=tuner)
    assert tuner.calls == ["ask 4", *["ask 4", "tell 4"] * 4, "ask 3", "tell 4", "tell 3"]
    assert [each.index for each in tuner.told] == [each.index for each in bench.trials]
    assert [(each.outcome, each.microseconds) for each in tuner.told] == [
        (each.outcome, each.microseconds) for each in bench.trials
    ]


def test_the_order_of_calls_does_not_depend_on_the_board(bench: Bench, undisturbed: list[Trial]) -> None:
    class Backwards(TableMeasurer):
        def measure(self, requests: Sequence[Request], report: Report) -> None:
            super().measure(list(reversed(requests)), report)

    assert bench.session(Backwards(by_configuration))
    assert bench.trials == undisturbed


def test_events_are_on_disk_before_they_are_published(bench: Bench) -> None:
    def on_disk(ordinal: int) -> bool:
        # A reader of its own each time: two threads that share one see the open snapshot of either.
        with closing(sqlite3.connect(bench.store.path)) as reader:
            return bool(reader.execute("SELECT 1 FROM trials WHERE ordinal = ?", (ordinal,)).fetchall())

    class Suspicious(GreedyTuner):
        def tell(self, feedback: Sequence[Feedback]) -> None:
            assert all(on_disk(len(self.told) + place) for place in range(len(feedback)))
            super().tell(feedback)

    heard = []

    def publish(event: Event) -> None:
        if isinstance(event, TrialRecorded):
            assert on_disk(event.trial.ordinal)
            heard.append(event.trial.ordinal)

    bench.session(tuner=Suspicious(), publish=publish)
    assert sorted(heard) == list(range(BUDGET))


def test_a_rejected_configuration_never_travels(bench: Bench) -> None:
    measurer = TableMeasurer(by_configuration)
    bench.session(measurer)
    rejected = {each.ordinal for each in bench.trials if each.outcome is Outcome.REJECTED}
    assert rejected == {each.ordinal for each in bench.trials if each.index % 3 == 0}
    assert {int(key.split("/")[1]) for key in measurer.keys} == set(range(BUDGET)) - rejected
    assert {(bench.trials[each].reason, bench.trials[each].attempt) for each in rejected} == {("inp_overflow", 0)}


def test_the_last_progress_agrees_with_the_store(bench: Bench) -> None:
    bench.session()
    last = [event for event in bench.events if isinstance(event, RunProgress)][-1]
    best = bench.store.best(UUID)
    assert best is not None
    assert (last.trials, last.budget) == (BUDGET, BUDGET)
    assert last.counts == bench.store.counts(UUID)
    assert last.valid == bench.store.summary(UUID).valid
    assert (last.best_number, last.best_cycles, last.best_microseconds) == (
        best.ordinal,
        best.cycles,
        best.microseconds,
    )
    assert last.best_gops == pytest.approx(2 * bench.run.macs / best.microseconds / 1000)


def test_a_failed_trial_is_recorded_with_the_elements_that_had_to_be_compared(bench: Bench) -> None:
    assert bench.session()
    by_outcome = {trial.outcome: trial.output_elements for trial in bench.trials}
    assert by_outcome[Outcome.OK] == by_outcome[Outcome.TIMEOUT] == ELEMENTS
    assert by_outcome[Outcome.REJECTED] == 0


def test_a_slow_board_gets_two_trials_at_a_time_and_a_quick_one_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop waits for one group: it must take about two seconds, whatever a trial takes."""
    groups: dict[float, list[int]] = {0.001: [], 0.6: [], 1.0: [], 30.0: []}
    for seconds, sizes in groups.items():
        clock = [100.0]
        monkeypatch.setattr("hilt.engine.loop.monotonic", lambda clock=clock: clock[0])

        class Timed(TableMeasurer):
            def measure(self, requests: Sequence[Request], report: Report) -> None:
                sizes.append(len(requests))  # noqa: B023
                clock[0] += seconds * len(requests)  # noqa: B023
                super().measure(requests, report)

        bench = Bench(tmp_path / f"{seconds}.db", batch=8)
        assert bench.session(Timed(by_configuration))
        bench.store.close()
    assert {seconds: sizes[:2] for seconds, sizes in groups.items()} == {
        0.001: [2, 3], 0.6: [2, 3], 1.0: [2, 2], 30.0: [2, 2]
    }  # fmt: skip


def test_a_space_smaller_than_the_budget_is_used_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "small.db")
    tuner = GreedyTuner()
    tuner._left = list(range(6))
    assert bench.session(tuner=tuner)
    assert sorted(each.index for each in bench.trials) == list(range(6))
    assert tuner.calls == ["ask 4", "ask 4", "tell 4", "ask 4", "tell 2", "ask 4"]
    bench.store.close()


def test_the_tuners_assessment_is_published(bench: Bench) -> None:
    bench.session(tuner=AssessingTuner())
    told = [event for event in bench.events if isinstance(event, TunerUpdated)]
    assert len(told) == 6
    assert [event.trials for event in told] == [4, 8, 12, 16, 20, 23]
    assert {event.confidence for event in told} == {0.25}
    assert {event.assessment for event in told} == {AssessingTuner().assessment().text}
    assert "1.50 times the prediction of the timing model, +-3.0%" in told[-1].assessment


def test_an_empty_answer_is_not_final_while_a_batch_is_untold(bench: Bench) -> None:
    assert bench.session(tuner=WaitingTuner())
    assert len(bench.trials) == BUDGET


def test_an_error_of_the_tuner_stops_the_board_and_is_passed_on(bench: Bench) -> None:
    """The trials on the board are finished and recorded; the error leaves then."""

    class Broken(GreedyTuner):
        def tell(self, feedback: Sequence[Feedback]) -> None:
            raise ZeroDivisionError("a bug")

    control = Control()
    with pytest.raises(ZeroDivisionError, match="a bug"):
        bench.session(tuner=Broken(), control=control)
    assert control.stopping
    assert {each.ordinal for each in bench.trials} >= {0, 1, 2, 3}


@pytest.mark.parametrize("confirmed", [True, False])
def test_drift_is_looked_for_after_each_group_and_the_best_are_confirmed_at_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, confirmed: bool
) -> None:
    seen: list[int] = []

    class Noted:
        def __init__(self, *arguments: object) -> None:
            pass

        def look_for_drift(self, trials: int) -> None:
            seen.append(trials)

        def confirm(self) -> bool:
            return confirmed

    monkeypatch.setattr("hilt.engine.loop.Remeasurer", Noted)
    assert bench.session() is confirmed
    assert seen == sorted(seen) and seen[-1] == BUDGET and len(seen) >= 5
