"""The screen of a campaign beside an engine that hangs, and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.engine import client
from hilt.engine.run_files import RunFiles
from hilt.store import RunState
from hilt.store.campaigns import set_campaign_state
from hilt.tui.screens import campaign_screen

from .live import app_of, text_of, until
from .test_screens import make_campaign


async def test_a_campaign_whose_engine_hangs_is_said_and_one_that_has_finished_is_not_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_screen, "_LISTEN_SECONDS", 0.5)
    monkeypatch.setattr(client, "_HELLO_SECONDS", 0.2)
    campaign = make_campaign(tmp_path)
    files = RunFiles(tmp_path, campaign.uuid)
    with app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            await until(pilot, lambda: "INTERRUPTED (was created): r goes on" in text_of(pilot))
            with files.locked(), files.listen():  # as one whose process is stopped
                await until(pilot, lambda: "NOT ANSWERING: an engine holds it" in text_of(pilot))
            await until(pilot, lambda: "INTERRUPTED (was created)" in text_of(pilot))
            set_campaign_state(app._store, campaign.uuid, RunState.FINISHED)
            await until(pilot, lambda: "FINISHED" in text_of(pilot))
            await pilot.press("p")
            await until(pilot, lambda: "campaign cccccccc has finished" in text_of(pilot))
