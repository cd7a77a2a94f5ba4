"""Makes a campaign: its record, and a run for each layer."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from hilt.campaign.allocation import MINIMUM_TRIALS
from hilt.campaign.budget import Budget
from hilt.engine.campaign_results import network_of, run_of_layer
from hilt.engine.errors import SettingsError
from hilt.engine.run_spec import RunSpec, make_run
from hilt.measure import BoardDescription
from hilt.schedule.onnx_model import Layer, Network, require_layers
from hilt.store import Campaign, Run, Store

if TYPE_CHECKING:
    from hilt.engine.process import Boards


def make_campaign(network: Network, settings: RunSpec, budget: Budget) -> Campaign:
    """Return a new campaign; `settings.trials` is ignored.

    Raises:
        SettingsError: The budget is too small.
        OnnxError: VTA can run no layer of the network.
    """
    require_layers(network)
    needed = MINIMUM_TRIALS * len(network.supported)
    if budget.trials is not None and budget.trials < needed:
        raise SettingsError(
            f"a budget of {budget.trials} trials is too small: each of {network.name}'s {len(network.supported)} "
            f"layers gets at least {MINIMUM_TRIALS}, which is {needed}"
        )
    return Campaign(uuid.uuid4().hex, network.name, network.to_dict(), _plain(settings), time.time(), budget.to_dict())


def make_runs(campaign: Campaign, board: BoardDescription) -> list[Run]:
    """Return a new run for each layer, not stored. Raises the errors of hilt.engine.run_spec.make_run."""
    layers = network_of(campaign).supported
    runs = [make_run(_spec_of(campaign, layer, board.name), board, campaign.uuid) for layer in layers]
    # The share of a layer is not known yet: at most the whole budget, and its whole space.
    most = Budget.from_dict(campaign.budget).trials
    return [replace(run, budget=min(run.space_size, most or run.space_size)) for run in runs]


def layer_runs(store: Store, campaign: Campaign, boards: Boards) -> list[tuple[Layer, Run]]:
    """Return every layer with its run; create the runs that an interrupted start did not create."""
    layers = network_of(campaign).supported
    found = [run_of_layer(store, campaign, layer) for layer in layers]
    if any(run is None for run in found):
        known = next((run.board for run in found if run is not None), campaign.settings["board"])
        made = {run.workload: run for run in make_runs(campaign, boards.describe_board(known))}
        for place, layer in enumerate(layers):
            if found[place] is None:
                store.create_run(made[layer.workload])
                found[place] = made[layer.workload]
    return [(layer, run) for layer, run in zip(layers, found, strict=True) if run is not None]


def _spec_of(campaign: Campaign, layer: Layer, board: str) -> RunSpec:
    return RunSpec(**{**campaign.settings, "workload": layer.workload, "board": board})


def _plain(settings: RunSpec) -> Mapping[str, Any]:
    """Return the settings that all runs of a campaign share, as its record holds them."""
    values = asdict(replace(settings, tuner_options=dict(settings.tuner_options)))
    del values["workload"]
    return values
