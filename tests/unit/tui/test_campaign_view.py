"""A campaign as its screen shows it: the state of each layer in the word of the documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import DataTable

from hilt.schedule.onnx_model import Layer, Network
from hilt.store import RunState, Store, database_path
from hilt.store.campaigns import end_layer, set_campaign_state
from hilt.tui.app import HiltApp
from hilt.tui.campaign_view import CampaignView
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
