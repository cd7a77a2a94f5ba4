"""Every key of every screen has its documented effect; a key that no journey presses fails."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import DataTable, Input

import hilt.tui.screens
import hilt.tui.widgets
from hilt.engine.event_log import EventLog
from hilt.engine.events import EngineCommand, Logged
from hilt.engine.run_files import RunFiles
from hilt.link.quarantine import quarantined
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Store, database_path
from hilt.tui import board_work, steering
from hilt.tui.app import HiltApp
from hilt.tui.screens.board_screen import BoardScreen
from hilt.tui.screens.campaign_screen import CampaignScreen
from hilt.tui.screens.configuration_screen import ConfigurationScreen
from hilt.tui.screens.dialogs import Confirm, Prompt
from hilt.tui.screens.export_screen import ExportScreen
from hilt.tui.screens.help_screen import HelpScreen
from hilt.tui.screens.log_screen import LogScreen
from hilt.tui.screens.network_screen import NetworkScreen
from hilt.tui.screens.new_run_screen import NewRunScreen
from hilt.tui.screens.run_page import RunPage
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.screens.runs_screen import RunsScreen
from hilt.tui.screens.space_screen import SpaceScreen
from hilt.tui.widgets.line_view import LineView
from hilt.tui.widgets.space_grid import SpaceGrid
from hilt.tui.widgets.trials_table import TrialsTable

from .live import UUID, LiveEngine, app_of, keep_inference, live_engine, make_run, text_of, until
from .test_screens import make_campaign, real_run


class Stage:
    """The objects that a journey's conditions look at."""

    def __init__(self, pilot: Pilot[None], engine: LiveEngine | None, done: list[object]) -> None:
        self.pilot, self.engine, self.done = pilot, engine, done

    @property
    def screen(self) -> Screen[object]:
        return self.pilot.app.screen

    @property
    def text(self) -> str:
        return text_of(self.pilot)

    @property
    def clipboard(self) -> str:
        return self.pilot.app.clipboard

    def at(self, kind: type[Screen[object]]) -> bool:
        return isinstance(self.screen, kind) and self.screen.is_mounted

    def says(self, words: str) -> bool:
        return words in self.text

    def asked(self, command: EngineCommand) -> bool:
        assert self.engine is not None
        return bool(self.engine.commands) and self.engine.commands[-1] is command

    def row(self, ordinal: int) -> bool:
        return self.screen.query_one(TrialsTable).cursor_row == ordinal

    def line(self, ordinal: int) -> bool:
        return self.screen.query_one("#log", LineView).cursor_row == ordinal

    def cell(self, column: int, row: int) -> bool:
        grid = self.screen.query_one(SpaceGrid)
        return (grid._column, grid._row) == (column, row)

    def index(self, index: int) -> bool:
        explained = getattr(self.screen, "explained", None)
        return explained is not None and explained.index == index

    def input_shown(self, name: str) -> bool:
        return self.screen.query_one(name, Input).has_focus

    def input_hidden(self, name: str) -> bool:
        return not self.screen.query_one(name, Input).display


Condition = Callable[[Stage], bool]


@dataclass(frozen=True)
class Press:
    """A key of `of`, and a condition that holds after it and not before."""

    of: type[DOMNode]
    key: str
    then: Condition


@dataclass(frozen=True)
class Go:
    """Keys on the way that are not the journey's subject, and the condition that they lead to."""

    keys: tuple[str, ...]
    until: Condition


Journey = tuple["Press | Go", ...]


def at(kind: type[Screen[object]]) -> Condition:
    return lambda stage: stage.at(kind)


def says(words: str) -> Condition:
    return lambda stage: stage.says(words)


def notes(words: str) -> Condition:
    return lambda stage: any(words in note.message for note in stage.pilot.app._notifications)


def silent(words: str) -> Condition:
    return lambda stage: not stage.says(words)


def row(ordinal: int) -> Condition:
    return lambda stage: stage.row(ordinal)


def focused(name: str) -> Condition:
    return lambda stage: getattr(stage.screen.focused, "id", "") == name


def table_row(place: int) -> Condition:
    return lambda stage: stage.screen.query_one(DataTable).cursor_row == place


def line(ordinal: int) -> Condition:
    return lambda stage: stage.line(ordinal)


def cell(column: int, at_row: int) -> Condition:
    return lambda stage: stage.cell(column, at_row)


def index(index: int) -> Condition:
    return lambda stage: stage.index(index)


def asked(command: EngineCommand) -> Condition:
    return lambda stage: stage.asked(command)


def shows(name: str) -> Condition:
    return lambda stage: stage.input_shown(name)


def hides(name: str) -> Condition:
    return lambda stage: stage.input_hidden(name)


