"""`hilt campaign` and `hilt campaigns`: a network with one budget for all its layers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.files import named_in_text, output_folder
from hilt.cli.formatting import print_json, short, time_text
from hilt.cli.run_options import (
    Chaos,
    CheckLevel,
    Json,
    Number,
    Orders,
    Repeat,
    SpaceKind,
    SpaceName,
    TimeLimit,
    Tuner,
    TunerOptions,
    board_names,
)
from hilt.cli.space import orders_of
from hilt.cli.tune import SHORT_RUN_PLANS, tuner_options
from hilt.engine.events import EngineCommand
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, RunState, Store, database_path

_ATTACHING = ("resume", "board", "output", "detach", "as_json")
"""Options that a campaign takes which is there already."""


def campaign(
    context: typer.Context,
    network: Annotated[
        str | None,
        typer.Argument(metavar="NETWORK|ID", help="resnet18, a model.onnx; or a campaign, to follow or to steer."),
    ] = None,
    board: Annotated[
        list[str] | None,
        typer.Option(
            help="A board of `hilt boards`; virtual:pynq unless given. Boards that are alike measure together."
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="For all layers together: trials, as 200, or time, as 2h, 90m, 1h30m.")
    ] = None,
    tuner: Tuner = "hilt",
    seed: Annotated[int, typer.Option(help="Same seed, same board, a budget of trials: same trials.")] = 0,
    batch: Annotated[int, typer.Option(help="Trials that a layer gets at a time.")] = 4,
    kind: SpaceKind = SpaceName.AUTOTVM,
    orders: Orders = None,
    checks: Annotated[
        CheckLevel, typer.Option(help="What is rejected before it travels, as of `hilt tune`.")
    ] = CheckLevel.COMPILER,
    repeat: Repeat = 1,
    number: Number = 1,
    time_limit: TimeLimit = None,
    tuner_option: TunerOptions = None,
    chaos: Chaos = None,
    output: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Where schedule, AutoTVM log and report go; in HILT_HOME unless given."),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with a campaign that was stopped or interrupted; or `last`.")
    ] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Pause the campaign ID; --resume ID wakes it.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the campaign ID after what is on the board.")] = False,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="LAYER", help="Give this layer of the campaign ID no more trials.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start it and return; it goes on by itself.")] = False,
    as_json: Json = False,
) -> None:
    """Tune a network: trials go to the layers where they save most. Ends with schedules, AutoTVM's log and a report."""
    from hilt.schedule.networks import network_names
    from hilt.schedule.onnx_model import SUFFIX

    home = paths.home()
    given = {each.name for each in context.command.params if each.name and _was_given(context, each.name)}
    if (network is None) == (resume is None):
        raise typer.BadParameter("name a network (resnet18, model.onnx) or a campaign, or --resume a campaign")
    is_new = network is not None and (network in network_names() or network.endswith(SUFFIX))
    if pause or stop or skip:
        if network is None or is_new:
            raise typer.BadParameter("--pause, --stop and --skip are for a campaign: give its id (`hilt campaigns`)")
        _refuse(given - {"network", "pause", "stop", "skip"}, "is not for --pause, --stop and --skip")
        _steer(home, network, pause, stop, skip or [])
        return
    if output is not None and detach:
        raise typer.BadParameter(
            "--output is written by who waits for the end, and --detach waits for none; "
            "`hilt campaign ID --output FOLDER` writes it later"
        )
    if not is_new:
        if network is not None and budget is not None:
            raise typer.BadParameter(
                f"no network is named {network!r}: there are {', '.join(network_names())}, or give a model{SUFFIX}; "
                f"and a campaign that goes on keeps the budget it has"
            )
        _refuse(given - {"network", *_ATTACHING}, "is for a new campaign; one that goes on keeps what it began with")
        go_on(home, network or resume or "", ",".join(board or []) or None, detach, as_json, output)
        return
    assert network is not None
    if budget is None:
        raise typer.BadParameter("a campaign needs a --budget: trials for all layers together, as 200, or time, as 2h")
    from hilt.campaign import launch
    from hilt.campaign.budget import parse_budget
    from hilt.cli.following_campaign import attend, listing
    from hilt.cli.host_keys import confirm_host_key
    from hilt.engine.run_spec import RunSpec
    from hilt.schedule.networks import load_network

    found, spend = named_in_text(load_network(network)), parse_budget(budget)
    each = (spend.trials or 0) // max(1, len(found.supported))
    settings = RunSpec(
        workload=network,
        board=board_names(board, chaos),
        tuner=tuner,
        trials=1,  # nobody looks at it: the budget is the campaign's
        seed=seed,
        batch=batch,
        space_kind=kind.value,
        orders=None if orders is None else orders_of(orders),
        checks=checks.value,
        repeat=repeat,
        number=number,
        limit_seconds=time_limit,
        tuner_options=tuner_options(tuner, max(batch, each // SHORT_RUN_PLANS), tuner_option or []),
    )
    if output is not None:
        output_folder(output)  # what is wrong with it is not said after hours
    confirm_host_key(settings.board)
    listing(found, as_json)
    made = launch.start(found, settings, spend, home)
    raise typer.Exit(attend(home, made, detach, as_json, output))


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse(given: set[str], why: str) -> None:
    """What would have no effect is not taken in silence. Raises typer.BadParameter."""
    if given:
        name = {"as_json": "json", "kind": "space"}.get(name := min(given), name).replace("_", "-")
        raise typer.BadParameter(f"--{name} {why}")


def go_on(
    home: Path, identifier: str, board: str | None, detach: bool, as_json: bool, output: Path | None = None
) -> None:
    """Attaches to a campaign, waking it where it is paused and starting it where it has no process; one that has
    finished is shown. Raises what hilt.campaign.launch.resume raises."""
    from hilt.campaign import launch
    from hilt.cli.following_campaign import attend
    from hilt.cli.host_keys import confirm_host_key

    with Store(database_path(home)) as store:
        found = launch.find(store, identifier)
    if output is not None:
        output_folder(output)
    if found.state is not RunState.FINISHED:
        if not RunFiles(home, found.uuid).is_running():
            confirm_host_key(board or _board_of(home, found))
        found = launch.resume(found.uuid, home, board=board)
    raise typer.Exit(attend(home, found, detach, as_json, output, wake=True))


def campaigns(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List campaigns, newest first."""
    from hilt.campaign.budget import Budget
    from hilt.engine.campaign_results import load_result

    home = paths.home()
    with Store(database_path(home)) as store:
        results = [load_result(store, each) for each in store.campaigns() if each.budget is not None]
    if as_json:
        from hilt.cli.following_campaign import result_values

        print_json([result_values(each) for each in results], "campaigns")
        return
    if not results:
        typer.echo("no campaigns yet; `hilt campaign resnet18 --budget 200` makes the first")
        return
    table = tables.table("campaign", "network", "board", ">trials", "budget", ">ms", ">gain", "state", "begun")
    for each in results:
        running = RunFiles(home, each.campaign.uuid).is_running()
        table.add_row(
            short(each.campaign.uuid),
            each.network.name,
            _board_of(home, each.campaign),
            str(each.trials),
            str(Budget.from_dict(each.campaign.budget or {})),
            f"{each.microseconds / 1e3:,.1f}",
            f"{each.gain:.2f}" if each.gain else "-",
            _state_word(each.campaign, running),
            time_text(each.campaign.created),
        )
    tables.console().print(table)


def _steer(home: Path, identifier: str, pause: bool, stop: bool, skip: list[str]) -> None:
    from hilt.campaign import launch
    from hilt.engine.client import EngineClient

    with Store(database_path(home)) as store:
        found = launch.find(store, identifier)
        runs = {run.workload: run for run in store.runs_of(found.uuid)}
    unknown = [name for name in skip if name not in runs]
    if unknown:
        raise typer.BadParameter(f"campaign {short(found.uuid)} has no layer {unknown[0]!r}; it has {', '.join(runs)}")
    if not RunFiles(home, found.uuid).is_running():
        raise typer.BadParameter(f"campaign {short(found.uuid)} is not running; `hilt campaigns` says how it stands")
    for name in skip:
        client = EngineClient.attach(home, runs[name].uuid)
        client.send(EngineCommand.STOP)
        client.leave()
        typer.echo(f"{name} gets no more trials")
    if pause or stop:
        client = EngineClient.attach(home, found.uuid)
        client.send(EngineCommand.STOP if stop else EngineCommand.PAUSE)
        client.leave()
        after = "stops" if stop else "pauses"
        typer.echo(f"campaign {short(found.uuid)} {after} when the board is done; `hilt resume {short(found.uuid)}` "
                   f"goes on")  # fmt: skip


def _board_of(home: Path, found: Campaign) -> str:
    """Where it goes on: it may have been moved since it was made."""
    with Store(database_path(home)) as store:
        runs = store.runs_of(found.uuid)
    return runs[0].board if runs else str(found.settings["board"])


def _state_word(found: Campaign, running: bool) -> str:
    if found.state in (RunState.CREATED, RunState.RUNNING, RunState.PAUSED) and not running:
        return "interrupted"
    return str(found.state)
