"""The view that the engine's events add up to, against the store afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hilt.engine.event_log import EventLog
from hilt.engine.events import BoardChanged, Event, Finished, Logged, StateChanged
from hilt.engine.run_files import RunFiles
from hilt.store import Purpose, Remeasurement, RunState, Store, Trial, database_path
from hilt.trial import Outcome, Verification
from hilt.tui.messages import EventsArrived, RunLoaded
from hilt.tui.run_view import Link, RunView
from hilt.tui.watched_run import WatchedRun

from ..store import examples
from .live import KNOBS, UUID, event_of, make_run

_NO_LATENCY = 9


def trial(ordinal: int, microseconds: int) -> Trial:
    if microseconds == _NO_LATENCY:
        return Trial(ordinal, ordinal, KNOBS, Outcome.REJECTED, "acc_overflow", output_elements=examples.ELEMENTS)
    latency, seen = float(microseconds), Verification(examples.ELEMENTS, 0)
    return Trial(
        ordinal,
        ordinal,
        KNOBS,
        Outcome.OK,
        "",
        100 * microseconds,
        latency,
        (latency,),
        seen,
        examples.ELEMENTS,
        "board",
    )


@settings(max_examples=40, deadline=None)
@given(
    order=st.permutations(range(9)),
    latencies=st.lists(st.integers(1, _NO_LATENCY), min_size=9, max_size=9),
    loaded=st.integers(0, 9),
    again=st.integers(0, 3),
)
def test_trials_in_any_order_agree_with_the_store(
    order: list[int], latencies: list[int], loaded: int, again: int
) -> None:
    """Trials in any order give the store's view.

    Trials of several boards are not answered in the order of their ordinals, and some are both received as events
    and loaded.
    """
    trials = [trial(ordinal, latencies[ordinal]) for ordinal in order]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        make_run(home)
        with Store(database_path(home)) as store:
            store.record(UUID, trials[:loaded])
            view = RunView.load(store, UUID, Link.ATTACHED)
            view.curve = store.improvements(UUID)
            store.record(UUID, trials[loaded:])
            for each in trials[max(loaded - again, 0) :]:
                view.apply(event_of(each))
            assert view.curve == store.improvements(UUID)
            best = store.best(UUID)
    assert (view.best.ordinal if view.best else None) == (best.ordinal if best else None)
    assert sum(view.recent) == sum(each.verified for each in trials) and len(view.recent) == len(trials)


def test_a_long_run_that_is_watched_keeps_few_rows_in_memory(tmp_path: Path) -> None:
    make_run(tmp_path)
    with Store(database_path(tmp_path)) as store:
        trials = [trial(ordinal, 5) for ordinal in range(9_000)]
        store.record(UUID, trials)
        rows = WatchedRun(tmp_path, store, UUID, lambda message: None).trials
        for each in trials:
            rows.add([each])
        assert len(rows._kept) <= 8192 and len(rows) == 9_000
        assert [rows.trial(row).ordinal for row in (0, 5_000, 8_999)] == [0, 5_000, 8_999]


def test_who_watches_has_the_lines_that_one_who_comes_later_reads(tmp_path: Path) -> None:
    """Two sessions that ended in the same words, groups of trials by the thousand, and connections that were lost."""
    make_run(tmp_path)
    first, second = (
        [
            StateChanged(RunState.RUNNING, "opening board desk"),
            BoardChanged("desk", "ready", "programmed in 0.4 s", at),
            StateChanged(RunState.RUNNING),
            Logged("warning", "desk: reconnect took 0.8 s, canary well", at),
        ]
        for at in (1.0, 2.0)
    )
    trials = [BoardChanged("desk", state, "", 3.0 + at) for at in range(3_000) for state in ("running", "ready")]
    pause = StateChanged(RunState.PAUSED, "the board is idle")
    end = Finished(RunState.STOPPED, "`hilt resume` goes on")
    told: list[Event] = []
    tell = EventLog(RunFiles(tmp_path, UUID).event_log_path).recording(told.append)
    with Store(database_path(tmp_path)) as store:
        watch = WatchedRun(tmp_path, store, UUID, lambda message: None)
        watch.take(RunLoaded(RunView.load(store, UUID, Link.ATTACHED)))
        for event in [*first, *trials, pause, end, *second, *trials, pause]:
            tell(event)
        watch.take(EventsArrived((*told, pause, told[-2], end)))  # attached again
        tell(end)
        later = WatchedRun(tmp_path, store, UUID, lambda message: None)
    assert list(watch.history) == list(later.history) == [*first, pause, end, *second, pause, end]


def test_the_best_of_a_finished_run_is_the_confirmed_one(tmp_path: Path) -> None:
    make_run(tmp_path)
    with Store(database_path(tmp_path)) as store:
        store.record(UUID, [trial(0, 5), trial(1, 6)])
        watched = WatchedRun(tmp_path, store, UUID, lambda message: None)
        watched.take(RunLoaded(RunView.load(store, UUID, Link.ATTACHED)))
        for ordinal, latency in ((0, 9.0), (1, 7.0)):
            store.record_remeasurement(UUID, Remeasurement(Purpose.CONFIRMATION, 0, ordinal, latency, "desk"))
        watched.take(EventsArrived([Finished(RunState.FINISHED, "", None)]))
        assert watched.view is not None and watched.view.best is not None
        assert (watched.view.best.ordinal, watched.view.best.microseconds) == (1, 7.0)
