"""A campaign as its screen shows it: the state of each layer in the word of the documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.store import RunState, Store, database_path
from hilt.store.campaigns import end_layer, set_campaign_state
from hilt.tui.campaign_view import CampaignView
from tests.unit.report.campaign_store import make


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
