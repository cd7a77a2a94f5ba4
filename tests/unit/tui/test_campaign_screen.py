"""The screen of a campaign: its head, its table's figures, its keys and when they do nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from hilt.engine.events import EngineCommand
from hilt.store import Campaign, Run, RunState, Store, database_path
from hilt.store.campaigns import set_campaign_state
from hilt.tui import steering
from hilt.tui.app import HiltApp
from hilt.tui.screens.campaign_screen import CampaignScreen
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.screens.runs_screen import RunsScreen
from hilt.tui.widgets.latency_curve import LatencyCurve
from tests.unit.report import campaign_store
from tests.unit.report.campaign_store import make

from .live import text_of, until

NARROW = ["layer", "times", "trials", "of trials", "best µs", "gain", "share", "state"]
WIDE = [*NARROW, "fallback µs", "% of bound", "valid", "all µs", "run"]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The commands that the screen gives to engines."""
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(steering, "send", lambda home, uuid, command: found.append((uuid, command)))
    monkeypatch.setattr(steering, "resume_campaign", lambda home, uuid: found.append((uuid, "resume")))
    return found


@asynccontextmanager
async def shown(
    home: Path, state: RunState = RunState.FINISHED, size: tuple[int, int] = (160, 40)
) -> AsyncIterator[tuple[Pilot[None], CampaignScreen, Campaign, Run]]:
    campaign, run = make(home)
    with Store(database_path(home)) as store:
        set_campaign_state(store, campaign.uuid, state)
        app = HiltApp(home, store, campaign)
        async with app.run_test(size=size, notifications=True) as pilot:
            await until(pilot, lambda: "resnet18.C10" in text_of(pilot))
            assert isinstance(app.screen, CampaignScreen)
            yield pilot, app.screen, campaign, run


def rows_of(screen: CampaignScreen) -> list[dict[str, str]]:
    table = screen.query_one(DataTable)
    names = [str(column.label).strip() for column in table.columns.values()]
    return [
        dict(zip(names, (str(cell).strip() for cell in table.get_row_at(row)), strict=True))
        for row in range(table.row_count)
    ]


def told(pilot: Pilot[None]) -> list[str]:
    return [
        f"{notice.title}: {notice.message}" if notice.title else notice.message for notice in pilot.app._notifications
    ]


async def test_a_wide_table_has_each_layers_figures(tmp_path: Path) -> None:
    async with shown(tmp_path) as (_, screen, _, run):
        first, second = rows_of(screen)
        assert list(first) == WIDE
        assert (first["layer"], first["times"], first["trials"], first["state"]) == (
            "resnet18.C5",
            "3",
            "5",
            "finished",
        )
        assert (second["layer"], second["times"], second["trials"]) == ("resnet18.C10", "1", "4")
        assert (first["of trials"], second["of trials"]) == ("████░░░░", "████░░░░"), "5 and 4 of 9"
        assert (first["fallback µs"], second["fallback µs"]) == ("44,000.0", "12,000.0")
        assert (first["gain"], second["gain"]) == (f"{44_000 / 4_700.5:.2f}x", f"{12_000 / 350.75:.2f}x")
        assert (first["all µs"], second["all µs"]) == ("14,101.5", "350.8")
        assert (first["share"], second["share"]) == (f"{100 * 14_101.5 / 14_452.25:.1f}%", "2.4%")
        assert (first["valid"], second["valid"]) == ("80%", "75%")
        assert first["run"] == run.uuid[:8] and first["best µs"].startswith("4,700.5")
        bound = 100 * run.bound_microseconds / 4_700.5
        assert first["% of bound"] == f"{bound:.1f}"


@pytest.mark.parametrize(("columns", "names"), [(149, NARROW), (150, WIDE)])
async def test_the_table_has_the_columns_that_there_is_room_for(tmp_path: Path, columns: int, names: list[str]) -> None:
    async with shown(tmp_path, size=(columns, 40)) as (pilot, screen, _, _):
        assert list(rows_of(screen)[0]) == names
        await pilot.press("down")
        await pilot.resize_terminal(230 - columns, 40)
        other = WIDE if 230 - columns >= 150 else NARROW
        await until(pilot, lambda: list(rows_of(screen)[0]) == other)
        await until(pilot, lambda: screen.query_one(DataTable).cursor_row == 1)


async def test_the_head_names_campaign_network_board_state_and_progress(tmp_path: Path) -> None:
    async with shown(tmp_path) as (_, screen, campaign, _):
        lines = str(screen.query_one("#campaign-words", Static).content).splitlines()
        assert lines[0] == f"{campaign.uuid[:8]}  {campaign_store.NETWORK.name} on table:plain  FINISHED"
        assert lines[1] == "9 of 9 trials ████████████████ 100%"
        assert any("times the fallback's speed" in line for line in lines[2:])


