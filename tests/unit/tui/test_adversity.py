"""Events that should not harm a viewer: engines that hang, runs that vanish, text that is not meant for a terminal."""

from __future__ import annotations

import asyncio
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from textual.widgets import Input

from hilt.engine import client
from hilt.engine.event_log import EventLog
from hilt.engine.events import BoardChanged, Logged
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.store import CorruptStoreError, Run, RunState, Store, Trial, database_path, listing
from hilt.tui import board_work, trial_list
from hilt.tui.messages import RunLoaded
from hilt.tui.run_view import Link, RunView
from hilt.tui.screens.board_screen import BoardScreen
from hilt.tui.screens.campaign_screen import CampaignScreen
from hilt.tui.screens.configuration_screen import ConfigurationScreen
from hilt.tui.screens.export_screen import ExportScreen
from hilt.tui.screens.log_screen import LogScreen
from hilt.tui.screens.new_run_screen import NewRunScreen
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.screens.runs_screen import RunsScreen
from hilt.tui.widgets.line_view import LineView
from hilt.tui.widgets.trials_table import TrialsTable

from .live import UUID, app_of, live_engine, make_run, run_screen, text_of, trial, type_in, until


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))


@contextmanager
def hanging_engine(home: Path) -> Iterator[socket.socket]:
    """Yield the socket of an engine whose process was stopped: it holds the run and listens, and does nothing more."""
    with Store(database_path(home)) as store:
        store.set_state(UUID, RunState.RUNNING)
    files = RunFiles(home, UUID)
    with files.locked(), files.listen() as listener:
        yield listener


async def test_an_engine_that_hangs_does_not_hang_who_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_HELLO_SECONDS", 600.0)  # until the test is over
    make_run(tmp_path, trials=3)
    with hanging_engine(tmp_path), app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await pilot.press("7")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen) and "3f2a91bc" in text_of(pilot))


async def test_an_engine_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_HELLO_SECONDS", 0.2)
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app, hanging_engine(tmp_path) as listener:
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await until(pilot, lambda: "NOT ANSWERING (was running)" in text_of(pilot))
            await until(pilot, lambda: "virtual:pynq: unknown (engine not answering)" in text_of(pilot))
            await pilot.press("r")
            await until(pilot, lambda: "Could not resume" in text_of(pilot))
            listener.close()
            with Store(database_path(tmp_path)) as store:
                store.record(UUID, [trial(3)])
            await until(pilot, lambda: "4 of 1000" in text_of(pilot) and "INTERRUPTED" in text_of(pilot))


async def test_an_engine_of_another_version_is_asked_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached: list[float] = []
    attach = client.EngineClient.attach
    monkeypatch.setattr(client.EngineClient, "attach", lambda *_: attached.append(time.monotonic()) or attach(*_))
    make_run(tmp_path, trials=3)
    with live_engine(tmp_path) as engine, app_of(tmp_path, UUID) as app:
        engine._server._hello = Logged("no such level", "of another version", 1.0)
        monkeypatch.setattr(client, "parse_event", _refused)
        async with app.run_test() as pilot:
            await until(pilot, lambda: len(attached) >= 3)
    assert all(later - earlier > 0.9 for earlier, later in pairwise(attached)), attached


def _refused(line: bytes) -> None:
    raise client.EngineProtocolError("an event of another version")


@pytest.mark.parametrize(("key", "screen"), [("1", CampaignScreen), ("n", NewRunScreen)])
async def test_a_run_that_was_deleted_is_said(tmp_path: Path, key: str, screen: type) -> None:
    make_run(tmp_path, trials=300)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(notifications=True) as pilot:
            await until(pilot, lambda: "300 recorded" in text_of(pilot))
            with sqlite3.connect(database_path(tmp_path)) as database:
                database.executescript("DELETE FROM trials; DELETE FROM runs")
            database.close()
            await until(pilot, lambda: "there is no run" in text_of(pilot))
            await pilot.press("home")
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, screen))


async def test_late_events_of_another_run_are_ignored(tmp_path: Path) -> None:
    other = "7" * 32
    make_run(tmp_path, trials=3)
    make_run(tmp_path, trials=9, uuid=other)
    with app_of(tmp_path, UUID) as app, Store(database_path(tmp_path)) as store:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "3 recorded" in text_of(pilot))
            taken = asyncio.Event()
            app.post_message(RunLoaded(RunView.load(store, other, Link.NONE)))
            app.call_later(taken.set)
            await until(pilot, taken.is_set)
            assert run_screen(pilot).view.run.uuid == UUID and "3 recorded" in text_of(pilot)


