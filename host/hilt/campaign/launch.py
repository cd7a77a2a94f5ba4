"""Starts campaigns: records in the store, then a process of its own that outlives the command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hilt import measure
from hilt.campaign.budget import Budget
from hilt.campaign.design import layer_runs, make_campaign, make_runs
from hilt.engine.campaign_results import board_of, network_of
from hilt.engine.errors import EngineStartError, RunOverError
from hilt.engine.launch import is_served, label_anew, spawn, spawn_unless_served
from hilt.engine.run_spec import RunSpec, resolve_run
from hilt.engine.taken_over import continuing, taken_over
from hilt.schedule.onnx_model import Network
from hilt.store import Campaign, Run, RunState, Store, UnknownRunError, database_path
from hilt.store.campaigns import discard_campaign, move_campaign

if TYPE_CHECKING:
    from hilt.engine.process import Boards

ENGINE = (sys.executable, "-m", "hilt.campaign")


def start(
    network: Network,
    settings: RunSpec,
    budget: Budget,
    home: Path,
    *,
    wait: bool = False,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Campaign:
    """Make a new campaign and start its process; return when clients can attach (hilt.engine.client.EngineClient).

    `wait` waits for a board that is in use. A campaign whose process did not start is removed. Raises SettingsError,
    OnnxError, StoreError, EngineStartError, and the errors of describe_board and make_run.
    """
    campaign = make_campaign(network, settings, budget)
    runs = make_runs(campaign, boards.describe_board(settings.board))
    with Store(database_path(home)) as store:
        _begin(store, campaign, runs, engine, wait=wait)
    return campaign


def _begin(store: Store, campaign: Campaign, runs: Sequence[Run], engine: Sequence[str], *, wait: bool) -> None:
    """Store a new campaign and start its process; it is removed if that fails. Raises StoreError, EngineStartError."""
    store.create_campaign(campaign)
    for run in runs:
        store.create_run(run)
    try:
        spawn(campaign.uuid, store.path.parent, engine, wait=wait)
    except EngineStartError:
        discard_campaign(store, campaign.uuid)
        raise


def resume(
    identifier: str,
    home: Path,
    *,
    board: str | None = None,
    wait: bool = False,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Campaign:
    """Start a process for a campaign that has none; return when clients can attach. A running one is left alone.

    `board` moves it to another board of the same kind; `wait` waits for a board that is in use.

    Raises UnknownRunError, RunOverError, RunMismatchError, StoreError, EngineStartError.
    """
    with Store(database_path(home)) as store:
        campaign = find(store, identifier)
        if is_served(home, campaign.uuid):
            return campaign
        if campaign.state is RunState.FINISHED:
            short = campaign.uuid[:8]
            raise RunOverError(f"campaign {short} has finished; `hilt show {short}` shows it")
        store.upgrade()
        if board is not None:
            described = boards.describe_board(board)
            for _, run in layer_runs(store, campaign, boards):
                resolve_run(run, described)
            move_campaign(store, campaign.uuid, board)
    spawn_unless_served(campaign.uuid, home, engine, wait=wait)
    return campaign


def begin_anew(
    identifier: str,
    home: Path,
    *,
    board: str | None = None,
    wait: bool = False,
    boards: Boards = measure,
    engine: Sequence[str] = ENGINE,
) -> Campaign:
    """Start a new campaign with a campaign's network, settings and budget; the old one stays as it is.

    Each layer takes over the verified results of the old one's where they hold (hilt.engine.taken_over).

    Raises UnknownRunError and the errors of `start`.
    """
    with Store(database_path(home)) as store:
        old = find(store, identifier)
        described = boards.describe_board(board or board_of(store, old))
        settings = RunSpec(**{**old.settings, "workload": old.name, "board": described.name})
        new = make_campaign(network_of(old), settings, Budget.from_dict(old.budget))
        finished = old.state is RunState.FINISHED  # begun anew, it is measured again
        before = {} if finished else {run.workload: run for run in store.runs_of(old.uuid)}
        runs = [
            continuing(run, before[run.workload]) if run.workload in before else run
            for run in make_runs(new, described)
        ]
        _begin(store, new, runs, engine, wait=wait)
        label_anew(store, new.uuid, old.uuid, sum(len(taken_over(store, run)) for run in runs))
    return new


def find(store: Store, identifier: str) -> Campaign:
    """Return the campaign of this uuid or of the only one that begins with it; `last` is the newest.

    Raises UnknownRunError, AmbiguousRunError.
    """
    campaign = next(iter(store.campaigns()), None) if identifier == "last" else store.campaign(identifier)
    if campaign is None:
        raise UnknownRunError(f"there is no campaign {identifier!r}; `hilt campaigns` lists them")
    return campaign
