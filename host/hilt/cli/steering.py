"""`hilt pause`, `hilt resume`, `hilt stop` and `hilt skip`: commands to a run or a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli.files import output_folder
from hilt.cli.formatting import short
from hilt.cli.prose import say_text
from hilt.cli.run_options import Detach, Json, Output, Wait
from hilt.engine.events import EngineCommand
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, Run, RunState, Store, database_path
from hilt.store.identifiers import run_or_campaign

Identifier = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a run or a campaign, the beginning of it, or `last`.")
]


def pause(identifier: Identifier) -> None:
    """Pause a run or a campaign after the trials that are on the board; `hilt resume` goes on."""
    home = paths.home()
    with Store(database_path(home)) as store:
        record = _campaign_of(store, run_or_campaign(store, identifier))
    _send(home, record, EngineCommand.PAUSE, "pauses")


def stop(identifier: Identifier) -> None:
    """Stop a run or a campaign after the trials that are on the board; `hilt resume` goes on."""
    home = paths.home()
    with Store(database_path(home)) as store:
        record = run_or_campaign(store, identifier)
        owner = _campaign_of(store, record)
    if isinstance(record, Run) and isinstance(owner, Campaign):
        raise typer.BadParameter(
            f"run {short(record.uuid)} is a layer of campaign {short(owner.uuid)}; `hilt stop {short(owner.uuid)}` "
            f"stops the campaign, `hilt skip {short(owner.uuid)} {record.workload}` skips the layer"
        )
    _send(home, record, EngineCommand.STOP, "stops")


def skip(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="The id of a campaign, the beginning of it, or `last`.")
    ],
    layer: Annotated[str, typer.Argument(help="A layer, as in resnet18.C4 or C4, or the name of its node.")],
) -> None:
    """Give a layer of a running campaign no more trials, for good; its results count."""
    from hilt.engine.campaign_results import load_result

    home = paths.home()
    with Store(database_path(home)) as store:
        campaign = run_or_campaign(store, identifier)
        if not isinstance(campaign, Campaign):
            raise typer.BadParameter(f"run {short(campaign.uuid)} has no layers; `hilt campaigns` lists the campaigns")
        layers = [result for result in load_result(store, campaign).layers if result.run is not None]
    matches = [
        result
        for result in layers
        if layer in (result.layer.workload, result.layer.workload.rpartition(".")[2], *result.layer.nodes)
    ]
    if not matches:
        names = ", ".join(result.layer.name for result in layers)
        raise typer.BadParameter(f"campaign {short(campaign.uuid)} has no layer {layer!r}; it has {names}")
    run = matches[0].run
    assert run is not None
    _check_running(home, campaign)
    _deliver(home, run.uuid, EngineCommand.STOP)
    say_text(f"{matches[0].layer.name} gets no more trials")


def resume(
    identifier: Identifier,
    board: Annotated[str | None, typer.Option(help="Go on with another board of the same kind.")] = None,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help="Begin anew where the board has changed; results that still hold are taken over.",
        ),
    ] = False,
    output: Output = None,
    wait: Wait = False,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Go on with a run or a campaign that was stopped, paused or interrupted, or attach to one that is running."""
    from hilt.campaign import launch as campaign_launch
    from hilt.cli.attending import attend_run
    from hilt.cli.attending_campaign import attend_campaign
    from hilt.cli.host_keys import confirm_host_key
    from hilt.engine import launch
    from hilt.engine.campaign_results import board_of

    home = paths.home()
    with Store(database_path(home)) as store:
        record = _campaign_of(store, run_or_campaign(store, identifier))
        known = board_of(store, record) if isinstance(record, Campaign) else record.board
    if output is not None:
        if isinstance(record, Run):
            raise typer.BadParameter(f"--output is for campaigns; `hilt report {short(record.uuid)}` writes of a run")
        output_folder(output)
    if record.state is not RunState.FINISHED and not RunFiles(home, record.uuid).is_running():
        confirm_host_key(board or known)
    if isinstance(record, Campaign):
        if anew:
            record = campaign_launch.begin_anew(record.uuid, home, board=board, wait=wait)
        elif record.state is not RunState.FINISHED:
            record = campaign_launch.resume(record.uuid, home, board=board, wait=wait)
        raise typer.Exit(attend_campaign(home, record, detach=detach, as_json=as_json, output=output, wake=True))
    uuid = record.uuid
    begin = launch.begin_anew if anew else launch.resume
    started = attend_run(
        home, lambda: begin(uuid, home, board=board, wait=wait), detach=detach, as_json=as_json, wake=True
    )
    raise typer.Exit(started)


def _campaign_of(store: Store, record: Run | Campaign) -> Run | Campaign:
    """Return the campaign of a layer's run, any other record itself."""
    if isinstance(record, Run) and record.campaign is not None:
        return store.campaign(record.campaign) or record
    return record


def _send(home: Path, record: Run | Campaign, command: EngineCommand, verb: str) -> None:
    from hilt.cli.following import name_of

    _check_running(home, record)
    _deliver(home, record.uuid, command)
    say_text(f"{name_of(record)} {verb} when the board is done; `hilt resume {short(record.uuid)}` goes on")


def _check_running(home: Path, record: Run | Campaign) -> None:
    """Wait for an engine that is starting or ending. Raises BadParameter where none runs."""
    from hilt.cli.following import name_of
    from hilt.engine.launch import is_served

    if not is_served(home, record.uuid):
        name = short(record.uuid)
        raise typer.BadParameter(f"{name_of(record)} is not running; `hilt show {name}` shows its state")


def _deliver(home: Path, uuid: str, command: EngineCommand) -> None:
    from hilt.engine.client import EngineClient

    client = EngineClient.attach(home, uuid)
    client.send(command)
    client.leave()
