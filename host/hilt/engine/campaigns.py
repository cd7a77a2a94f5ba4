"""Networks that are tuned: a run for each different layer, linked in the store, so that what was interrupted goes on."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from hilt.engine.run_spec import RunSpec
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import Campaign, Run, RunState, Store


def open_campaign(store: Store, network: Network, settings: RunSpec) -> Campaign:
    """The newest campaign of the same layers with the same settings whose layers are not all done, else a new one.

    `settings.workload` is the model's file: where it lies makes no difference.
    """
    layers, common = network.to_dict(), plain_settings(settings)
    for known in store.campaigns():
        same = known.budget is None and (known.network, known.settings) == (layers, common)
        if same and unfinished(store, known):
            return known
    campaign = Campaign(uuid.uuid4().hex, network.name, layers, common, time.time())
    store.create_campaign(campaign)
    return campaign


def network_of(campaign: Campaign) -> Network:
    return Network.from_dict(campaign.network)


def spec_of(campaign: Campaign, layer: Layer, board: str | None = None) -> RunSpec:
    """Of one layer's run; on another board where one is given."""
    values: dict[str, Any] = {**campaign.settings, "workload": layer.workload}
    return RunSpec(**values | ({"board": board} if board else {}))


def run_of_layer(store: Store, campaign: Campaign, layer: Layer) -> Run | None:
    """The layer's run, the newest where there are several."""
    return next((run for run in reversed(store.runs_of(campaign.uuid)) if run.workload == layer.workload), None)


def unfinished(store: Store, campaign: Campaign) -> list[Layer]:
    """Layers that VTA can run and whose budget is not spent, in the order of the model."""
    done = {run.workload for run in store.runs_of(campaign.uuid) if run.state is RunState.FINISHED}
    return [layer for layer in network_of(campaign).supported if layer.workload not in done]


def plain_settings(settings: RunSpec) -> Mapping[str, Any]:
    """What all runs of a campaign have in common, as its record holds it."""
    values = asdict(replace(settings, tuner_options=dict(settings.tuner_options)))
    del values["workload"]
    return values
