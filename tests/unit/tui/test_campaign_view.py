"""A campaign as its screen shows it: the state of each layer in the word of the documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import DataTable

from hilt.campaign.budget import Budget
from hilt.engine.run_files import RunFiles
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import RunState, Store, database_path
from hilt.store.campaigns import add_seconds, end_layer, set_campaign_state
from hilt.tui.app import HiltApp
from hilt.tui.campaign_view import CampaignView
from hilt.tui.screens import campaign_screen
from hilt.tui.widgets.latency_curve import LatencyCurve
from tests.unit.report import campaign_store
from tests.unit.report.campaign_store import make

from .live import text_of, until


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (RunState.STOPPED, "stopped"),
        (RunState.RUNNING, "interrupted"),
        (RunState.FAILED, "failed"),
        (RunState.FINISHED, "finished"),
    ],
)
def test_a_layer_of_a_stopped_campaign_is_not_said_to_be_skipped(tmp_path: Path, state: RunState, word: str) -> None:
    """Skipped means no more trials, for good; `hilt resume` goes on with a stopped layer."""
    campaign, run = make(tmp_path, ended=False)
    with Store(database_path(tmp_path)) as store:
        store.set_state(run.uuid, state)
        set_campaign_state(store, campaign.uuid, RunState.STOPPED)
        view = CampaignView.load(store, tmp_path, campaign)
        assert view.layer_state(view.result.layers[0]) == word


def test_a_layer_that_was_skipped_is_said_to_be(tmp_path: Path) -> None:
    campaign, run = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        end_layer(store, run.uuid, "skipped")
        view = CampaignView.load(store, tmp_path, campaign)
        assert [view.layer_state(layer) for layer in view.result.layers] == ["skipped", "finished"]


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(trials=36), "9 of 36 trials ████░░░░░░░░░░░░ 25%, 1 min 15 s left"),
        (Budget(trials=9), "9 of 9 trials ████████████████ 100%"),
        (Budget(seconds=100.0), "9 trials ████░░░░░░░░░░░░ 25%, 1 min 15 s left"),
        (Budget(seconds=20.0), "9 trials ████████████████ 100%"),
    ],
    ids=["trials", "trials-spent", "seconds", "seconds-spent"],
)
async def test_a_campaign_has_a_time_left_while_an_engine_spends_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: Budget, words: str
) -> None:
    """25 seconds were spent. After its budget a campaign goes on with its last stage, which has a time of its own."""
    monkeypatch.setattr(campaign_screen, "_READ_SECONDS", 0.05)
    campaign, _ = make(tmp_path, ended=False, budget=budget)
    with Store(database_path(tmp_path)) as store:
        add_seconds(store, campaign.uuid, 25.0)
        set_campaign_state(store, campaign.uuid, RunState.RUNNING)
        app = HiltApp(tmp_path, store, campaign)
        async with app.run_test(size=(80, 24)) as pilot:
            with RunFiles(tmp_path, campaign.uuid).locked():
                await until(pilot, lambda: "RUNNING" in text_of(pilot) and f" {words}\n" in text_of(pilot))
            await until(pilot, lambda: "INTERRUPTED" in text_of(pilot) and " left" not in text_of(pilot))


@pytest.mark.parametrize(("size", "beside"), [((80, 24), False), ((120, 40), True)])
async def test_the_curve_of_a_network_of_many_layers_is_a_key_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], beside: bool
) -> None:
    layers = [Layer(f"resnet18.C{number}", nodes=[f"conv_{number}"]) for number in range(2, 12)]
    monkeypatch.setattr(campaign_store, "NETWORK", Network("net", (*layers, Layer("resnet18.C5", nodes=["last"])), {}))
    monkeypatch.setattr(campaign_store, "LATENCIES", [[9_000.0, 5_000.0]] * 11)
    monkeypatch.setattr(campaign_store, "MOST_TRIALS", 44)
    campaign, _ = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        app = HiltApp(tmp_path, store, campaign)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: "resnet18.C11" in text_of(pilot))
            curve, table = app.screen.query_one(LatencyCurve), app.screen.query_one(DataTable)
            await until(pilot, lambda: curve.display is beside)
            await pilot.press("v")
            await until(pilot, lambda: "best ─" in text_of(pilot) and curve.size.height >= 12)
            assert not table.display and "trials" in text_of(pilot)
            await pilot.press("v")
            await until(pilot, lambda: table.has_focus and curve.display is beside)
            assert "resnet18.C11" in text_of(pilot)
