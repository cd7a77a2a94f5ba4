"""The screens beside that of the run: board, space, configuration, log, campaign; and the questions they ask."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widgets import Button, DataTable, Input, RadioSet

from hilt.engine.client import NoEngineError
from hilt.engine.event_log import EventLog
from hilt.engine.events import BoardChanged, EngineCommand, Logged, TunerUpdated
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.engine.run_spec import make_run as run_of
from hilt.link.quarantine import quarantined
from hilt.measure import describe_board
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Run, RunState, Store, Trial, database_path
from hilt.trial import Outcome, Verification
from hilt.tui import board_work, steering
from hilt.tui.screens.board_screen import BoardScreen
from hilt.tui.screens.campaign_screen import CampaignScreen
from hilt.tui.screens.configuration_screen import ConfigurationScreen
from hilt.tui.screens.dialogs import Confirm
from hilt.tui.screens.export_screen import ExportKind, ExportScreen, export
from hilt.tui.screens.log_screen import LogScreen
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.screens.space_screen import SpaceScreen
from hilt.tui.widgets.line_view import LineView
from hilt.tui.widgets.space_grid import SpaceGrid

from ..engine.table import WORKLOAD
from .live import UUID, app_of, live_engine, make_run, text_of, trial, type_in, until

SIZES = [(80, 24), (200, 60)]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))


def real_run(home: Path, workload: str = WORKLOAD, campaign: str | None = None, valid: int = 4) -> Run:
    """A run of a space that there is, with trials of its first configurations; the later the faster."""
    settings = RunSpec(workload=workload, board="virtual:pynq", tuner="random", trials=20)
    run = run_of(settings, describe_board("virtual:pynq"), campaign)
    seen = Verification(run.output_elements, 0)
    trials = [
        Trial(n, n, {"n": n}, Outcome.OK, "", 1000, 100.0 - n, (100.0,), seen, run.output_elements, "virtual:pynq")
        for n in range(valid)
    ]
    timeout = Trial(valid, valid, {"n": 4}, Outcome.TIMEOUT, "no FINISH", board="virtual:pynq")
    with Store(database_path(home)) as store:
        store.create_run(run)
        store.record(run.uuid, [*trials, timeout])
        store.set_state(run.uuid, RunState.STOPPED)
    return run


def shown(pilot, kind: type) -> bool:
    return isinstance(pilot.app.screen, kind)


# board


@pytest.mark.parametrize("size", SIZES)
async def test_the_board_says_state_step_canary_heat_and_clock(tmp_path: Path, size: tuple[int, int]) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: "RUNNING" in text_of(pilot))
            await pilot.press("3")
            await until(pilot, lambda: shown(pilot, BoardScreen))
            name = "virtual:pynq"
            engine.tell(
                BoardChanged(name, "ready", "1x16 at 100 MHz programmed in 0.4 s, chip at 51 °C", 1.0, 51.2),
                Logged("warning", f"{name}: timeout after trial 3: soft 0.01 s; canary failed", 2.0),
                Logged("warning", f"{name}: reconnect took 2.0 s, in vain: no route", 3.0),
                Logged("info", "other: canary well", 4.0),
                BoardChanged(name, "recovering", "reboot over SSH: no route", 5.0),
            )
            for words in (
                "3 of 4, reboot over SSH",
                "1 recovery steps",
                "well 1×, failed 1×",
                "51 °C",
                "100 MHz",
                "recovering since",
                "in vain: no route",
            ):
                await until(pilot, lambda words=words: words in text_of(pilot))
            assert "other: canary" not in text_of(pilot)


async def test_a_board_is_quarantined_and_released_after_a_question(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "RUNNING" in text_of(pilot))
            await pilot.press("3")
            await until(pilot, lambda: shown(pilot, BoardScreen))
            await pilot.press("x")
            await until(pilot, lambda: "Quarantine virtual:pynq?" in text_of(pilot))
            await pilot.press("n")
            await until(pilot, lambda: shown(pilot, BoardScreen))
            assert not quarantined()
            await pilot.press("x")
            await until(pilot, lambda: shown(pilot, Confirm))
            await pilot.press("y")
            await until(pilot, lambda: "virtual:pynq" in quarantined())
            await until(pilot, lambda: "kept apart by hand" in text_of(pilot))
            await pilot.press("x")
            await until(pilot, lambda: "Release virtual:pynq?" in text_of(pilot))
            await pilot.press("y")
            await until(pilot, lambda: not quarantined())


async def test_the_power_is_cycled_only_after_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cycled: list[str] = []
    monkeypatch.setattr(board_work, "power_cycle", cycled.append)
    make_run(tmp_path)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "RUNNING" in text_of(pilot))
            await pilot.press("3")
            await until(pilot, lambda: shown(pilot, BoardScreen))
            await pilot.press("w")
            await until(pilot, lambda: "Switch the power of virtual:pynq off and on?" in text_of(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: shown(pilot, BoardScreen))
            await pilot.press("w")
            await until(pilot, lambda: shown(pilot, Confirm))
            assert not cycled
            await pilot.press("y")
            await until(pilot, lambda: cycled == ["virtual:pynq"])


async def test_a_recording_has_no_board_to_be_looked_at(tmp_path: Path) -> None:
    make_run(tmp_path, board="dataset:somewhere")
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
            await pilot.press("3")
            await until(pilot, lambda: shown(pilot, BoardScreen))
            await pilot.press("d")
            await until(pilot, lambda: "dataset:somewhere is a recording, not a board" in text_of(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: "no fault, no recovery yet" in text_of(pilot))


# space and configuration


@pytest.mark.parametrize("size", SIZES)
async def test_the_space_is_a_picture_with_a_cursor(tmp_path: Path, size: tuple[int, int]) -> None:
    run = real_run(tmp_path)
    with app_of(tmp_path, run.uuid) as app:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: "STOPPED" in text_of(pilot))
            await pilot.press("4")
            await until(pilot, lambda: shown(pilot, SpaceScreen) and "accepted (" in text_of(pilot))
            grid = app.screen.query_one(SpaceGrid)
            await until(pilot, lambda: grid.index == 3)  # the best
            await until(pilot, lambda: f"configuration 3 of {run.space_size:,}" in text_of(pilot))
            await until(pilot, lambda: "97.0 µs" in text_of(pilot) and "×" in text_of(pilot))
            await pilot.press("home", "pageup", "pageup")
            await until(pilot, lambda: grid.index == 0)
            await until(pilot, lambda: "100.0 µs" in text_of(pilot))
            await pilot.press("b")
            await until(pilot, lambda: grid.index == 3)
            await pilot.press("m")
            await until(pilot, lambda: "largest cluster" in text_of(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: shown(pilot, ConfigurationScreen))


async def test_the_space_shows_the_last_trials_and_failures(tmp_path: Path) -> None:
    """A trial that comes right after a drawing is drawn too, though nothing follows it."""
    run = real_run(tmp_path)
    seen = Verification(run.output_elements, 0)
    with live_engine(tmp_path, run.uuid) as engine, app_of(tmp_path, run.uuid) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "RUNNING" in text_of(pilot))
            await pilot.press("4")
            await until(pilot, lambda: "accepted (" in text_of(pilot))
            grid = app.screen.query_one(SpaceGrid)
            grid.go_to(4)
            await until(pilot, lambda: "tried in this run: timeout" in text_of(pilot))
            engine.record(
                Trial(9, 9, {"n": 9}, Outcome.OK, "", 1000, 50.0, (50.0,), seen, run.output_elements, "virtual:pynq")
            )
            grid.go_to(9)
            await until(pilot, lambda: "50.0 µs" in text_of(pilot))


async def test_a_configuration_is_explained_down_to_its_instructions(tmp_path: Path) -> None:
    run = real_run(tmp_path)
    with app_of(tmp_path, run.uuid) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "STOPPED" in text_of(pilot))
            await pilot.press("5")
            await until(pilot, lambda: shown(pilot, ConfigurationScreen) and app.screen.explained is not None)
            assert app.screen.explained.index == 3
            lines = app.screen.query_one("#explained", LineView).lines
            for heading in ("checks", "loops, outermost first", "buffers, in elements", "the twin's prediction"):
                assert any(line.startswith(heading) for line in lines), heading
            assert any(line.startswith("  load ") for line in lines)  # the timeline of the stages
            await pilot.press("right_square_bracket")
            await until(pilot, lambda: app.screen.explained.index == 4)
            await type_in(pilot, "i", "2")
            await until(pilot, lambda: app.screen.explained.index == 2)
            await pilot.press("c")
            await until(pilot, lambda: app.clipboard)
            assert json.loads(app.clipboard) == dict(app.screen.explained.knobs)
            await pilot.press("a")
            await until(pilot, lambda: "LOAD" in text_of(pilot) and "checks" not in text_of(pilot))
            await pilot.press("b")
            await until(pilot, lambda: app.screen.explained.index == 3)
            await type_in(pilot, "i", "99999999")
            await until(pilot, lambda: "is not in the space" in text_of(pilot))


async def test_enter_on_a_trial_shows_its_configuration(tmp_path: Path) -> None:
    run = real_run(tmp_path)
    with app_of(tmp_path, run.uuid) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "STOPPED" in text_of(pilot) and "5 recorded" in text_of(pilot))
            await pilot.press("home", "down", "enter")
            await until(pilot, lambda: shown(pilot, ConfigurationScreen) and app.screen.explained is not None)
            assert app.screen.explained.index == 1


# log, tuner


async def test_the_log_holds_earlier_sessions_and_can_be_searched(tmp_path: Path) -> None:
    make_run(tmp_path)
    publish = EventLog(RunFiles(tmp_path, UUID).event_log_path).recording(lambda event: None)
    publish(Logged("info", "said yesterday", 1.0))
    publish(Logged("error", "the disk is full", 2.0))
    publish(TunerUpdated(8, 0.875, 3.0))
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test(size=(130, 40)) as pilot:
            await until(pilot, lambda: "87.5% sure that nothing is 1% better, after 8 trials" in text_of(pilot))
            engine.tell(TunerUpdated(16, 0.99, 4.0))
            await until(pilot, lambda: "99.0% sure" in text_of(pilot))
            await pilot.press("6")
            await until(pilot, lambda: shown(pilot, LogScreen) and "said yesterday" in text_of(pilot))
            engine.tell(Logged("warning", "said just now [bold]", 3.0))
            await until(pilot, lambda: "WARNING: said just now [bold]" in text_of(pilot))
            log = app.screen.query_one("#log", LineView)
            await pilot.press("f")
            await until(pilot, lambda: len(log.lines) == 2)
            await type_in(pilot, "slash", "disk")
            await until(pilot, lambda: len(log.lines) == 1 and "ERROR: the disk is full" in log.lines[0])
            await until(pilot, lambda: app.focused is log)
            await pilot.press("c")
            await until(pilot, lambda: app.clipboard.endswith("ERROR: the disk is full"))
            await pilot.press("escape", "f")
            await until(pilot, lambda: len(log.lines) >= 4)


async def test_a_long_log_is_shown_at_its_end(tmp_path: Path) -> None:
    make_run(tmp_path)
    publish = EventLog(RunFiles(tmp_path, UUID).event_log_path).recording(lambda event: None)
    for ordinal in range(200):
        publish(Logged("info", f"line {ordinal}", 1.0))
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "line 199" in text_of(pilot))  # the run's own panel
            await pilot.press("6")
            await until(pilot, lambda: shown(pilot, LogScreen) and "line 199" in text_of(pilot))
            await pilot.press("home")
            await until(pilot, lambda: "line 0\n" in re.sub(" +│", "", text_of(pilot)))
            engine.tell(Logged("info", "unseen", 2.0))
            await until(pilot, lambda: "202 lines" in text_of(pilot))
            assert "unseen" not in text_of(pilot)


# campaign


def make_campaign(home: Path) -> Campaign:
    layers = (
        Layer("resnet18.C2", nodes=["a", "b"]), Layer("resnet18.C5", nodes=["c"]), Layer("resnet18.C7", nodes=["d"]),
    )  # fmt: skip
    network = Network("little", layers, {})
    settings = {"board": "virtual:pynq", "tuner": "random", "trials": 20}
    campaign = Campaign("c" * 32, "little", network.to_dict(), settings, 1.0, {"trials": 40})
    with Store(database_path(home)) as store:
        store.create_campaign(campaign)
    for layer in layers[:2]:
        real_run(home, layer.workload, campaign.uuid)
    return campaign


async def test_a_layer_has_its_campaigns_log_and_no_budget_of_its_own(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path)
    with Store(database_path(tmp_path)) as store:
        layer, *_ = (run for run in store.runs() if run.campaign == campaign.uuid)
    log = EventLog(RunFiles(tmp_path, campaign.uuid).event_log_path).recording(lambda event: None)
    RunFiles(tmp_path, campaign.uuid).directory.mkdir(parents=True, exist_ok=True)
    log(BoardChanged("virtual:pynq", "loaded", "agent sent to the board", 5.0))
    log(Logged("warning", "trial 3 is tried again", 6.0))
    with app_of(tmp_path, layer.uuid) as app:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "5 trials of its campaign" in text_of(pilot))
            await pilot.press("6")
            await until(pilot, lambda: "trial 3 is tried again" in text_of(pilot))
            assert "agent sent to the board" in text_of(pilot)
            assert campaign.uuid in str(app.screen.query_one("#path").render()), "the engine's log is the campaign's"


@pytest.mark.parametrize("size", SIZES)
async def test_a_campaign_shows_every_layer_with_best_gain_and_share(tmp_path: Path, size: tuple[int, int]) -> None:
    make_campaign(tmp_path)
    with app_of(tmp_path) as app:
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: "little on virtual:pynq" in text_of(pilot))
            for words in (
                "10 of 40 trials",
                "25%",
                "no latency of the network yet: 1 of its 3 layers have no run",
                "INTERRUPTED (was created)",
                "1.03x",
                "66.7%",
                "waiting",
            ):
                await until(pilot, lambda words=words: words in text_of(pilot))
            await pilot.press("home", "down", "enter")
            await until(pilot, lambda: shown(pilot, RunScreen) and "resnet18.C5 on" in text_of(pilot))


async def test_sixty_cells_have_every_screens_number_and_whole_columns(tmp_path: Path) -> None:
    make_campaign(tmp_path)
    with app_of(tmp_path) as app:
        async with app.run_test(size=(60, 24)) as pilot:
            await until(pilot, lambda: "resnet18.C7" in text_of(pilot))
            assert text_of(pilot).splitlines()[0].split() == ["hilt", "1", "Campaign", *"2345678"]
            (titles,) = [line for line in text_of(pilot).splitlines() if line.startswith("layer")]
            assert titles.split() == ["layer", "trials", "best", "µs", "gain", "state"]
            await pilot.press("8")
            await until(pilot, lambda: text_of(pilot).splitlines()[0].endswith("7  8 Network"))
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: text_of(pilot).splitlines()[0].endswith("7 Runs 8 Network"))


async def test_a_campaign_has_more_columns_in_a_terminal_that_grew(tmp_path: Path) -> None:
    make_campaign(tmp_path)
    with app_of(tmp_path) as app:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "resnet18.C7" in text_of(pilot))
            await pilot.press("home", "down")
            await until(pilot, lambda: app.screen.query_one(DataTable).cursor_row == 1)
            assert "% of bound" not in text_of(pilot)
            await pilot.resize_terminal(200, 60)
            await until(pilot, lambda: "% of bound" in text_of(pilot) and "resnet18.C7" in text_of(pilot))
            await until(pilot, lambda: app.screen.query_one(DataTable).cursor_row == 1)
            await pilot.resize_terminal(80, 24)
            await until(pilot, lambda: "% of bound" not in text_of(pilot) and "resnet18.C7" in text_of(pilot))


async def test_a_campaign_is_paused_stopped_and_a_layer_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, EngineCommand]] = []
    monkeypatch.setattr(steering, "send", lambda home, uuid, command: sent.append((uuid, command)))
    campaign = make_campaign(tmp_path)
    with Store(database_path(tmp_path)) as store:
        first = next(run for run in store.runs_of(campaign.uuid) if run.workload == "resnet18.C2")
    with app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "little on virtual:pynq" in text_of(pilot) and "resnet18.C7" in text_of(pilot))
            await pilot.press("p")
            await until(pilot, lambda: sent == [(campaign.uuid, EngineCommand.PAUSE)])
            await pilot.press("r")
            await until(pilot, lambda: sent[1:] == [(campaign.uuid, EngineCommand.RESUME)])
            await pilot.press("home", "x")
            await until(pilot, lambda: "Skip resnet18.C2?" in text_of(pilot))
            await pilot.press("y")
            await until(pilot, lambda: sent[2:] == [(first.uuid, EngineCommand.STOP)])
            await pilot.press("s")
            await until(pilot, lambda: "Stop the campaign of little?" in text_of(pilot))
            await pilot.press("y")
            await until(pilot, lambda: sent[3:] == [(campaign.uuid, EngineCommand.STOP)])


async def test_no_campaign_is_said(tmp_path: Path) -> None:
    with app_of(tmp_path) as app:
        async with app.run_test(notifications=True) as pilot:
            await pilot.press("1")
            await until(pilot, lambda: shown(pilot, CampaignScreen) and "no campaigns yet" in text_of(pilot))
            await pilot.press("p", "r", "s", "x", "c", "enter")
            await pilot.press("2")
            await until(pilot, lambda: "choose a run first" in text_of(pilot))


# starting, resuming, exporting, the palette


async def test_the_picture_of_a_screen_has_no_notice_of_the_last_export(tmp_path: Path) -> None:
    make_run(tmp_path, 5)
    with app_of(tmp_path) as app:
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await until(pilot, lambda: "5 recorded" in text_of(pilot))
            app.notify("is-on-the-screen", timeout=600)
            await until(pilot, lambda: "is-on-the-screen" in text_of(pilot))
            await pilot.press("e")
            await until(pilot, lambda: shown(pilot, ExportScreen))
            assert isinstance(app.screen, ExportScreen)
            assert "is-on-the-screen" not in app.screen._screenshot and "recorded" in app.screen._screenshot


async def test_a_run_is_started_from_a_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RunSpec] = []

    def start(settings: RunSpec, home: Path) -> Run:
        asked.append(settings)
        return real_run(home)

    monkeypatch.setattr("hilt.engine.launch.start", start)
    with app_of(tmp_path) as app:
        async with app.run_test(size=(100, 30), notifications=True) as pilot:
            await pilot.press("n")
            await until(pilot, lambda: "Start a run" in text_of(pilot))
            for _ in range(len("resnet18.C5")):
                await pilot.press("backspace", "delete")
            await pilot.press(*"nothing", "enter")
            await until(pilot, lambda: "no workload named 'nothing'" in text_of(pilot))
            assert not asked and app.focused.id == "workload"
            await pilot.press(*["backspace"] * len("nothing"), *"resnet18.C2")
            for field in ("board", "tuner", "trials"):
                await pilot.press("tab")
                await until(pilot, lambda field=field: app.focused.id == field)
            await pilot.press("backspace", "backspace", *"12", "enter")
            await until(pilot, lambda: shown(pilot, RunScreen))
            assert (asked[-1].workload, asked[-1].trials, asked[-1].board) == ("resnet18.C2", 12, "virtual:pynq")


@pytest.mark.parametrize("keys", [("n",), ("e",), ("s",), ("7", "g"), ("7", "d")])
async def test_every_button_of_a_dialog_is_in_view(tmp_path: Path, keys: tuple[str, ...]) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path), app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: shown(pilot, RunScreen) and app.screen.view is not None)
            if "7" in keys:
                await pilot.press("7")
                await until(pilot, lambda: "3f2a91bc" in text_of(pilot) and "1 row" in text_of(pilot))
            await pilot.press(keys[-1])
            await until(pilot, lambda: isinstance(app.screen, ModalScreen))
            if keys == ("n",):  # an error line takes room too
                await pilot.press(*["end"], *["backspace"] * 20, *"nothing", "enter")
                await until(pilot, lambda: "no workload named" in text_of(pilot))
            whole = Region(0, 0, 80, 24)
            buttons = list(app.screen.query(Button))
            assert len(buttons) == 2 and all(whole.contains_region(button.region) for button in buttons)
            assert all(str(button.label) in text_of(pilot) for button in buttons)


async def test_resume_starts_an_engine_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(steering, "resume_run", lambda store, home, uuid: started.append(uuid))
    make_run(tmp_path)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot))
            await pilot.press("r")
            await until(pilot, lambda: started == [UUID])


def test_a_command_without_an_engine_is_an_error(tmp_path: Path) -> None:
    make_run(tmp_path)
    with pytest.raises(NoEngineError, match="no engine"):
        steering.send(tmp_path, UUID, EngineCommand.PAUSE)


def test_a_command_reaches_the_engine(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine:
        steering.send(tmp_path, UUID, EngineCommand.PAUSE)
        assert engine.commands == [EngineCommand.PAUSE]  # it is obeyed when `send` returns
        with pytest.raises(NoEngineError):
            steering.send(tmp_path, "0" * 32, EngineCommand.PAUSE)


async def test_trials_and_the_screen_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path, trials=7)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "7 recorded" in text_of(pilot))
            await pilot.press("e")
            await until(pilot, lambda: "Export of run 3f2a91bc" in text_of(pilot))
            await pilot.press("enter")
            path = tmp_path / "3f2a91bc-trials.csv"
            await until(pilot, path.exists)
            await until(pilot, lambda: shown(pilot, RunScreen))
            await pilot.press("e")
            await until(pilot, lambda: isinstance(app.focused, Input))
            await pilot.press("shift+tab")
            await until(pilot, lambda: isinstance(app.focused, RadioSet))
            await pilot.press("down", "enter")
            await until(pilot, lambda: "3f2a91bc-report.html" in text_of(pilot))
            await pilot.press("down", "down", "enter")
            await until(pilot, lambda: "3f2a91bc-screen.svg" in text_of(pilot))
            await pilot.press("tab")
            await until(pilot, lambda: isinstance(app.focused, Input))
            await pilot.press("enter")
            await until(pilot, (tmp_path / "3f2a91bc-screen.svg").exists)
    rows = list(csv.DictReader(path.open()))
    assert [row["ordinal"] for row in rows] == [str(ordinal) for ordinal in range(7)]
    assert rows[0]["microseconds"] == str(trial(0).microseconds) and rows[2]["reason"] == "acc_overflow"
    assert rows[0]["tile_w"] == "14"


def test_a_fleets_log_is_for_its_own_target(tmp_path: Path) -> None:
    """A fleet's log is for its own target, as in `hilt log export`; the fleet's boards are alike."""
    run = replace(real_run(tmp_path), uuid="f" * 32, board="virtual:ultra96,virtual:ultra96@two")
    with Store(database_path(tmp_path)) as store:
        store.create_run(run)
        said = export(store, run.uuid, ExportKind.AUTOTVM, tmp_path / "vta.log", "")
    assert "0 trials for TVM's target ultra96" in said


def test_the_report_is_exported(tmp_path: Path) -> None:
    run = real_run(tmp_path)
    with Store(database_path(tmp_path)) as store:
        path = tmp_path / "report.html"
        assert export(store, run.uuid, ExportKind.REPORT, path, "") == f"the report, to {path}"
    page = path.read_text()
    assert "97.0" in page and f"{WORKLOAD} on virtual:pynq" in page


async def test_the_palette_holds_every_command_of_the_screen(tmp_path: Path) -> None:
    make_run(tmp_path)
    with live_engine(tmp_path) as engine, app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: "RUNNING" in text_of(pilot))
            titles = [command.title for command in app.get_system_commands(app.screen)]
            for title in ("Pause (p)", "Resume (r)", "Stop (s)", "Export (e)", "New (n)", "Space (4)", "Filter (f)"):
                assert title in titles
            await pilot.press("ctrl+p")
            await until(pilot, lambda: isinstance(app.focused, Input))
            await pilot.press(*"pause")
            await until(pilot, lambda: "Nothing new is given" in text_of(pilot))
            await pilot.press("enter")
            await until(pilot, lambda: engine.commands == [EngineCommand.PAUSE])