def did(word: str) -> Condition:
    return lambda stage: bool(stage.done) and stage.done[-1] == word


LIVE: dict[str, Journey] = {
    "the app": (
        Press(HiltApp, "1", at(CampaignScreen)),
        Press(HiltApp, "2", at(RunScreen)),
        Press(HiltApp, "3", at(BoardScreen)),
        Press(HiltApp, "4", at(SpaceScreen)),
        Press(HiltApp, "5", at(ConfigurationScreen)),
        Press(HiltApp, "6", at(LogScreen)),
        Press(HiltApp, "7", at(RunsScreen)),
        Press(HiltApp, "8", at(NetworkScreen)),
        Go(("2",), at(RunScreen)),
        Press(HiltApp, "l", at(RunsScreen)),
        Press(RunsScreen, "f5", says("aaaaaaaa")),
        Go(("pageup",), table_row(0)),
        Press(RunsScreen, "g", at(Prompt)),
        Press(Prompt, "down", focused("cancel")),
        Press(Prompt, "up", lambda stage: isinstance(stage.screen.focused, Input)),
        Press(Prompt, "escape", at(RunsScreen)),
        Press(RunsScreen, "m", says("Note on aaaaaaaa")),
        Go(("f", "a", "n", "enter"), at(RunsScreen)),
        Press(RunsScreen, "a", silent("aaaaaaaa")),
        Press(RunsScreen, "v", says("aaaaaaaa")),
        Go(("pageup", "d"), says("Delete run aaaaaaaa of")),
        Go(("n",), at(RunsScreen)),
        Press(RunsScreen, "d", says("Delete run aaaaaaaa of")),
        Go(("y",), notes("is deleted")),
        Go((), silent("aaaaaaaa")),
        Press(RunsScreen, "o", says("by valid")),
        Press(RunsScreen, "space", notes("this run has no layers")),
        Press(RunsScreen, "e", notes("Enter shows a run")),
        Press(RunsScreen, "slash", shows("#filter")),
        Press(RunsScreen, "escape", hides("#filter")),
        Press(HiltApp, "n", at(NewRunScreen)),
        Press(NewRunScreen, "down", lambda stage: getattr(stage.screen.focused, "id", "") == "board"),
        Press(NewRunScreen, "up", lambda stage: getattr(stage.screen.focused, "id", "") == "workload"),
        Press(NewRunScreen, "escape", at(RunsScreen)),
        Press(HiltApp, "t", lambda stage: stage.pilot.app.theme == "textual-light"),
        Press(HiltApp, "question_mark", at(HelpScreen)),
        Press(HelpScreen, "escape", at(RunsScreen)),
        Go(("question_mark",), at(HelpScreen)),
        Press(HelpScreen, "question_mark", at(RunsScreen)),
        Go(("question_mark",), at(HelpScreen)),
        Press(HelpScreen, "q", at(RunsScreen)),
        Press(HiltApp, "q", lambda stage: not stage.pilot.app.is_running or stage.pilot.app._exit),
    ),
    "leaving": (Press(HiltApp, "ctrl+q", lambda stage: not stage.pilot.app.is_running or stage.pilot.app._exit),),
    "steering a run": (
        Press(RunPage, "p", asked(EngineCommand.PAUSE)),
        Press(RunPage, "r", asked(EngineCommand.RESUME)),
        Press(RunPage, "s", at(Confirm)),
        Press(Confirm, "right", focused("yes")),
        Press(Confirm, "left", focused("no")),
        Press(Confirm, "down", focused("yes")),
        Press(Confirm, "up", focused("no")),
        Press(Confirm, "n", at(RunScreen)),
        Go(("s",), at(Confirm)),
        Press(Confirm, "escape", at(RunScreen)),
        Go(("s",), at(Confirm)),
        Press(Confirm, "y", asked(EngineCommand.STOP)),
        Press(RunPage, "e", at(ExportScreen)),
        Press(ExportScreen, "down", says("-report.html")),
        Press(ExportScreen, "up", says("-trials.csv")),
        Press(ExportScreen, "escape", at(RunScreen)),
    ),
    "trials": (
        Press(TrialsTable, "home", row(0)),
        Press(TrialsTable, "down", row(1)),
        Press(TrialsTable, "j", row(2)),
        Press(TrialsTable, "up", row(1)),
        Press(TrialsTable, "k", row(0)),
        Press(TrialsTable, "pagedown", lambda stage: stage.screen.query_one(TrialsTable).cursor_row > 5),
        Press(TrialsTable, "pageup", row(0)),
        Press(TrialsTable, "end", row(89)),
        Press(RunScreen, "c", lambda stage: '"ordinal": 89' in stage.clipboard),
        Press(RunScreen, "f", says("valid, by trial")),
        Press(RunScreen, "o", says("valid, by latency")),
        Press(RunScreen, "z", says("zoomed")),
        Press(RunScreen, "y", says("µs, linear")),
        Press(RunScreen, "slash", shows("#search")),
        Press(RunScreen, "escape", hides("#search")),
        Go((), says("90 recorded, by trial")),
        Press(TrialsTable, "enter", at(ConfigurationScreen)),
    ),
    "the board": (
        Go(("3",), at(BoardScreen)),
        Press(BoardScreen, "d", did("check")),
        Press(BoardScreen, "escape", lambda stage: not stage.screen.has_class("-asked")),
        Press(BoardScreen, "g", did("agent_log")),
        Press(BoardScreen, "c", lambda stage: "virtual:pynq" in stage.clipboard),
        Press(BoardScreen, "w", at(Confirm)),
        Go(("y",), did("power_cycle")),
        Press(BoardScreen, "x", says("Quarantine virtual:pynq?")),
        Go(("y",), lambda stage: "virtual:pynq" in quarantined()),
        Press(BoardScreen, "b", lambda stage: getattr(stage.screen, "board", "") == "virtual:pynq@two"),
    ),
    "the log": (
        Go(("6",), says("line 199")),
        Press(LineView, "home", line(0)),
        Press(LineView, "down", line(1)),
        Press(LineView, "j", line(2)),
        Press(LineView, "up", line(1)),
        Press(LineView, "k", line(0)),
        Press(LineView, "pagedown", lambda stage: stage.screen.query_one("#log", LineView).cursor_row > 5),
        Press(LineView, "pageup", line(0)),
        Press(LineView, "end", line(200)),
        Press(LineView, "right", lambda stage: stage.screen.query_one("#log").scroll_offset.x > 0),
        Press(LineView, "left", lambda stage: stage.screen.query_one("#log").scroll_offset.x == 0),
        Press(LogScreen, "c", lambda stage: "running 64 of 64 MiB free" in stage.clipboard),
        Press(LogScreen, "f", says("warnings and errors")),
        Press(LogScreen, "slash", shows("#search")),
        Press(LogScreen, "escape", hides("#search")),
        Press(LogScreen, "o", did("pager")),
    ),
}
STILL: dict[str, Journey] = {
    "the space": (
        Go(("4",), lambda stage: stage.at(SpaceScreen) and stage.says("accepted (")),
        Go(("home", *["pageup"] * 20), cell(0, 0)),
        Press(SpaceGrid, "right", cell(1, 0)),
        Press(SpaceGrid, "down", cell(1, 1)),
        Press(SpaceGrid, "left", cell(0, 1)),
        Press(SpaceGrid, "up", cell(0, 0)),
        Press(SpaceGrid, "pagedown", cell(0, 10)),
        Press(SpaceGrid, "pageup", cell(0, 0)),
        Press(SpaceGrid, "end", lambda stage: stage.screen.query_one(SpaceGrid)._column > 10),
        Press(SpaceGrid, "home", cell(0, 0)),
        Press(SpaceScreen, "b", lambda stage: stage.screen.query_one(SpaceGrid).index == 3),
        Press(SpaceScreen, "c", lambda stage: stage.clipboard == "3"),
        Press(SpaceScreen, "m", says("largest cluster …")),
        Press(SpaceGrid, "enter", at(ConfigurationScreen)),
    ),
    "a configuration": (
        Go(("5",), index(3)),
        Press(ConfigurationScreen, "right_square_bracket", index(4)),
        Press(ConfigurationScreen, "left_square_bracket", index(3)),
        Press(ConfigurationScreen, "c", lambda stage: '"tile_h"' in stage.clipboard),
        Press(ConfigurationScreen, "i", shows("#index")),
        Go(("7", "enter"), index(7)),
        Press(ConfigurationScreen, "b", index(3)),
        Press(ConfigurationScreen, "a", lambda stage: stage.screen.has_class("-assembly")),
        Go(("a", "i"), shows("#index")),
        Press(ConfigurationScreen, "escape", hides("#index")),
    ),
    "a campaign": (
        Go(("1",), lambda stage: stage.at(CampaignScreen) and stage.says("resnet18.C7")),
        Press(CampaignScreen, "p", did("pause")),
        Press(CampaignScreen, "r", did("resume")),
        Press(CampaignScreen, "s", says("Stop the campaign of little?")),
        Go(("y",), did("stop")),
        Press(CampaignScreen, "x", says("Skip resnet18.C2?")),
        Go(("n",), at(CampaignScreen)),
        Press(CampaignScreen, "v", lambda stage: stage.screen.has_class("-curve-alone")),
        Go(("v",), lambda stage: not stage.screen.has_class("-curve-alone")),
        Press(CampaignScreen, "c", says("eeeeeeee")),
    ),
    "a network": (
        Go(("8",), lambda stage: stage.at(NetworkScreen) and stage.says("second on virtual:pynq")),
        Press(NetworkScreen, "c", says("first on virtual:pynq")),
    ),
}


