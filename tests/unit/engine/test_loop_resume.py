"""The loop: stopped, paused or broken off at any instant, and resumed to the same records."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue

import pytest

from hilt.engine.errors import RunMismatchError
from hilt.engine.events import EngineCommand, Event, RunProgress, StateChanged, TrialRecorded
from hilt.engine.run_control import Control
from hilt.measure import Request
from hilt.store import RunState, Trial
from hilt.trial import Result
from hilt.vta.program import Program

from .loop_bench import (
    BUDGET,
    Bench,
    GreedyTuner,
    PlainTask,
    WaitingTuner,
    by_configuration,
)
from .table import TableMeasurer


@pytest.mark.parametrize("instant", range(1, 11))
def test_stopped_after_any_trial_and_resumed_it_gives_the_same_records(
    bench: Bench, undisturbed: list[Trial], instant: int
) -> None:
    control = Control()
    measurer = TableMeasurer(by_configuration)

    def stop(request: Request) -> None:
        if len(measurer.keys) + 1 == instant:
            control.obey(EngineCommand.STOP)

    measurer.before = stop
    assert not bench.session(measurer, control=control)
    before = bench.trials
    assert {each.ordinal for each in before} < set(range(BUDGET))
    second = TableMeasurer(by_configuration)
    task = PlainTask()
    assert bench.session(second, task=task)
    assert bench.trials == undisturbed
    measured = {int(key.split("/")[1]) for key in second.keys}
    assert not measured & {each.ordinal for each in before}  # only missing trials were measured
    assert sorted(task.lowered) == sorted(
        each.index for each in undisturbed if each.ordinal not in {earlier.ordinal for earlier in before}
    )


@pytest.mark.parametrize("instant", range(0, 16, 2))
def test_broken_off_between_result_and_record_it_gives_the_same_records(
    bench: Bench, undisturbed: list[Trial], instant: int
) -> None:
    class PowerCut(BaseException):
        pass

    seen: list[Request] = []

    def cut(request: Request) -> Result:
        seen.append(request)
        if len(seen) == instant + 1:
            raise PowerCut
        return by_configuration(request)

    with pytest.raises(PowerCut):
        bench.session(TableMeasurer(cut))
    assert bench.session()
    assert bench.trials == undisturbed


def test_another_tuner_is_noticed_with_both_configurations(bench: Bench) -> None:
    control = Control()
    assert not bench.session(
        TableMeasurer(by_configuration, lambda _: control.obey(EngineCommand.STOP)), control=control
    )
    first = bench.trials[0].index
    other = GreedyTuner(seed=2).ask(1)[0]
    assert first != other
    with pytest.raises(
        RunMismatchError, match=f"^run aaaaaaaa: trial 0 was of configuration {first}.* asks for {other} now"
    ):
        bench.session(tuner=GreedyTuner(seed=2))


def test_a_run_of_a_waiting_tuner_stopped_after_any_trial_resumes_to_the_same_records(tmp_path: Path) -> None:
    whole = Bench(tmp_path / "whole.db")
    whole.session(tuner=WaitingTuner())
    for stopped_after in range(1, BUDGET, 3):
        parts = Bench(tmp_path / f"parts{stopped_after}.db")
        control = Control()

        def stop(event: Event, control: Control = control, after: int = stopped_after) -> None:
            if isinstance(event, RunProgress) and event.trials >= after:
                control.obey(EngineCommand.STOP)

        parts.session(tuner=WaitingTuner(), control=control, publish=stop)
        assert parts.session(tuner=WaitingTuner())
        assert [trial.index for trial in parts.trials] == [trial.index for trial in whole.trials]
        parts.store.close()
    whole.store.close()


def test_pause_leaves_the_board_idle_until_resumed(bench: Bench, undisturbed: list[Trial]) -> None:
    control = Control()
    events: Queue[Event] = Queue()
    measurer = TableMeasurer(by_configuration)

    def pause(request: Request) -> None:
        if len(measurer.keys) == 4:
            control.obey(EngineCommand.PAUSE)

    measurer.before = pause
    running = threading.Thread(
        target=bench.session, args=(measurer,), kwargs={"control": control, "publish": events.put}, daemon=True
    )
    running.start()
    wait_for(events, lambda event: isinstance(event, StateChanged) and event.state is RunState.PAUSED)
    measured = len(measurer.keys)
    assert bench.run.state is RunState.PAUSED
    assert 5 <= measured < BUDGET / 2
    with pytest.raises(TimeoutError):
        wait_for(events, lambda event: isinstance(event, TrialRecorded) and event.trial.outcome != "rejected", 0.2)
    assert len(measurer.keys) == measured
    measurer.before = lambda request: None
    control.obey(EngineCommand.RESUME)
    wait_for(events, lambda event: isinstance(event, StateChanged) and event.state is RunState.RUNNING)
    running.join(120)
    assert bench.trials == undisturbed


def test_a_stop_ends_a_pause_and_the_run_does_not_go_on(bench: Bench) -> None:
    control, measurer = Control(), TableMeasurer(by_configuration)
    control.obey(EngineCommand.PAUSE)

    def stop_when_paused(event: Event) -> None:
        bench.events.append(event)
        if isinstance(event, StateChanged):
            control.obey(EngineCommand.STOP)

    assert not bench.session(measurer, control=control, publish=stop_when_paused)
    states = [(event.state, event.detail) for event in bench.events if isinstance(event, StateChanged)]
    assert states == [(RunState.PAUSED, "the board is idle")] and measurer.keys == []


def test_the_progress_of_earlier_sessions_comes_first(bench: Bench) -> None:
    bench.session()
    bench.events.clear()
    bench.session()
    assert isinstance(bench.events[0], RunProgress) and bench.events[0].trials == BUDGET
    assert not [event for event in bench.events if isinstance(event, TrialRecorded)]


def test_a_stop_is_heard_between_two_programs_that_are_lowered(bench: Bench) -> None:
    control = Control()

    class Stopping(PlainTask):
        def lower(self, index: int) -> Program:
            if len(self.lowered) == 1:
                control.obey(EngineCommand.STOP)
            return super().lower(index)

    task = Stopping()
    assert not bench.session(control=control, task=task)
    assert len(task.lowered) == 2


def wait_for(events: Queue[Event], wanted: Callable[[Event], bool], seconds: float = 120) -> Event:
    while True:
        try:
            event = events.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if wanted(event):
            return event