async def test_rows_that_cannot_be_read_hide_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = range(20, 30)

    def read(store: Store, uuid: str, ordinals: Sequence[int]) -> list[Trial]:
        if not set(ordinals).isdisjoint(damaged):
            raise CorruptStoreError("database disk image is malformed")
        return listing.trials_of(store, uuid, ordinals)

    monkeypatch.setattr(trial_list, "trials_of", read)
    make_run(tmp_path, trials=300)
    with app_of(tmp_path, UUID) as app:
        app._store.record(UUID, [trial(599)])
        async with app.run_test() as pilot:
            await until(pilot, lambda: "301 recorded" in text_of(pilot))
            table = run_screen(pilot).query_one(TrialsTable)
            table.move_to(25)
            await until(pilot, lambda: re.search(r" 25 +– cannot be read", text_of(pilot)) is not None)
            table.move_to(18)
            await until(pilot, lambda: re.search(r" 18 +5,736.8 ok", text_of(pilot)) is not None)
            table.move_to(35)
            await until(pilot, lambda: re.search(r" 34 +3,571.4 ok", text_of(pilot)) is not None)
            table.move_to(400)
            await until(pilot, lambda: re.search(r"400 +– not measured yet", text_of(pilot)) is not None)


# keys and text


async def test_keys_that_come_before_a_screen_is_there_are_not_typed_into_a_hidden_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    focused: list[Input] = []
    monkeypatch.setattr(Input, "_on_focus", lambda field, event: focused.append(field))
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            for page, screen in (("2", RunScreen), ("6", LogScreen), ("5", ConfigurationScreen)):
                await pilot.press(page)
                await until(pilot, lambda screen=screen: isinstance(app.screen, screen) and app.focused is not None)
    assert not focused


@pytest.mark.parametrize(("page", "screen"), [("2", RunScreen), ("6", LogScreen)])
async def test_a_search_text_is_no_markup(tmp_path: Path, page: str, screen: type) -> None:
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "3 recorded" in text_of(pilot))
            await pilot.press(page)
            await until(pilot, lambda: isinstance(app.screen, screen))
            await type_in(pilot, "slash", "a[b][/c]")
            await until(pilot, lambda: 'with "a[b][/c]"' in text_of(pilot))


async def test_text_of_a_board_does_not_steer_the_terminal(tmp_path: Path) -> None:
    """A title, a colour, a cleared screen and a clipboard that a board asked for stay text."""
    evil = "\x1b]2;title\x07 \x1b[31mred \x1b[2J \x1b]52;c;cm0gLXJm\x07 \x9b2J"
    make_run(tmp_path, trials=3)
    keep = EventLog(RunFiles(tmp_path, UUID).event_log_path).recording(lambda event: None)
    keep(Logged("warning", f"virtual:pynq: {evil}", 1.0))
    with live_engine(tmp_path) as engine, app_of(tmp_path, UUID) as app:
        engine.tell(BoardChanged("virtual:pynq", "ready", evil, 1.0))
        async with app.run_test(size=(160, 50), notifications=True) as pilot:
            await until(pilot, lambda: "virtual:pynq: ready" in text_of(pilot))
            run_screen(pilot).notify(evil, title="from a board", markup=False)
            await until(pilot, lambda: "from a board" in text_of(pilot))
            for page, screen in (("2", RunScreen), ("3", BoardScreen), ("6", LogScreen)):
                await pilot.press(page)
                await until(pilot, lambda screen=screen: isinstance(app.screen, screen) and "[31mred" in text_of(pilot))
                shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
                assert not [each for each in shown if each != "\n" and (each < " " or "\x7f" <= each < "\xa0")]


async def test_a_second_enter_starts_no_second_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[RunSpec] = []
    go_on = threading.Event()

    def start(settings: RunSpec, home: Path) -> Run:
        started.append(settings)
        go_on.wait(600)
        raise ValueError("the engine did not start")

    monkeypatch.setattr("hilt.engine.launch.start", start)
    make_run(tmp_path)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(notifications=True) as pilot:
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, NewRunScreen) and app.focused is not None)
            await pilot.press("enter")
            await until(pilot, lambda: started)
            await pilot.press("enter", "enter", "escape")
            await until(pilot, lambda: "an engine is being started" in text_of(pilot))
            go_on.set()
            await until(pilot, lambda: "the engine did not start" in text_of(pilot))
            assert len(started) == 1
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(app.screen, NewRunScreen))


