"""The line that the window leaves in the terminal, and its filter of the drawing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.segment import Segment as RichSegment
from rich.style import Style

from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, RunState, Store, database_path
from hilt.store.campaigns import set_campaign_state
from hilt.tui.app import HiltApp, PlainText
from hilt.tui.run_view import Link

UUID = "c" * 32


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ({}, "Run 3f2a91bc goes on. `hilt tui 3f2a91bc` attaches again."),
        ({"link": Link.SILENT}, "Run 3f2a91bc: its engine does not answer. `hilt tui 3f2a91bc` looks again."),
        (
            {"link": Link.GONE, "interrupted": True},
            "Run 3f2a91bc is interrupted: `hilt resume 3f2a91bc` goes on with it.",
        ),
        ({"link": Link.NONE, "over": True}, "Run 3f2a91bc is stopped. `hilt show 3f2a91bc` prints it."),
        ({"link": Link.SILENT, "over": True}, "Run 3f2a91bc is stopped. `hilt show 3f2a91bc` prints it."),
    ],
)
def test_a_run_is_left_with_its_state_and_the_command_that_goes_on(
    tmp_path: Path, view: dict[str, Any], said: str
) -> None:
    seen = {"short_id": "3f2a91bc", "link": Link.ATTACHED, "over": False, "interrupted": False, "state": "stopped"}
    with Store(database_path(tmp_path)) as store:
        app = HiltApp(tmp_path, store)
        assert app.farewell is None, "nothing was shown"
        watch: Any = SimpleNamespace(view=SimpleNamespace(**{**seen, **view}))
        app._watch = watch
        assert app.farewell == said


@pytest.mark.parametrize(
    ("state", "running", "said"),
    [
        (RunState.RUNNING, True, "Campaign cccccccc goes on. `hilt tui cccccccc` attaches again."),
        (RunState.CREATED, False, "Campaign cccccccc is interrupted: `hilt resume cccccccc` goes on with it."),
        (RunState.RUNNING, False, "Campaign cccccccc is interrupted: `hilt resume cccccccc` goes on with it."),
        (RunState.PAUSED, False, "Campaign cccccccc is interrupted: `hilt resume cccccccc` goes on with it."),
        (RunState.STOPPED, False, "Campaign cccccccc is stopped. `hilt show cccccccc` prints it."),
        (RunState.FINISHED, False, "Campaign cccccccc is finished. `hilt show cccccccc` prints it."),
    ],
)
def test_a_campaign_is_left_likewise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: RunState, running: bool, said: str
) -> None:
    monkeypatch.setattr(RunFiles, "is_running", lambda self: running and self.uuid == UUID)
    with Store(database_path(tmp_path)) as store:
        store.create_campaign(Campaign(UUID, "little", {}, {}, 1.0, {"trials": 40}))
        set_campaign_state(store, UUID, state)
        app = HiltApp(tmp_path, store)
        app._campaign = "d" * 32
        assert app.farewell is None, "the campaign is not there any more"
        app._campaign = UUID
        assert app.farewell == said


def test_control_characters_are_not_drawn_and_other_parts_stay_the_same() -> None:
    plain, wild = RichSegment("plain"), RichSegment("a\x1b[2Jb\x07", Style(bold=True))
    filtered: Any = PlainText()
    found = filtered.apply([plain, wild], None)
    assert found[0] is plain
    assert found[1] == RichSegment("a[2Jb", Style(bold=True))
