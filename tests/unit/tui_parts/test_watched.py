"""A run that is watched: its state in words, its trials by rows, its history, and a campaign's progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hilt.engine.event_log import EventLog
from hilt.engine.events import (
    BoardChanged,
    Event,
    Finished,
    Logged,
    RunProgress,
    StateChanged,
    TrialRecorded,
    TunerUpdated,
)
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, CorruptStoreError, RunState, Store, Trial, database_path
from hilt.store.campaigns import add_seconds, set_campaign_state
from hilt.store.listing import Listing
from hilt.trial import Outcome
from hilt.tui import feed, trial_list
from hilt.tui.campaign_view import CampaignView
from hilt.tui.messages import EngineGone, EventsArrived, RunLoaded
from hilt.tui.run_view import Link, RunView
from hilt.tui.trial_list import TrialList
from hilt.tui.watched_run import WatchedRun
from tests.unit.store.examples import run, trial

UUID = "ab12cd34" + "0" * 24
CAMPAIGN = "c" * 32
FAILED = Trial(3, 3, {}, Outcome.TIMEOUT, "late")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(database_path(tmp_path)) as opened:
        opened.create_run(run(UUID, budget=40))
        yield opened


def view_of(store: Store, link: Link = Link.ATTACHED, state: RunState | None = None, detail: str = "") -> RunView:
    if state is not None:
        store.set_state(UUID, state, detail)
    return RunView.load(store, UUID, link)


RESUME = "`hilt resume ab12cd34` goes on with it"


@pytest.mark.parametrize(
    ("link", "state", "detail", "words"),
    [
        (Link.ATTACHED, RunState.RUNNING, "", "RUNNING"),
        (Link.ATTACHED, RunState.RUNNING, "opening board desk", "RUNNING: opening board desk"),
        (Link.NONE, RunState.RUNNING, "", f"INTERRUPTED (was running): {RESUME}"),
        (Link.NONE, RunState.STOPPED, "", f"STOPPED: {RESUME}"),
        (Link.NONE, RunState.FINISHED, "", "FINISHED"),
        (Link.NONE, RunState.FAILED, "no board", "FAILED: no board"),
        (Link.GONE, RunState.RUNNING, "", f"ENGINE GONE (was running): {RESUME}"),
        (Link.SILENT, RunState.PAUSED, "", "NOT ANSWERING (was paused): an engine holds the run; is its process "
                                           "stopped?"),
        (Link.SILENT, RunState.FINISHED, "", "FINISHED"),
    ],
)  # fmt: skip
def test_the_state_of_a_run_is_said_with_the_next_step(
    store: Store, link: Link, state: RunState, detail: str, words: str
) -> None:
    found = view_of(store, link, state, detail)
    assert found.state_words == words and found.short_id == "ab12cd34"
    assert found.over is (state not in (RunState.RUNNING, RunState.PAUSED))
    assert found.interrupted is (not found.over and link is not Link.ATTACHED)


@pytest.mark.parametrize(
    ("link", "text"),
    [
        (Link.ATTACHED, "no report yet"),
        (Link.SILENT, "unknown (engine not answering)"),
        (Link.NONE, "unknown (engine not running)"),
        (Link.GONE, "unknown (engine not running)"),
    ],
)
def test_a_board_that_no_event_has_named_is_unknown(store: Store, link: Link, text: str) -> None:
    assert view_of(store, link).text_without_events == text


@pytest.mark.parametrize(("state", "link"), [(RunState.RUNNING, Link.GONE), (RunState.FINISHED, Link.NONE)])
def test_an_engine_that_leaves_before_the_end_is_gone(store: Store, state: RunState, link: Link) -> None:
    found = view_of(store, state=state)
    found.engine_gone()
    assert found.link is link


def test_events_change_what_they_tell_of(store: Store) -> None:
    store.record(UUID, [trial(0, 7, 9000.0)])
    found = view_of(store)
    board, progress = BoardChanged("desk", "ready", "", 1.0), RunProgress(2, 40, {"ok": 2}, 2, 1.0)
    for event in (board, progress, StateChanged(RunState.PAUSED, "idle"), TrialRecorded(trial(0, 7, 1.0))):
        found.apply(event)
    assert found.boards == {"desk": board} and found.progress is progress
    assert (found.state, found.detail) == (RunState.PAUSED, "idle")
    assert found.best is not None and found.best.microseconds == 9000.0, "it was loaded already"
    found.apply(Finished(RunState.FINISHED, "enough", None))
    assert (found.state, found.detail) == (RunState.FINISHED, "enough")


def test_a_faster_trial_is_the_best_and_ends_the_steps_above_it(store: Store) -> None:
    found = view_of(store)
    for each in (trial(0, 7, 500.0), trial(2, 8, 300.0), trial(1, 9, 400.0), FAILED, trial(4, 5, 300.0)):
        found.apply(TrialRecorded(each))
    assert found.curve == [(0, 500.0), (1, 400.0), (2, 300.0)]
    assert found.best is not None and found.best.ordinal == 2, "of equals the first"
    assert found.points == [(0, 500.0), (2, 300.0), (1, 400.0), (4, 300.0)]
    assert list(found.recent) == [True, True, True, False, True]
    found.apply(TrialRecorded(trial(5, 6, 100.0)))
    found.apply(TrialRecorded(trial(6, 6, 250.0)))
    assert found.curve[-1] == (5, 100.0) and found.best.ordinal == 5


def test_the_latest_trials_are_loaded_oldest_first(store: Store) -> None:
    store.record(UUID, [trial(number, number, 1000.0 + number) for number in range(130)])
    found = view_of(store)
    assert [each.ordinal for each in found.trials] == list(range(2, 130)) and len(found.recent) == 64
    assert (found.progress.trials, found.curve, found.points, found.name) == (130, [], [], "resnet18.C5")


def listed(store: Store, count: int) -> TrialList:
    store.record(UUID, [trial(number, 10 * number, 1000.0 + number) for number in range(count)])
    found = TrialList(store, UUID)
    found.add([trial(count - 1, 10 * (count - 1), 999.0 + count)])
    return found


def test_rows_are_read_as_they_are_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = listed(store, 300)
    read: list[list[int]] = []
    trials_of = trial_list.trials_of
    monkeypatch.setattr(trial_list, "trials_of", lambda *asked: read.append(list(asked[2])) or trials_of(*asked))
    assert len(rows) == 300 and rows.trial(299) is not None and read == [], "the newest came by an event"
    found = rows.trial(130)
    assert found is not None and found.index == 1300 and read == [list(range(128, 256))]
    assert rows.trial(255) is not None and rows.trial(128) is not None and len(read) == 1
    rows.forget()
    rows.trial(130)
    assert len(read) == 2, "trials may have come without an event"


def test_a_trial_on_the_board_is_a_row_without_a_trial(store: Store) -> None:
    rows = listed(store, 3)
    rows.add([trial(5, 9, 1.0)])
    assert len(rows) == 6 and rows.trial(4) is None and not rows.is_unreadable(4)
    rows.add([trial(4, 8, 2.0)])
    found = rows.trial(4)
    assert found is not None and found.index == 8


def test_a_chosen_list_has_rows_of_its_own(store: Store) -> None:
    rows = listed(store, 9)
    assert (rows.row_of(8), rows.row_of(9), rows.ordinal(4)) == (8, None, 4)
    listing = Listing()
    rows.arrange(listing, [7, 2, 5])
    assert rows.listing is listing and len(rows) == 3
    assert (rows.ordinal(1), rows.row_of(5), rows.row_of(4)) == (2, 2, None)
    found = rows.trial(0)
    assert found is not None and found.ordinal == 7
    rows.arrange(Listing(), None)
    assert len(rows) == 9


def test_a_damaged_page_hides_its_own_rows_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = listed(store, 9)
    trials_of = trial_list.trials_of

    def damaged(opened: Store, uuid: str, ordinals: Any) -> Any:
        if 3 in ordinals:
            raise CorruptStoreError("a page is damaged")
        return trials_of(opened, uuid, ordinals)

    monkeypatch.setattr(trial_list, "trials_of", damaged)
    assert rows.trial(3) is None and rows.is_unreadable(3)
    assert rows.trial(2) is not None and not rows.is_unreadable(2)
    rows.forget()
    assert not rows.is_unreadable(3)


def test_only_the_newest_rows_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_list, "_MOST_KEPT", 4)
    rows = TrialList(store, UUID)
    rows.add(trial(number, number, 1.0) for number in range(9))
    assert list(rows._kept) == [5, 6, 7, 8] and len(rows) == 9


def watched(store: Store, home: Path) -> WatchedRun:
    return WatchedRun(home, store, UUID, lambda message: None)


def test_the_configuration_that_is_explained_is_the_chosen_the_best_or_the_latest(store: Store, tmp_path: Path) -> None:
    found = watched(store, tmp_path)
    assert found.explained_configuration() is None and found.short_id == "ab12cd34"
    found.take(EventsArrived((Logged("info", "too early", 1.0),)))
    assert found.arrived == 0, "nothing is taken before the store was read"
    found.take(RunLoaded(RunView.load(store, UUID, Link.ATTACHED)))
    assert found.explained_configuration() is None
    store.record(UUID, [replace(FAILED, ordinal=0, index=31), replace(FAILED, ordinal=1, index=32)])
    found.take(RunLoaded(RunView.load(store, UUID, Link.ATTACHED)))
    assert found.explained_configuration() == 32
    found.take(EventsArrived((TrialRecorded(trial(2, 77, 5.0)),)))
    assert found.explained_configuration() == 77 and len(found.trials) == 3
    found.index = 0
    assert found.explained_configuration() == 0


def test_the_boards_of_an_engine_that_is_gone_stay_known(store: Store, tmp_path: Path) -> None:
    found = watched(store, tmp_path)
    found.take(RunLoaded(RunView.load(store, UUID, Link.ATTACHED)))
    board = BoardChanged("desk", "ready", "", 1.0)
    before = time.monotonic()
    found.take(EventsArrived((board, TunerUpdated(8, 0.5, 1.0))))
    assert found.view is not None and found.view.last_event_at >= before
    assert found.tuner is not None and found.tuner.confidence == 0.5
    found.take(EngineGone())
    assert found.view.link is Link.NONE or found.view.link is Link.GONE
    for link, known in ((Link.GONE, True), (Link.SILENT, True), (Link.ATTACHED, False)):
        found.view.boards = {"desk": board}
        found.take(RunLoaded(RunView.load(store, UUID, link)))
        assert (found.view.boards == {"desk": board}) is known


def test_a_layer_has_the_lines_of_its_campaigns_boards_in_order(tmp_path: Path) -> None:
    def keep(uuid: str, *events: Event) -> None:
        publish = EventLog(RunFiles(tmp_path, uuid).event_log_path).recording(lambda event: None)
        for event in events:
            publish(event)

    own = [
        StateChanged(RunState.RUNNING, "its turn", 2.0),
        TunerUpdated(8, 0.1, 2.0),
        TunerUpdated(16, 0.2, 2.5),
    ]
    shared = [BoardChanged("desk", "recovering", "soft reset", 1.0), Logged("warning", "slow", 3.0)]
    keep(UUID, *own)
    keep(CAMPAIGN, *shared, StateChanged(RunState.RUNNING, "all of it", 1.5))
    with Store(database_path(tmp_path)) as store:
        store.create_campaign(Campaign(CAMPAIGN, "net", {"layers": []}, {}, 1.0, {"trials": 9}))
        store.create_run(run(UUID, campaign=CAMPAIGN))
        found = watched(store, tmp_path)
    assert list(found.history) == [shared[0], own[0], shared[1]]
    assert found.engine_files.directory == RunFiles(tmp_path, CAMPAIGN).directory and found.arrived == 3
    assert found.tuner is not None and found.tuner.confidence == 0.2


def test_events_come_at_once_after_a_pause_and_else_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "REPAINT_SECONDS", 0.02)
    events = [Logged("info", str(number), 0.0) for number in range(4)]

    async def act() -> list[tuple[Event, ...]]:
        told: list[tuple[Event, ...]] = []
        batches = feed._Batches(told.append)
        batches.add(events[0])
        while not told:
            await asyncio.sleep(0)
        batches.add(events[1])
        batches.add(events[2])
        await asyncio.sleep(0)
        assert len(told) == 1, "a burst is one repaint"
        while len(told) < 2:
            await asyncio.sleep(0.002)
        batches.add(events[3])
        batches.flush()
        batches.flush()
        return told

    assert asyncio.run(act()) == [(events[0],), (events[1], events[2]), (events[3],)]


def campaign(home: Path, store: Store, budget: dict[str, float], state: RunState, **changes: Any) -> CampaignView:
    found = Campaign(CAMPAIGN, "net", {"name": "net", "layers": [], "others": {}}, {}, 1.0, budget)
    store.create_campaign(found)
    set_campaign_state(store, CAMPAIGN, state, changes.pop("detail", ""))
    add_seconds(store, CAMPAIGN, changes.pop("spent", 0.0))
    return replace(CampaignView.load(store, home, found), **changes)


@pytest.mark.parametrize(
    ("changes", "state", "words"),
    [
        ({"live": True}, RunState.RUNNING, "RUNNING"),
        ({"live": True, "detail": "C5"}, RunState.RUNNING, "RUNNING: C5"),
        ({"live": True, "silent": True}, RunState.RUNNING,
         "NOT ANSWERING: an engine holds it; is its process stopped?"),
        ({"live": False}, RunState.RUNNING, "INTERRUPTED (was running): r goes on with it"),
        ({"live": False, "silent": True}, RunState.STOPPED, "STOPPED"),
        ({"stage": "placing: 3 of 9"}, RunState.FINISHED, "NETWORK placing: 3 of 9"),
    ],
)  # fmt: skip
def test_the_state_of_a_campaign_is_said_with_the_next_step(
    store: Store, tmp_path: Path, changes: dict[str, Any], state: RunState, words: str
) -> None:
    assert campaign(tmp_path, store, {"trials": 9.0}, state, **changes).state_words == words


@pytest.mark.parametrize(
    ("budget", "spent", "share", "left", "trials"),
    [
        ({"seconds": 100.0}, 25.0, 0.25, 75.0, None),
        ({"seconds": 100.0}, 125.0, 1.0, 0.0, None),
        ({"trials": 9.0}, 25.0, 0.0, None, 9),
        ({"trials": 0.0}, 25.0, 1.0, 0.0, 0),
    ],
)
def test_the_share_of_a_budget_and_what_is_left_of_it(
    store: Store, tmp_path: Path, budget: dict[str, float], spent: float, share: float, left: float | None,
    trials: int | None,
) -> None:  # fmt: skip
    found = campaign(tmp_path, store, budget, RunState.RUNNING, spent=spent)
    assert (found.share_done, found.seconds_left, found.budget_trials) == (share, left, trials)
    assert found.engine == CAMPAIGN
