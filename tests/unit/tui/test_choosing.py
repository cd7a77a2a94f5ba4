"""The choice of the run on the screen, and the view of a run without an engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import DataTable

from hilt.store import RunState, Store, database_path
from hilt.tui.screens.campaign_screen import CampaignScreen
from hilt.tui.screens.help_screen import HelpScreen
from hilt.tui.screens.log_screen import LogScreen
from hilt.tui.screens.run_screen import RunScreen
from hilt.tui.screens.runs_screen import RunsScreen
from tests.unit.report.campaign_store import make as make_campaign

from . import screenshot
from .live import UUID, app_of, live_engine, make_run, run_screen, text_of, trial, until

OTHER = "77777777-0000-4000-8000-000000000002"


def loaded(pilot) -> bool:
    return isinstance(pilot.app.screen, RunScreen) and pilot.app.screen.view is not None


async def test_no_runs_is_said(tmp_path: Path) -> None:
    with app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: "no runs yet; n begins one, or `hilt tune`" in text_of(pilot))


async def test_a_list_that_fills_says_so(tmp_path: Path) -> None:
    with app_of(tmp_path) as app:
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: "no runs yet" in text_of(pilot))
            make_run(tmp_path)
            await pilot.press("f5")
            await until(pilot, lambda: "1 row, newest first" in text_of(pilot) and "no runs yet" not in text_of(pilot))
            for ordinal in range(100):
                make_run(tmp_path, uuid=f"{ordinal:032x}")
            await pilot.press("f5")
            await until(pilot, lambda: "101 rows, newest first" in text_of(pilot))
            assert app.screen.query_one(DataTable).row_count == 101


async def test_the_live_run_is_chosen_before_the_newest(tmp_path: Path) -> None:
    make_run(tmp_path, trials=2)
    make_run(tmp_path, uuid=OTHER, created=2.0)
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: loaded(pilot))
            assert run_screen(pilot).view.run.uuid == UUID


async def test_a_live_run_is_found_behind_a_campaigns_many_layers(tmp_path: Path) -> None:
    make_run(tmp_path)
    for ordinal in range(30):
        make_run(tmp_path, uuid=f"{ordinal:032x}")
    with live_engine(tmp_path), app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: loaded(pilot))
            assert run_screen(pilot).watched.uuid == UUID


@pytest.mark.parametrize("identifier", ["last", None, "beginning"])
async def test_a_campaign_is_shown_by_its_id_or_as_the_newest(tmp_path: Path, identifier: str | None) -> None:
    campaign = make_campaign(tmp_path)[0]
    with app_of(tmp_path, campaign.uuid[:8] if identifier == "beginning" else identifier) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: isinstance(app.screen, CampaignScreen))
            await until(pilot, lambda: campaign.uuid[:8] in text_of(pilot))
            assert (
                app.farewell == f"Campaign {campaign.uuid[:8]} is finished. `hilt show {campaign.uuid[:8]}` prints it."
            )


async def test_a_key_of_a_screen_opens_it_for_the_selected_layers_run(tmp_path: Path) -> None:
    """Without a run that is watched: a campaign was opened first."""
    campaign, first = make_campaign(tmp_path)[:2]
    with app_of(tmp_path, campaign.uuid[:8]) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: isinstance(app.screen, CampaignScreen) and app.screen.selected_run == first.uuid)
            await pilot.press("6")
            await until(pilot, lambda: isinstance(app.screen, LogScreen))
            assert app.screen.watched.uuid == first.uuid


async def test_the_newest_run_is_chosen_where_none_is_live(tmp_path: Path) -> None:
    make_run(tmp_path, trials=2)
    make_run(tmp_path, uuid=OTHER, created=2.0)
    with app_of(tmp_path) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: loaded(pilot))
            assert run_screen(pilot).view.run.uuid == OTHER


async def test_the_best_of_a_board_without_counters_has_no_cycles(tmp_path: Path) -> None:
    make_run(tmp_path)
    with Store(database_path(tmp_path)) as store:
        store.record(UUID, [replace(trial(28), ordinal=0, cycles=None)])
    with app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: f"best {trial(28).microseconds:,.1f} µs (trial 0)" in text_of(pilot))


async def test_several_live_runs_are_listed_and_one_is_chosen(tmp_path: Path) -> None:
    make_run(tmp_path, trials=2)
    make_run(tmp_path, uuid=OTHER, created=2.0)
    with live_engine(tmp_path), live_engine(tmp_path, OTHER), app_of(tmp_path) as app:
        async with app.run_test(size=(120, 24)) as pilot:
            await until(pilot, lambda: "3f2a91bc    running" in text_of(pilot))
            await pilot.press("down", "enter")
            await until(pilot, lambda: loaded(pilot))
            assert run_screen(pilot).view.run.uuid == UUID
            await pilot.press("l")
            await until(pilot, lambda: isinstance(app.screen, RunsScreen))


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (RunState.FINISHED, "FINISHED"),
        (RunState.FAILED, "FAILED: the disk is full"),
        (RunState.STOPPED, "STOPPED: the disk is full"),
        (RunState.RUNNING, "INTERRUPTED (was running): `hilt resume 3f2a91bc` goes on"),
        (RunState.PAUSED, "INTERRUPTED (was paused)"),
    ],
)
async def test_a_run_without_an_engine_shows_its_state(tmp_path: Path, state: RunState, words: str) -> None:
    make_run(tmp_path, trials=4)
    with Store(database_path(tmp_path)) as store:
        store.set_state(UUID, state, "" if state is RunState.FINISHED else "the disk is full")
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: loaded(pilot))
            await until(pilot, lambda: words in text_of(pilot))
            await until(pilot, lambda: "virtual:pynq: unknown (engine not running)" in text_of(pilot))


async def test_a_run_without_trials_is_drawn(tmp_path: Path) -> None:
    make_run(tmp_path)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: loaded(pilot))
            await until(pilot, lambda: "no valid trial yet" in text_of(pilot))
            await until(pilot, lambda: "no trials yet" in text_of(pilot))
            await pilot.press("c", "f", "o", "pageup", "pagedown", "up", "down", "end", "enter")


async def test_help_lists_every_key_with_its_action(tmp_path: Path) -> None:
    make_run(tmp_path)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(size=(120, 70)) as pilot:
            await until(pilot, lambda: loaded(pilot))
            await pilot.press("question_mark")
            await until(pilot, lambda: isinstance(app.screen, HelpScreen))
            await until(pilot, lambda: "keys and words" in text_of(pilot))
            for words in ("p  Nothing new", "/  Only trials", "4  Screen: space", "q  Closes this", "board_lost"):
                await until(pilot, lambda words=words: words in text_of(pilot))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, RunScreen))


async def test_light_and_dark(tmp_path: Path) -> None:
    make_run(tmp_path, trials=9)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test() as pilot:
            await until(pilot, lambda: loaded(pilot))
            for theme in ("textual-light", "textual-dark"):
                await pilot.press("t")
                await until(pilot, lambda theme=theme: app.theme == theme)


def test_without_colour_nothing_is_coloured(tmp_path: Path) -> None:
    """NO_COLOR is read when Textual is loaded, so in another process; its screenshot holds greys only."""
    make_run(tmp_path, trials=9)
    assert colours_of(screenshot_of(tmp_path, {}))
    assert not colours_of(screenshot_of(tmp_path, {"NO_COLOR": "1"}))


def screenshot_of(home: Path, settings: dict[str, str]) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return subprocess.run(
        [sys.executable, "-m", screenshot.__name__, str(home), UUID, "80", "24"],
        cwd=Path(__file__).parents[3],
        env=inherited | settings,
        check=True,
        capture_output=True,
        text=True,
        timeout=240,
    ).stdout


def colours_of(svg: str) -> set[str]:
    """Fills of text and cells that are not grey. The frame that Rich draws around a screenshot is left out."""
    text = re.findall(r"-r\d+ {[^}]*fill: #([0-9a-f]{6})", svg)
    cells = re.findall(r'<rect fill="#([0-9a-f]{6})" x=', svg)
    assert text and cells
    default = "c5c8c6"  # Rich's own, of a style without a colour
    return {each for each in text + cells if not each[:2] == each[2:4] == each[4:] and each != default}


def test_the_package_is_imported_without_textual() -> None:
    subprocess.run(
        [sys.executable, "-c", "import hilt.tui, sys; assert 'textual' not in sys.modules"], check=True, timeout=60
    )


async def test_a_finished_run_has_nothing_to_stop(tmp_path: Path) -> None:
    make_run(tmp_path, trials=4)
    with Store(database_path(tmp_path)) as store:
        store.set_state(UUID, RunState.FINISHED)
    with app_of(tmp_path, UUID) as app:
        async with app.run_test(notifications=True) as pilot:
            await until(pilot, lambda: loaded(pilot))
            await pilot.press("s")
            await until(pilot, lambda: "Nothing to stop" in text_of(pilot))
