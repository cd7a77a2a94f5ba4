"""The loop: the order of its calls, records before words, stopping and resuming at any instant, lost boards."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np
import pytest

from hilt.engine.errors import BoardLostError, RunMismatchError
from hilt.engine.events import EngineCommand, Event, Logged, RunProgress, StateChanged, TrialRecorded, TunerUpdated
from hilt.engine.loop import TuningLoop
from hilt.engine.run_control import Control
from hilt.engine.run_statistics import RunStatistics
from hilt.measure import Report, Request
from hilt.schedule import Rejected
from hilt.store import Run, RunState, Store, Trial
from hilt.trial import Outcome, Result, Verification
from hilt.tune import Assessment, Feedback, Stop
from hilt.vta.program import Program
from tests.unit.store.examples import run as example_run

from .table import ELEMENTS, TableMeasurer, answer

UUID = "a" * 32
BUDGET = 23
BATCH = 4
SPACE = 60


class PlainTask:
    """A task that rejects every third configuration; a program holds only the number of its configuration."""

    def __init__(self) -> None:
        self.lowered: list[int] = []

    def knobs(self, index: int) -> Mapping[str, int]:
        return {"tile_h": index}

    def lower(self, index: int) -> Program:
        self.lowered.append(index)
        if index % 3 == 0:
            raise Rejected("inp_overflow", "too large")
        uops = np.array([[index]], dtype=np.uint32)
        return Program("pynq", "A", np.zeros((1, 2), dtype=np.uint64), uops, (), 25)

    def lower_many(self, indices: Sequence[int]) -> Iterator[Program | Rejected]:
        for index in indices:
            try:
                yield self.lower(index)
            except Rejected as rejected:
                yield rejected

    def lengths(self, indices: Sequence[int]) -> Sequence[float]:
        return [1.0] * len(indices)

    def request(self, ordinal: int, key: str, program: Program) -> Request:
        return Request(ordinal, key, program, None, 0.1)  # type: ignore[arg-type]


class GreedyTuner:
    """A tuner whose requests depend on all results so far: a difference in feedback or order shows in the trials."""

    def __init__(self, seed: int = 1, calls: list[str] | None = None) -> None:
        self._state = seed
        self._left = list(range(SPACE))
        self.calls = [] if calls is None else calls
        self.told: list[Feedback] = []

    def ask(self, count: int) -> list[int]:
        self.calls.append(f"ask {count}")
        chosen = []
        for _ in range(min(count, len(self._left))):
            self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
            chosen.append(self._left.pop((self._state >> 33) % len(self._left)))
        return chosen

    def tell(self, feedback: Sequence[Feedback]) -> None:
        self.calls.append(f"tell {len(feedback)}")
        self.told += feedback
        for each in feedback:
            self._state = hash((self._state, each.index, each.outcome is Outcome.OK, each.microseconds or 0.0)) % 2**64


def by_configuration(request: Request) -> Result:
    return answer(int(request.program.uops[0, 0]))


class Bench:
    """One database, in which a run is begun and gone on with."""

    def __init__(self, path: Path, **changes: object) -> None:
        self.store = Store(path)
        self.events: list[Event] = []
        self.store.create_run(
            example_run(UUID, budget=BUDGET, batch=BATCH, space_size=SPACE, output_elements=ELEMENTS, **changes)
        )

    def session(
        self,
        measurer: TableMeasurer | None = None,
        *,
        tuner: GreedyTuner | None = None,
        control: Control | None = None,
        task: PlainTask | None = None,
        publish: Callable[[Event], None] | None = None,
    ) -> bool:
        loop = TuningLoop(
            self.run,
            tuner or GreedyTuner(),
            task or PlainTask(),
            measurer or TableMeasurer(by_configuration),
            self.store,
            control or Control(),
            publish or self.events.append,
        )
        return loop.run()

    @property
    def run(self) -> Run:
        return self.store.run(UUID)

    @property
    def trials(self) -> list[Trial]:
        return self.store.trials(UUID)


@pytest.fixture
def bench(tmp_path: Path):
    made = Bench(tmp_path / "hilt.db")
    yield made
    made.store.close()


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[Trial]:
    quiet = Bench(tmp_path / "quiet.db")
    assert quiet.session()
    trials = quiet.trials
    quiet.store.close()
    assert [each.ordinal for each in trials] == list(range(BUDGET))
    assert {each.outcome for each in trials} > {Outcome.OK, Outcome.REJECTED}
    return trials


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


def test_a_lost_board_does_not_count_against_a_configuration(bench: Bench, undisturbed: list[Trial]) -> None:
    def now_and_then(request: Request) -> Result:
        _, ordinal, attempt = request.key.split("/")
        if int(ordinal) % 5 == 1 and int(attempt) < 2:
            return Result(Outcome.BOARD_LOST, "link gone")
        return by_configuration(request)

    measurer = TableMeasurer(now_and_then)
    assert bench.session(measurer)
    assert bench.trials == undisturbed
    told = [each for each in bench.trials if each.ordinal % 5 == 1 and each.outcome in ("ok", "wrong_answer")]
    assert {each.attempt for each in told} == {2}
    assert len(measurer.keys) == len(set(measurer.keys))


@pytest.mark.parametrize("doubtful", [Outcome.CRASH, Outcome.TIMEOUT, Outcome.BUS_ERROR])
def test_a_fault_of_the_board_is_not_taken_for_the_configurations(
    bench: Bench, undisturbed: list[Trial], doubtful: Outcome
) -> None:
    """A killed worker looks like a program that crashes: a verdict counts when it was given twice."""

    def once(request: Request) -> Result:
        if request.ordinal % 4 == 2 and request.key.endswith("/0"):
            return Result(doubtful, "the worker died")
        return by_configuration(request)

    measurer = TableMeasurer(once)
    assert bench.session(measurer)
    assert bench.trials == undisturbed
    asked = {ordinal: sum(key.split("/")[1] == str(ordinal) for key in measurer.keys) for ordinal in range(BUDGET)}
    for trial in bench.trials:
        with_chaos = trial.ordinal % 4 == 2 and trial.outcome is not Outcome.REJECTED
        failed = trial.outcome in (Outcome.TIMEOUT, Outcome.BUS_ERROR)
        apart = with_chaos and trial.outcome is not doubtful
        assert asked[trial.ordinal] == (trial.outcome is not Outcome.REJECTED) * (1 + failed + apart)


def test_of_two_doubtful_verdicts_the_one_that_comes_again_counts(bench: Bench) -> None:
    """Timeout, crash, timeout: the crash may have been the board's."""
    verdicts = (Outcome.TIMEOUT, Outcome.CRASH, Outcome.TIMEOUT)

    def doubtful(request: Request) -> Result:
        return Result(verdicts[int(request.key.split("/")[2])], "no answer")

    assert bench.session(TableMeasurer(doubtful))
    assert {trial.outcome for trial in bench.trials} == {Outcome.REJECTED, Outcome.TIMEOUT}
    assert {trial.attempt for trial in bench.trials if trial.outcome is Outcome.TIMEOUT} == {2}


