"""The run screen against a real store and a real engine socket."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from textual.message import Message
from textual.pilot import Pilot

from hilt.engine.events import EngineCommand, FailureCause, Finished, Logged, StateChanged
from hilt.store import RunState, Store, database_path
from hilt.tui import feed
from hilt.tui.messages import EventsArrived, RunLoaded
from hilt.tui.run_view import Link
from hilt.tui.screens import run_screen as run_screen_module
from hilt.tui.screens.log_screen import LogScreen
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.widgets import run_panels
from hilt.tui.widgets.trials_table import TrialsTable

from .live import UUID, app_of, live_engine, make_run, run_screen, text_of, trial, type_in, until

SIZES = [(80, 24), (200, 60)]


def attached(pilot) -> bool:
    view = run_screen(pilot).view
    return view is not None and view.link is Link.ATTACHED and bool(view.boards)


@pytest.mark.parametrize("size", SIZES)
async def test_a_live_run_shows_curve_trials_board_outcomes_and_progress(tmp_path: Path, size: tuple[int, int]) -> None:
    make_run(tmp_path, trials=10)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.record(*(trial(ordinal) for ordinal in range(10, 30)))
            await until(pilot, lambda: run_screen(pilot).view.progress.trials == 30)
            for words in (
                "3f2a91bc  resnet18.C5 on virtual:pynq  RUNNING",
                "30 of 1000 trials",
                "tuner random, seed 1; 20 valid (67%)",
                "of a space of 2,304",
                f"best {trial(28).microseconds:,.1f} µs, {trial(28).cycles:,} cycles (trial 28)",
                "GOP/s",
                "% of the bound",
                "ok\N{NO-BREAK SPACE}20\N{NO-BREAK SPACE}(67%)",
                "rejected\N{NO-BREAK SPACE}10\N{NO-BREAK SPACE}(33%)",
                "virtual:pynq: running since",
                "acc_overflow",
                "h=7 w=14 ci=2",
                "30 recorded, by trial",
                "latency, µs",
                "Pause",
            ):
                await until(pilot, lambda words=words: words in text_of(pilot))


@pytest.mark.parametrize(("key", "command"), [("p", EngineCommand.PAUSE), ("r", EngineCommand.RESUME)])
async def test_keys_send_commands(tmp_path: Path, key: str, command: EngineCommand) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press(key)
            await until(pilot, lambda: engine.commands == [command])


@pytest.mark.parametrize("keys", [["s", "n"], ["s", "escape"], ["s", "enter"]])
async def test_stop_asks_and_can_be_declined(tmp_path: Path, keys: list[str]) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press(keys[0])
            await until(pilot, lambda: "Stop run 3f2a91bc?" in text_of(pilot))
            await pilot.press(keys[1])
            await until(pilot, lambda: isinstance(app.screen, RunScreen))
            await pilot.press("p")
            await until(pilot, lambda: engine.commands == [EngineCommand.PAUSE])


async def test_stop_stops_once_confirmed(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press("s")
            await until(pilot, lambda: "Stop run" in text_of(pilot))
            await pilot.press("y")
            await until(pilot, lambda: engine.commands == [EngineCommand.STOP])
            engine.tell(Finished(RunState.STOPPED))
            await until(pilot, lambda: "STOPPED: `hilt resume 3f2a91bc` goes on with it" in unwrapped(pilot))


async def test_paused_finished_and_failed_are_said_in_words(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.tell(StateChanged(RunState.RUNNING, "pausing after the trials on the board"))
            await until(pilot, lambda: "RUNNING: pausing after the trials on the board" in unwrapped(pilot))
            engine.tell(StateChanged(RunState.PAUSED))
            await until(pilot, lambda: "PAUSED" in text_of(pilot))
            engine.tell(Finished(RunState.FAILED, "the board did not come back", FailureCause.BOARD))
            await until(pilot, lambda: "FAILED: the board did not come back" in unwrapped(pilot))


async def test_an_engine_that_dies_is_said_and_one_that_comes_back_is_attached(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app, live_engine(tmp_path) as engine:
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.die()
            await until(pilot, lambda: "ENGINE GONE (was running)" in text_of(pilot))
            await until(pilot, lambda: "last known: running" in text_of(pilot))
            await pilot.press("p")
            await until(pilot, lambda: "Could not pause" in text_of(pilot))
            with live_engine(tmp_path) as again:
                again.record(trial(3))
                await until(pilot, lambda: attached(pilot) and run_screen(pilot).view.progress.trials == 4)
                await until(pilot, lambda: "ENGINE GONE" not in text_of(pilot))


async def test_unpublished_records_of_a_dying_engine_are_read_and_it_stays_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_LOOK_SECONDS", 0.05)
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app, live_engine(tmp_path) as engine:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.store.record(UUID, [trial(3), trial(5)])
            engine.lose_connections()
            view = run_screen(pilot).view
            await until(pilot, lambda: run_screen(pilot).view is not view)
            await until(pilot, lambda: "ENGINE GONE (was running)" in text_of(pilot) and "5 of 1000" in text_of(pilot))
            await until(pilot, lambda: "5 recorded" in text_of(pilot))
            await until(pilot, lambda: re.search(r"4 +– not measured yet", text_of(pilot)))
            await until(pilot, lambda: "last known: running" in text_of(pilot))


async def test_an_engine_that_answers_and_tells_nothing_is_not_given_a_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_QUIET_SECONDS", 0.1)
    monkeypatch.setattr(run_panels, "_QUIET_SECONDS", 0.5)
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.record(trial(0), trial(1))
            await until(pilot, lambda: "RUNNING" in text_of(pilot) and "\n nothing new for " in text_of(pilot))
            engine.tell(StateChanged(RunState.PAUSED))
            await until(pilot, lambda: "PAUSED" in text_of(pilot) and "nothing new" not in text_of(pilot))
            engine.tell(Finished(RunState.STOPPED))
            await until(pilot, lambda: "STOPPED" in text_of(pilot) and "not running now" in text_of(pilot))


async def test_events_during_the_apps_close_are_dropped(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: run_screen(pilot).view is not None)
            screen, view = run_screen(pilot), run_screen(pilot).view
        app.on_run_loaded(RunLoaded(replace(view)))
        assert screen.view is view


async def test_two_clients_see_the_same_and_one_leaving_stops_nothing(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as first, app_of(tmp_path) as second:
        async with second.run_test() as remaining:
            async with first.run_test() as leaving:
                for pilot in (leaving, remaining):
                    await until(pilot, lambda pilot=pilot: attached(pilot))
                engine.record(trial(0))
                for pilot in (leaving, remaining):
                    await until(pilot, lambda pilot=pilot: run_screen(pilot).view.progress.trials == 1)
                await leaving.press("q")
            engine.record(trial(1))
            await until(remaining, lambda: run_screen(remaining).view.progress.trials == 2)
        assert engine.commands == []


async def test_leaving_says_that_the_run_goes_on(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            assert app.farewell == "Run 3f2a91bc goes on. `hilt tui 3f2a91bc` attaches again."


@pytest.mark.parametrize("page", ["1", "2", "3", "4", "5", "6", "7", "8"])
async def test_eighty_cells_have_room_for_help_and_how_to_leave(tmp_path: Path, page: str) -> None:
    make_run(tmp_path, trials=3)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press(page)
            await until(pilot, lambda: text_of(pilot).endswith("? Help q Detach"))


async def test_a_wide_bar_of_keys_has_those_that_a_narrow_one_leaves_out(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press("3")
            await until(pilot, lambda: "Stop d Check" in text_of(pilot) and "w Power ? Help" in text_of(pilot))
            await pilot.resize_terminal(120, 24)
            await until(pilot, lambda: "Stop e Export d Check" in text_of(pilot))
            await until(pilot, lambda: "w Power n New t Theme ? Help q Detach" in text_of(pilot))
            await pilot.resize_terminal(88, 24)
            await until(pilot, lambda: "w Power n New ? Help q Detach" in text_of(pilot) and "Stop d" in text_of(pilot))


async def test_every_size_is_drawn(tmp_path: Path) -> None:
    make_run(tmp_path, trials=30)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: attached(pilot))
            for size in [(200, 60), (40, 12), (20, 5), (1, 1), (120, 30), (80, 24)]:
                await pilot.resize_terminal(*size)
                await until(pilot, lambda size=size: app.screen.size == size)
            await until(pilot, lambda: fits(text_of(pilot), 80, 24, "30 of 1000 trials", "latency, µs, log"))


def unwrapped(pilot: Pilot[None]) -> str:
    """Return the screen's text with single spaces: a long state goes on in the next line."""
    return " ".join(text_of(pilot).split())