@pytest.mark.parametrize(("tuner", "board"), [("random", "virtual:pynq"), ("ga", "virtual:pynq"), ("ga", "desk")])
async def test_a_new_run_is_as_the_one_before_it_but_for_the_fields(
    tuner: str, board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunSpec] = []

    def start(settings: RunSpec, home: Path) -> Run:
        started.append(settings)
        raise ValueError("the engine did not start")

    monkeypatch.setattr("hilt.engine.launch.start", start)
    (tmp_path / "boards.toml").write_text('[desk]\nhost = "192.168.2.99"\nbitstream = "pynq"\n')
    options = {"population": 7, "elites": 3, "mutation": 0.1}
    make_run(tmp_path, tuner="ga", tuner_options=options, checks="tvm", orders=1, seed=4, limit_seconds=2.5)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(notifications=True) as pilot:
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
            await pilot.press("n")
            await until(pilot, lambda: isinstance(app.screen, NewRunScreen) and app.focused is not None)
            assert app.screen.query_one("#tuner", Input).value == "ga"
            app.screen.query_one("#tuner", Input).value = tuner
            app.screen.query_one("#board", Input).value = board
            await pilot.press("enter")
            await until(pilot, lambda: "the engine did not start" in text_of(pilot))
    (asked,) = started
    assert (asked.tuner, asked.checks, asked.orders, asked.seed) == (tuner, "tvm", 1, 5)
    assert asked.limit_seconds == (2.5 if board == "virtual:pynq" else None)  # by its clock
    assert asked.tuner_options == (options if tuner == "ga" else {})


async def test_a_damaged_list_of_boards_keeps_nobody_from_starting_a_run(tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text("[desk\n")
    make_run(tmp_path, board="desk")
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
            await pilot.press("3")
            await until(pilot, lambda: "accelerator not known here" in text_of(pilot))
            await pilot.press("n")
            await until(pilot, lambda: "Start a run" in text_of(pilot) and "boards.toml" in text_of(pilot))


async def test_a_home_that_nobody_has_is_said(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(notifications=True) as pilot:
            await until(pilot, lambda: "3 recorded" in text_of(pilot))
            await pilot.press("e")
            await until(pilot, lambda: isinstance(app.screen, ExportScreen) and app.focused is not None)
            app.screen.query_one(Input).value = "~nobody-of-this-name/trials.csv"
            await pilot.press("enter")
            await until(pilot, lambda: "Could not export" in text_of(pilot))


async def test_a_question_can_be_answered_in_a_tiny_terminal(tmp_path: Path) -> None:
    make_run(tmp_path, trials=3)
    with live_engine(tmp_path), app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(40, 10)) as pilot:
            # the line with RUNNING is above the ten visible lines as soon as the table has the focus
            await until(pilot, lambda: "virtual:pynq: running" in text_of(pilot))
            await pilot.press("s")
            await until(pilot, lambda: "Keep running (n)" in text_of(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))
            await pilot.press("e")
            await until(pilot, lambda: "3f2a91bc-trials.csv" in text_of(pilot))


# boards that do not answer


async def test_a_board_is_asked_one_thing_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def check(name: str, tell: board_work.Tell) -> None:
        go_on.wait(600)
        tell(("well     everything", "good"))

    monkeypatch.setattr(board_work, "check", check)
    monkeypatch.setattr(board_work, "agent_log", lambda name, tell: tell(("a line of its log", "")))
    make_run(tmp_path)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(notifications=True) as pilot:
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
            await pilot.press("3")
            await until(pilot, lambda: isinstance(app.screen, BoardScreen))
            await pilot.press("d", "g")
            await until(pilot, lambda: "virtual:pynq is being asked still" in text_of(pilot))
            go_on.set()
            asked = app.screen.query_one("#asked", LineView)
            await until(pilot, lambda: asked.lines == ["checking virtual:pynq ...", "well     everything", "done"])
            await pilot.press("g")
            wanted = ["reading the log of virtual:pynq ...", "a line of its log", "done"]
            await until(pilot, lambda: asked.lines == wanted)


def test_a_board_that_does_not_answer_does_not_hold_who_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that does not answer does not hold a user who leaves.

    At its end asyncio.run waits for its own threads, and the thread that asks a board is not one of them.
    """
    go_on, asked = threading.Event(), threading.Event()
    monkeypatch.setattr(board_work, "check", lambda name, tell: asked.set() or go_on.wait(600))
    make_run(tmp_path)

    async def ask_and_leave() -> None:
        with app_of(tmp_path, UUID) as app:
            async with app.run_test() as pilot:
                await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
                await pilot.press("3")
                await until(pilot, lambda: isinstance(app.screen, BoardScreen))
                await pilot.press("d")
                await until(pilot, asked.is_set)
                await pilot.press("q")

    leaving = threading.Thread(target=lambda: asyncio.run(ask_and_leave()), daemon=True)
    leaving.start()
    leaving.join(250)
    left = not leaving.is_alive()
    go_on.set()
    assert left