def test_a_failed_trial_is_recorded_with_the_elements_that_had_to_be_compared(bench: Bench) -> None:
    assert bench.session()
    by_outcome = {trial.outcome: trial.output_elements for trial in bench.trials}
    assert by_outcome[Outcome.OK] == by_outcome[Outcome.TIMEOUT] == ELEMENTS
    assert by_outcome[Outcome.REJECTED] == 0


def test_a_slow_board_gets_two_trials_at_a_time_and_a_quick_one_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop waits for one group: it must take about two seconds, whatever a trial takes."""
    groups: dict[float, list[int]] = {0.001: [], 1.0: [], 30.0: []}
    for seconds, sizes in groups.items():
        clock = [0.0]
        monkeypatch.setattr("hilt.engine.loop.monotonic", lambda clock=clock: clock[0])

        class Timed(TableMeasurer):
            def measure(self, requests: Sequence[Request], report: Report) -> None:
                sizes.append(len(requests))  # noqa: B023
                clock[0] += seconds * len(requests)  # noqa: B023
                super().measure(requests, report)

        bench = Bench(tmp_path / f"{seconds}.db")
        assert bench.session(Timed(by_configuration))
        bench.store.close()
    assert all(sizes[0] <= 2 for sizes in groups.values())
    assert max(groups[0.001]) > 2
    assert max(groups[1.0]) == max(groups[30.0]) == 2


def test_a_board_that_stays_lost_ends_the_session_and_nothing_of_it_is_recorded(
    bench: Bench, undisturbed: list[Trial]
) -> None:
    victim = next(each.ordinal for each in undisturbed if each.ordinal >= 6 and each.outcome is Outcome.OK)

    def lost(request: Request) -> Result:
        if request.ordinal == victim:
            return Result(Outcome.BOARD_LOST, "no power")
        return by_configuration(request)

    with pytest.raises(BoardLostError, match=f"lost 3 times with trial {victim} .no power.; .*`hilt resume aaaaaaaa`"):
        bench.session(TableMeasurer(lost))
    assert victim not in {each.ordinal for each in bench.trials}
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


def test_a_space_smaller_than_the_budget_is_used_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "small.db")
    tuner = GreedyTuner()
    tuner._left = list(range(6))
    assert bench.session(tuner=tuner)
    assert sorted(each.index for each in bench.trials) == list(range(6))
    assert tuner.calls == ["ask 4", "ask 4", "tell 4", "ask 4", "tell 2", "ask 4"]
    bench.store.close()


class AssessingTuner(GreedyTuner):
    """A tuner with a view of its own run."""

    def confidence(self) -> float:
        return 0.25

    def assessment(self) -> Assessment:
        return Assessment(0.25, Stop.SEARCHING, "RTL", 1.5, 0.03)


def test_the_tuners_assessment_is_published(bench: Bench) -> None:
    bench.session(tuner=AssessingTuner())
    told = [event for event in bench.events if isinstance(event, TunerUpdated)]
    assert len(told) == 6
    assert [event.trials for event in told] == [4, 8, 12, 16, 20, 23]
    assert {event.confidence for event in told} == {0.25}
    assert {event.assessment for event in told} == {AssessingTuner().assessment().text}
    assert "1.50 times the prediction of the timing model, +-3.0%" in told[-1].assessment


class WaitingTuner(GreedyTuner):
    """Asks for nothing while a batch is untold, as a tuner does whose last batch covers all that it hopes for."""

    def __init__(self) -> None:
        super().__init__()
        self._untold = 0

    def ask(self, count: int) -> list[int]:
        batch = [] if self._untold else super().ask(count)
        self._untold += bool(batch)
        return batch

    def tell(self, feedback: Sequence[Feedback]) -> None:
        super().tell(feedback)
        self._untold -= 1


def test_an_empty_answer_is_not_final_while_a_batch_is_untold(bench: Bench) -> None:
    assert bench.session(tuner=WaitingTuner())
    assert len(bench.trials) == BUDGET


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


def test_a_measurer_that_forgets_is_found_out(bench: Bench) -> None:
    class Forgetful(TableMeasurer):
        def measure(self, requests: Sequence[Request], report: Report) -> None:
            super().measure(requests[:-1], report)

    with pytest.raises(RuntimeError, match="did not answer"):
        bench.session(Forgetful(by_configuration))


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
    running.join(20)
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


def test_a_loss_is_a_warning_and_a_doubt_a_remark(bench: Bench) -> None:
    def troubled(request: Request) -> Result:
        _, ordinal, attempt = request.key.split("/")
        if ordinal == "2" and attempt == "0":
            return Result(Outcome.BOARD_LOST, "link gone")
        if ordinal == "2" and attempt == "1":
            return Result(Outcome.CRASH, "the worker died")
        return Result(Outcome.OK, "", 100, 1.0, (1.0,), Verification(ELEMENTS, 0))

    class Accepting(PlainTask):
        def lower(self, index: int) -> Program:
            return super().lower(3 * index + 1)

    assert bench.session(TableMeasurer(troubled), task=Accepting())
    assert [(event.level, event.text) for event in bench.events if isinstance(event, Logged)] == [
        ("warning", "board table:plain was lost with trial 2 (link gone); the trial is tried again"),
        ("info", "trial 2 ended as crash (the worker died); it is tried again to be sure"),
    ]
    assert bench.trials[2].attempt == 2


class NotedStatistics(RunStatistics):
    """Statistics that note the loop's calls."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.notes: list[tuple[Any, ...]] = []
        self.groups = 0
        NotedStatistics.last = self

    last: NotedStatistics

    def lowered(self, asked: int, lengths: Mapping[int, float]) -> None:
        self.notes.append(("lowered", asked, dict(lengths)))
        super().lowered(asked, lengths)

    def measuring(self) -> None:
        self.groups += 1
        super().measuring()

    def told(self, trials: int, seconds: float) -> None:
        self.notes.append(("told", trials, seconds))
        super().told(trials, seconds)

    def confident(self, trials: int, confidence: float | None) -> None:
        self.notes.append(("confident", trials, confidence))
        super().confident(trials, confidence)

    def pause_ended(self) -> None:
        self.notes.append(("pause ended",))
        super().pause_ended()