def fits(shown: str, columns: int, lines: int, *words: str) -> bool:
    widest = max(map(len, shown.splitlines()), default=0)
    return all(each in shown for each in words) and widest <= columns and len(shown.splitlines()) == lines


async def test_a_curve_is_drawn_with_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, asked, go_on = feed.valid_latencies, threading.Event(), threading.Event()

    def late(store: Store, uuid: str) -> list[tuple[int, float]]:
        asked.set()
        go_on.wait(600)
        return read(store, uuid)

    monkeypatch.setattr(feed, "valid_latencies", late)
    make_run(tmp_path, trials=30)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: asked.is_set() and "30 recorded" in text_of(pilot))
            assert not run_screen(pilot).view.curve
            await pilot.resize_terminal(200, 60)
            go_on.set()
            await until(pilot, lambda: run_screen(pilot).view.curve and len(run_screen(pilot).view.points) == 20)


async def test_a_burst_is_a_few_repaints(tmp_path: Path) -> None:
    make_run(tmp_path)
    batches: list[int] = []

    def count(message: Message) -> None:
        if isinstance(message, EventsArrived):
            batches.append(len(message.events))

    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40), message_hook=count) as pilot:
            await until(pilot, lambda: attached(pilot))
            batches.clear()
            began = time.monotonic()
            for ordinal in range(1000):
                engine.tell(Logged("info", f"line {ordinal}", 1.0))
            await until(pilot, lambda: "line 999" in text_of(pilot))
            assert sum(batches) == 1000
            assert len(batches) <= 2 + (time.monotonic() - began) / feed.REPAINT_SECONDS, batches