async def test_a_campaign_that_has_finished_is_not_paused(tmp_path: Path, asked: list[tuple[Any, ...]]) -> None:
    async with shown(tmp_path) as (pilot, _, campaign, _):
        await pilot.press("p")
        await until(pilot, lambda: told(pilot))
        assert told(pilot) == [f"Nothing to pause: campaign {campaign.uuid[:8]} has finished"] and asked == []


@pytest.mark.parametrize(("key", "command", "word"), [("p", EngineCommand.PAUSE, "pause"), ("r", "resume", "resume")])
async def test_a_key_asks_the_engine(
    tmp_path: Path, asked: list[tuple[Any, ...]], key: str, command: Any, word: str
) -> None:
    async with shown(tmp_path, RunState.STOPPED) as (pilot, _, campaign, _):
        await pilot.press(key)
        await until(pilot, lambda: told(pilot))
        assert asked == [(campaign.uuid, command)] and told(pilot) == [f"asked the engine to {word}"]


@pytest.mark.parametrize(
    ("key", "title", "agrees"),
    [("s", "Stop the campaign of ", True), ("x", "Skip resnet18.C10?", True), ("x", "Skip resnet18.C10?", False)],
)
async def test_stop_and_skip_ask_first(
    tmp_path: Path, asked: list[tuple[Any, ...]], key: str, title: str, agrees: bool
) -> None:
    async with shown(tmp_path, RunState.STOPPED) as (pilot, screen, campaign, _):
        await pilot.press("down")
        await until(pilot, lambda: screen.query_one(DataTable).cursor_row == 1)
        selected = screen.selected_run
        await pilot.press(key)
        await until(pilot, lambda: title in text_of(pilot))
        await pilot.press("y" if agrees else "escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        if not agrees:
            await pilot.pause()
            assert asked == []
            return
        await until(pilot, lambda: told(pilot))
        assert asked == [(campaign.uuid if key == "s" else selected, EngineCommand.STOP)]
        assert told(pilot) == ["asked the engine to stop" if key == "s" else "asked the engine to skip it"]


async def test_an_engine_that_refuses_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(home: Path, uuid: str) -> None:
        raise ValueError("no [bold]board")

    monkeypatch.setattr(steering, "resume_campaign", refuse)
    async with shown(tmp_path, RunState.STOPPED) as (pilot, _, _, _):
        await pilot.press("r")
        await until(pilot, lambda: told(pilot))
        assert told(pilot) == ["Could not resume: no [bold]board"]


async def test_enter_shows_a_layers_run(tmp_path: Path) -> None:
    async with shown(tmp_path) as (pilot, screen, _, run):
        assert screen.selected_run == run.uuid
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))


async def test_what_was_to_follow_a_drawing_may_come_after_the_screen_has_left(tmp_path: Path) -> None:
    async with shown(tmp_path) as (pilot, screen, _, _):
        curve = screen.query_one(LatencyCurve)
        await pilot.press("7")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen) and not screen.is_attached)
        assert not screen.children
        screen._give_room()
        curve._draw()


async def test_next_goes_to_the_older_campaign_and_round(tmp_path: Path) -> None:
    older, _ = make(tmp_path)
    async with shown(tmp_path) as (pilot, screen, campaign, _):
        names = {older.uuid, campaign.uuid}
        assert len(names) == 2 and screen.view is not None
        first = screen.view.result.campaign.uuid
        await pilot.press("c")
        await until(
            pilot, lambda: screen.view is not None and screen.view.result.campaign.uuid == (names - {first}).pop()
        )
        await pilot.press("c")
        await until(pilot, lambda: screen.view is not None and screen.view.result.campaign.uuid == first)


async def test_a_store_without_campaigns_says_how_one_begins(tmp_path: Path, asked: list[tuple[Any, ...]]) -> None:
    with Store(database_path(tmp_path)) as store:
        app = HiltApp(tmp_path, store, None)
        async with app.run_test(size=(120, 30), notifications=True) as pilot:
            await pilot.press("1")
            await until(pilot, lambda: "no campaigns yet; n begins one" in text_of(pilot))
            screen = app.screen
            assert isinstance(screen, CampaignScreen) and screen.view is None and screen.selected_run is None
            await pilot.press("p", "r", "s", "c", "v", "v", "enter")
            await pilot.press("x")
            await until(pilot, lambda: told(pilot))
            assert told(pilot) == ["a layer that has not begun cannot be skipped yet"] and asked == []