def test_the_time_left_is_told_of_lengths_groups_and_the_tuners_seconds(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer takes the tuner 4 s and a lesson 1 s. Nobody waits for the first answer alone, which is not counted."""
    clock = [0.0]
    monkeypatch.setattr("hilt.engine.loop.monotonic", lambda: clock[0])
    monkeypatch.setattr("hilt.engine.loop.RunStatistics", NotedStatistics)

    class Thinking(AssessingTuner):
        def ask(self, count: int) -> list[int]:
            clock[0] += 4.0
            return super().ask(count)

        def tell(self, feedback: Sequence[Feedback]) -> None:
            clock[0] += 1.0
            super().tell(feedback)

    class Long(PlainTask):
        def lengths(self, indices: Sequence[int]) -> Sequence[float]:
            return [1000.0 + index for index in indices]

    measured: list[int] = []

    class Counting(TableMeasurer):
        def measure(self, requests: Sequence[Request], report: Report) -> None:
            measured.append(len(requests))
            super().measure(requests, report)

    assert bench.session(Counting(by_configuration), tuner=Thinking(), task=Long())
    notes = NotedStatistics.last.notes
    told = [4, 8, 12, 16, 20, 23]
    assert [note[1:] for note in notes if note[0] == "told"] == [(trials, 5.0) for trials in told[:-1]] + [(23, 1.0)]
    assert [note[1:] for note in notes if note[0] == "confident"] == [(trials, 0.25) for trials in told]
    lowered = [note[1:] for note in notes if note[0] == "lowered" and note[2]]
    assert [asked for asked, _ in lowered] == told
    assert {ordinal: length for _, lengths in lowered for ordinal, length in lengths.items()} == {
        each.ordinal: 1000.0 + each.index for each in bench.trials if each.outcome is not Outcome.REJECTED
    }
    assert NotedStatistics.last.groups == len(measured)


def test_a_pause_is_no_part_of_the_pace(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.engine.loop.RunStatistics", NotedStatistics)
    control = Control()
    control.obey(EngineCommand.PAUSE)

    def resume(event: Event) -> None:
        if isinstance(event, StateChanged) and event.state is RunState.PAUSED:
            control.obey(EngineCommand.RESUME)

    assert bench.session(control=control, publish=resume)
    assert [note for note in NotedStatistics.last.notes if note[0] == "pause ended"] == [("pause ended",)]


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


def wait_for(events: Queue[Event], wanted: Callable[[Event], bool], seconds: float = 20) -> Event:
    while True:
        try:
            event = events.get(timeout=seconds)
        except Empty:
            raise TimeoutError from None
        if wanted(event):
            return event
