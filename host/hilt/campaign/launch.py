"""Starts campaigns: records in the store, then a process of its own that outlives whoever asked for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hilt import measure
from hilt.campaign.budget import Budget
from hilt.campaign.design import layer_runs, make_campaign, make_runs
from hilt.engine.errors import EngineStartError, RunOverError
from hilt.engine.launch import is_served, spawn, spawn_unless_served
from hilt.engine.process import Boards
from hilt.engine.run_spec import RunSpec, check_same
from hilt.schedule.onnx_model import Network
from hilt.store import Campaign, RunState, Store, UnknownRunError, database_path
from hilt.store.campaigns import move_campaign, set_campaign_state

ENGINE = (sys.executable, "-m", "hilt.campaign")


def start(
    network: Network,
    settings: RunSpec,
    budget: Budget,
    home: Path,
    *,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Campaign:
    """Makes a new campaign and starts its process; returns when clients can attach (hilt.engine.client.EngineClient, by
    the campaign's uuid).

    Raises SettingsError, OnnxError, StoreError, EngineStartError, and what describe_board and design raise.
    """
    campaign = make_campaign(network, settings, budget)
    runs = make_runs(campaign, boards.describe_board(settings.board))
    with Store(database_path(home)) as store:
        store.create_campaign(campaign)
        for run in runs:
            store.create_run(run)
        try:
            spawn(campaign.uuid, home, engine)
        except EngineStartError as error:
            set_campaign_state(store, campaign.uuid, RunState.FAILED, str(error), error.failure)
            raise
    return campaign


def resume(
    identifier: str,
    home: Path,
    *,
    board: str | None = None,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Campaign:
    """Starts a process for a campaign that has none; does nothing where one is running. Returns when clients can
    attach.

    `board` moves it to another board of the same kind. Raises UnknownRunError, RunOverError, RunMismatchError,
    StoreError, EngineStartError.
    """
    with Store(database_path(home)) as store:
        campaign = find(store, identifier)
        if is_served(home, campaign.uuid):
            return campaign
        if campaign.state is RunState.FINISHED:
            short = campaign.uuid[:8]
            raise RunOverError(f"campaign {short} has finished; `hilt show {short}` shows it")
        if board is not None:
            described = boards.describe_board(board)
            for _, run in layer_runs(store, campaign, boards):
                check_same(run, described)
            move_campaign(store, campaign.uuid, board)
    spawn_unless_served(campaign.uuid, home, engine)
    return campaign


def find(store: Store, identifier: str) -> Campaign:
    """Return the campaign of this uuid or of the only one that begins with it; `last` is the newest.

    Raises UnknownRunError, AmbiguousRunError.
    """
    campaign = next(iter(store.campaigns()), None) if identifier == "last" else store.campaign(identifier)
    if campaign is None:
        raise UnknownRunError(f"there is no campaign {identifier!r}; `hilt campaigns` lists them")
    return campaign