@pytest.fixture(autouse=True)
def nothing_is_reached_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[object]) -> None:
    """Write down the calls that would leave the TUI, instead of making them: boards, engines, the pager."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setattr(board_work, "check", lambda name, tell: done.append("check"))
    monkeypatch.setattr(board_work, "agent_log", lambda name, tell: done.append("agent_log"))
    monkeypatch.setattr(board_work, "power_cycle", lambda name: done.append("power_cycle"))
    monkeypatch.setattr(HiltApp, "suspend", lambda app: done.append("pager") or ExitStack())
    monkeypatch.setenv("PAGER", "true")


@pytest.fixture
def done() -> list[object]:
    return []


@pytest.mark.parametrize("name", LIVE)
async def test_keys_of_a_live_run(name: str, tmp_path: Path, done: list[object]) -> None:
    make_run(tmp_path, trials=90, board="virtual:pynq,virtual:pynq@two" if name == "the board" else "virtual:pynq")
    files = RunFiles(tmp_path, UUID)
    publish = EventLog(files.event_log_path).recording(lambda event: None)
    for ordinal in range(200):
        publish(Logged("info", f"line {ordinal} {'and more ' * 20}", 1.0))
    files.log_path.write_text("what the engine said\n")
    with live_engine(tmp_path) as engine, app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "virtual:pynq: running" in text_of(pilot))
            stage = Stage(pilot, engine, done)
            await travel(stage, LIVE[name], lambda: make_run(tmp_path, uuid="a" * 32))


@pytest.mark.parametrize("name", STILL)
async def test_keys_of_a_run_that_stands_still(
    name: str, tmp_path: Path, done: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "send", lambda home, uuid, command: done.append(str(command)))
    if name == "a campaign":
        settings = {"board": "virtual:pynq", "tuner": "random", "trials": 20}
        network = Network("older", (Layer("resnet18.C2", nodes=["a"]),), {})
        with Store(database_path(tmp_path)) as store:
            store.create_campaign(Campaign("e" * 32, "older", network.to_dict(), settings, 0.5, {"trials": 40}))
        make_campaign(tmp_path)
    if name == "a network":
        keep_inference(tmp_path, "first")
        keep_inference(tmp_path, "second")
    run = real_run(tmp_path)
    with app_of(tmp_path, run.uuid) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "STOPPED" in text_of(pilot))
            await travel(Stage(pilot, None, done), STILL[name])


async def travel(stage: Stage, journey: Journey, add_a_run: Callable[[], None] = lambda: None) -> None:
    """Press one key after another; before `f5` there is something new to be read."""
    for step in journey:
        if isinstance(step, Go):
            await stage.pilot.press(*step.keys)
            await until(stage.pilot, lambda step=step: step.until(stage))
            continue
        await stage.pilot.pause()
        assert not step.then(stage), f"{step.key} would change nothing:\n{stage.text}"
        if step.key == "f5":
            add_a_run()
        await stage.pilot.press(step.key)
        await until(stage.pilot, lambda step=step: step.then(stage))


# that it is every key


def pressed() -> set[tuple[str, str]]:
    steps = [step for journey in (*LIVE.values(), *STILL.values()) for step in journey]
    return {(step.of.__name__, step.key) for step in steps if isinstance(step, Press)}


def bound() -> Iterator[tuple[str, str]]:
    """(class, key) of all bindings, and of all methods that are called for a key, of hilt's own classes."""
    packages = (hilt.tui.screens, hilt.tui.widgets)
    modules = [
        importlib.import_module(f"{package.__name__}.{each.name}")
        for package in packages
        for each in pkgutil.iter_modules(package.__path__)
    ]
    for kind in {HiltApp, *(found for module in modules for _, found in inspect.getmembers(module, inspect.isclass))}:
        if kind.__module__.startswith("hilt.tui") and issubclass(kind, DOMNode):
            for binding in Binding.make_bindings(vars(kind).get("BINDINGS", ())):
                yield kind.__name__, binding.key
            yield from ((kind.__name__, name.removeprefix("key_")) for name in vars(kind) if name.startswith("key_"))


def test_every_key_is_in_a_journey() -> None:
    assert pressed() == set(bound())