async def test_copy_gives_the_selected_trial_as_json(tmp_path: Path) -> None:
    make_run(tmp_path, trials=5)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press("up", "c")
            await until(pilot, lambda: app.clipboard)
            assert json.loads(app.clipboard)["ordinal"] == 3
            assert json.loads(app.clipboard)["knobs"]["tile_h"] == 7


async def test_the_table_reaches_every_trial(tmp_path: Path) -> None:
    total = 450
    make_run(tmp_path, trials=total)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            table = run_screen(pilot).query_one(TrialsTable)
            await until(pilot, lambda: (table.row_count, table.cursor_row) == (total, total - 1))
            await pilot.press("home")
            await until(pilot, lambda: table.selected_trial().ordinal == 0 and "trial▲" in text_of(pilot))
            below = 2 * (table.scrollable_content_region.height - 1) + 1
            await pilot.press("pagedown", "pagedown", "down")
            await until(pilot, lambda: table.cursor_row == below)
            assert 10 < below < 40 and json.loads(table.selected() or "")["ordinal"] == below
            engine.record(trial(total))
            await until(pilot, lambda: table.row_count == total + 1)
            assert table.cursor_row == below  # who looks at an older trial stays there
            await pilot.press("end")
            await until(pilot, lambda: f"\n│    {total} " in text_of(pilot))


