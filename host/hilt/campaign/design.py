"""What a campaign is made of: the record of it, and a run for each layer."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

from hilt.campaign.allocation import MINIMUM_TRIALS
from hilt.campaign.budget import Budget
from hilt.engine.campaigns import network_of, plain_settings, run_of_layer, spec_of
from hilt.engine.errors import SettingsError
from hilt.engine.process import Boards
from hilt.engine.run_spec import RunSpec, make_run
from hilt.schedule.onnx_model import Layer, Network, OnnxError
from hilt.store import Campaign, Run, Store


def make_campaign(network: Network, settings: RunSpec, budget: Budget) -> Campaign:
    """A new campaign; `trials` of the settings is not looked at. Raises SettingsError for too small a budget, OnnxError
    for a network without a layer that VTA can run."""
    if not network.supported:
        raise OnnxError(f"{network.name} has no layer that VTA can run")
    needed = MINIMUM_TRIALS * len(network.supported)
    if budget.trials is not None and budget.trials < needed:
        raise SettingsError(
            f"a budget of {budget.trials} trials is too small: each of {network.name}'s {len(network.supported)} "
            f"layers gets at least {MINIMUM_TRIALS}, which is {needed}"
        )
    return Campaign(
        uuid.uuid4().hex, network.name, network.to_dict(), plain_settings(settings), time.time(), budget.to_dict()
    )


def make_runs(campaign: Campaign, boards: Boards, board: str) -> list[Run]:
    """A run for each layer that has none, not stored. Raises as hilt.engine.run_spec.design, and describe_board."""
    described = boards.describe_board(board)
    runs = [make_run(spec_of(campaign, layer, board), described, campaign.uuid) for layer in layers_of(campaign)]
    # What a layer is given in the end nobody knows yet: at most all of the budget, and all of its space.
    most = Budget.from_dict(campaign.budget or {}).trials
    return [replace(run, budget=min(run.space_size, most or run.space_size)) for run in runs]


def layer_runs(store: Store, campaign: Campaign, boards: Boards) -> list[tuple[Layer, Run]]:
    """Every layer with its run; those that a start which was interrupted did not get to are created."""
    layers = layers_of(campaign)
    found = [run_of_layer(store, campaign, layer) for layer in layers]
    if any(run is None for run in found):
        known = next((run.board for run in found if run is not None), campaign.settings["board"])
        made = {run.workload: run for run in make_runs(campaign, boards, known)}
        for place, layer in enumerate(layers):
            if found[place] is None:
                store.create_run(made[layer.workload])
                found[place] = made[layer.workload]
    return [(layer, run) for layer, run in zip(layers, found, strict=True) if run is not None]


def layers_of(campaign: Campaign) -> tuple[Layer, ...]:
    """Those that VTA can run, in the order of the model."""
    return network_of(campaign).supported