async def test_a_trial_that_is_on_its_way_is_said(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.record(trial(5))
            await until(pilot, lambda: text_of(pilot).count("on its way") == 2)
            engine.record(trial(3), trial(4))
            await until(pilot, lambda: "on its way" not in text_of(pilot))


async def test_new_trials_are_followed_only_by_a_cursor_at_the_end(tmp_path: Path) -> None:
    make_run(tmp_path, trials=30)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            table = run_screen(pilot).query_one(TrialsTable)
            await until(pilot, lambda: table.cursor_row == 29)
            engine.record(trial(30))
            await until(pilot, lambda: table.row_count == 31)
            assert table.cursor_row == 30
            await pilot.press("up", "up")
            await until(pilot, lambda: table.cursor_row == 28)
            engine.record(trial(31))
            await until(pilot, lambda: table.row_count == 32)
            assert table.cursor_row == 28


async def test_a_burst_of_first_trials_is_followed(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            engine.record(*(trial(ordinal) for ordinal in range(60)))
            await until(pilot, lambda: "\n│     59 " in text_of(pilot))


async def test_filter_order_and_search(tmp_path: Path) -> None:
    make_run(tmp_path, trials=30)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            table, rows = run_screen(pilot).query_one(TrialsTable), run_screen(pilot).watched.trials

            def ordinals() -> list[int]:
                return [rows.ordinal(row) for row in range(len(rows))]

            await pilot.press("f")  # valid ones
            await until(pilot, lambda: ordinals() == [n for n in range(30) if n % 3 != 2])
            await pilot.press("o")  # by latency: the later, the faster
            await until(pilot, lambda: ordinals() == [n for n in range(29, -1, -1) if n % 3 != 2])
            await until(pilot, lambda: table.selected_trial().ordinal == 28 and "valid, by latency" in text_of(pilot))
            engine.record(trial(30))
            await until(pilot, lambda: rows.ordinal(0) == 30)
            await pilot.press("f")
            await until(pilot, lambda: ordinals() == [n for n in range(30) if n % 3 == 2])
            await pilot.press("f", "f")
            await type_in(pilot, "slash", "OVERFLOW")
            await until(pilot, lambda: len(rows) == 10 and 'with "OVERFLOW"' in text_of(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: len(rows) == 31 and "31 recorded, by trial" in text_of(pilot))


async def test_an_ordered_list_that_is_due_at_once_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_screen_module, "_ARRANGE_SECONDS", 0.0)
    make_run(tmp_path, trials=30)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            await pilot.press("o")
            table = run_screen(pilot).query_one(TrialsTable)
            for ordinal in range(30, 40):
                engine.record(trial(ordinal))
                await until(pilot, lambda ordinal=ordinal: table.row_count == ordinal + 1)


async def test_the_cursor_stays_on_its_trial_when_better_ones_come(tmp_path: Path) -> None:
    """But at the first row it stays with the best."""
    make_run(tmp_path, trials=30)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: attached(pilot))
            table = run_screen(pilot).query_one(TrialsTable)
            await pilot.press("o")
            await until(pilot, lambda: "by latency" in text_of(pilot) and table.cursor_row == 0)
            await pilot.press("down", "down")
            await until(pilot, lambda: table.cursor_row == 2)
            chosen = table.selected_trial().ordinal
            engine.record(trial(30), trial(31))
            await until(pilot, lambda: table.row_count == 32)
            assert table.selected_trial().ordinal == chosen == 25 and table.cursor_row == 4
            await pilot.press("home")
            await until(pilot, lambda: table.cursor_row == 0)
            engine.record(trial(33))
            await until(pilot, lambda: table.row_count == 33)
            assert table.selected_trial().ordinal == 33


async def test_the_mouse_selects_sorts_and_changes_screens(tmp_path: Path) -> None:
    make_run(tmp_path, trials=30)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: attached(pilot))
            table = run_screen(pilot).query_one(TrialsTable)
            top = 30 - (table.scrollable_content_region.height - 1)
            await until(pilot, lambda: table.cursor_row == 29 and table.scroll_offset.y == top)
            await pilot.click(TrialsTable, offset=(5, 3))
            await until(pilot, lambda: table.cursor_row == top + 1)  # border, titles, first row, second row
            await pilot.click(TrialsTable, offset=(15, 1))
            await until(pilot, lambda: "by latency" in text_of(pilot) and table.selected_trial().ordinal == 28)
            await pilot.click(TrialsTable, offset=(15, 1))
            await until(pilot, lambda: "by latency, last first" in text_of(pilot))
            await until(pilot, lambda: table.selected_trial().ordinal == 0)
            await pilot.click("NavigationBar", offset=(text_of(pilot).splitlines()[0].index("6 Log"), 0))
            await until(pilot, lambda: isinstance(app.screen, LogScreen))


async def test_an_engine_that_came_and_went_unseen_is_noticed(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
            with Store(database_path(tmp_path)) as store:
                store.record(UUID, [trial(3)])
                store.set_state(UUID, RunState.FINISHED)
            await until(pilot, lambda: "FINISHED" in text_of(pilot) and "4 of 1000 trials" in text_of(pilot))
            await until(pilot, lambda: "the tuner asked for no more" in text_of(pilot))
