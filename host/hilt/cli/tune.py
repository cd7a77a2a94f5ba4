"""`hilt tune` and `hilt resume`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli.exit_codes import Exit
from hilt.cli.files import named_in_text
from hilt.cli.formatting import print_json, run_json, short
from hilt.cli.identifiers import run_or_campaign
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
from hilt.cli.summary import summary_text
from hilt.engine.run_files import RunFiles
from hilt.measure import DATASET_PREFIX
from hilt.store import Campaign, Run, RunState, Store, database_path
from hilt.trial import Outcome

SHORT_RUN_PLANS = 4
LARGEST_PLAN = 64
"""AutoTVM's plan size is 64: in a run as short as that its model would never be used. Such a run is four plans."""
_LARGEST_NUMBER = (1 << 31) - 1
"""Of a tuner's options, either sign: the libraries below take their own as 32 bits."""


Detach = Annotated[bool, typer.Option("--detach", help="Start the run and return; it goes on by itself.")]


def tune(
    workload: Annotated[
        str,
        typer.Argument(
            help="resnet18.C5, deepbench.107, one spelled out as conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1 "
            "or a model.onnx, whose layers are tuned one after another."
        ),
    ],
    board: Annotated[
        list[str] | None,
        typer.Option(
            help="A board of `hilt boards`; virtual:pynq unless given. Boards that are alike measure one run together."
        ),
    ] = None,
    tuner: Tuner = "hilt",
    trials: Annotated[int, typer.Option(help="Budget: configurations to try, rejected ones included.")] = 64,
    seed: Annotated[int, typer.Option(help="Same seed, same board: same trials.")] = 0,
    batch: Annotated[int, typer.Option(help="Trials asked of the tuner at a time.")] = 8,
    kind: SpaceKind = SpaceName.AUTOTVM,
    orders: Orders = None,
    checks: Annotated[
        CheckLevel,
        typer.Option(
            help="What is rejected before it travels. compiler: what does not fit; strict: also what could lose sums; "
            "tvm: what TVM would not run; off: nothing, the board finds out."
        ),
    ] = CheckLevel.COMPILER,
    repeat: Repeat = 1,
    number: Number = 1,
    time_limit: TimeLimit = None,
    tuner_option: TunerOptions = None,
    chaos: Chaos = None,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Find the fastest schedule of a workload, or of every layer of a network, by trying schedules on a board."""
    from hilt.cli.host_keys import confirm_host_key
    from hilt.engine import launch
    from hilt.engine.run_spec import RunSpec
    from hilt.schedule import onnx_model

    is_model = workload.endswith(onnx_model.SUFFIX)
    network = named_in_text(onnx_model.read_network(Path(workload))) if is_model else None
    if network is not None and detach:
        raise typer.BadParameter("--detach is for one workload; the layers of a network are tuned one after another")

    settings = RunSpec(
        workload=workload,
        board=board_names(board, chaos),
        tuner=tuner,
        trials=trials,
        seed=seed,
        batch=batch,
        space_kind=kind.value,
        orders=None if orders is None else orders_of(orders),
        checks=checks.value,
        repeat=repeat,
        number=number,
        limit_seconds=time_limit,
        tuner_options=tuner_options(tuner, max(batch, trials // SHORT_RUN_PLANS), tuner_option or []),
    )
    confirm_host_key(settings.board)
    home = paths.home()
    if network is not None:
        from hilt.cli.network import tune_network

        raise typer.Exit(tune_network(network, settings, home, launch, as_json))
    _attend(home, lambda: launch.start(settings, home), detach, as_json)


def resume(
    run: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`; or a campaign's id.")],
    board: Annotated[str | None, typer.Option(help="Go on with another board of the same kind.")] = None,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Go on with a run that was stopped or interrupted, or attach to one that is running.

    After the run of a network's layer the rest of the network follows; with --detach it does not.
    """
    from hilt.cli.host_keys import confirm_host_key
    from hilt.engine import launch

    home = paths.home()
    with Store(database_path(home)) as store:
        found = run_or_campaign(store, run)
        campaign = found if isinstance(found, Campaign) else None
        record = found if isinstance(found, Run) else None
        if record is not None and record.campaign is not None:
            of_run = store.campaign(record.campaign)
            campaign = of_run if not detach or (of_run is not None and of_run.budget is not None) else None
    if campaign is not None and campaign.budget is not None:
        from hilt.cli.campaign import go_on

        go_on(home, campaign.uuid, board, detach, as_json)
    if campaign is not None:
        from hilt.cli.network import tune_campaign

        confirm_host_key(board or campaign.settings["board"])
        raise typer.Exit(tune_campaign(campaign, home, launch, as_json, board))
    assert record is not None  # it is a campaign or a run: else store.run raised
    if record.state is not RunState.FINISHED and not RunFiles(home, record.uuid).is_running():
        confirm_host_key(board or record.board)  # of one that has finished launch.resume says so
    _attend(home, lambda: launch.resume(record.uuid, home, board=board), detach, as_json, wake=True)


def _attend(home: Path, launched: Callable[[], Run], detach: bool, as_json: bool, *, wake: bool = False) -> None:
    """Follows a run that is given an engine, and says how it ended."""
    from rich.console import Console

    from hilt.cli.following import exit_after, follow
    from hilt.cli.following import wake as wake_up
    from hilt.cli.live_view import print_text

    run = launched()  # only now: until it is followed Ctrl-C has nobody to stop it
    console = Console(stderr=as_json)
    ending = None
    if detach and wake:
        wake_up(home, run.uuid)
    if not detach:
        limit = f"{run.limit_seconds * 1e3:,.0f} ms by the board's clock"
        compared = "nothing is" if run.board.startswith(DATASET_PREFIX) else "its whole output is"
        print_text(console, f"a program may run for {limit}; {compared} compared with the reference")
        ending = follow(home, run, console, wake=wake)
    with Store(database_path(home)) as store:
        run = store.run(run.uuid)
        if as_json:
            print_json(run_json(store, run, RunFiles(home, run.uuid).is_running()), "run")
        elif ending is not None and ending.finished is not None:
            print_text(console, summary_text(store, run))
        # A dataset answers from records: nothing is verified, and a run with a valid answer is a success.
        recorded = run.board.startswith(DATASET_PREFIX) and store.counts(run.uuid).get(Outcome.OK, 0) > 0
        succeeded = recorded or store.best(run.uuid) is not None
    name = short(run.uuid)
    if ending is None:
        print_text(console, f"run {name} goes on by itself; `hilt tui {name}` or `hilt resume {name}` attaches to it")
        raise typer.Exit(Exit.OK)
    if ending.finished is None:
        print_text(console, f"left run {name}, which stops when the board is done; `hilt resume {name}` goes on")
        raise typer.Exit(Exit.INTERRUPTED)
    raise typer.Exit(exit_after(run, ending, succeeded))


def tuner_options(tuner: str, plan_size: int, given: list[str]) -> dict[str, object]:
    """Values are read as JSON where they are, else as text. `plan_size` is for a tuner that plans, unless given."""
    options: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--tuner-option {text!r} is not NAME=VALUE")
        try:
            options[name] = json.loads(value)
        except (ValueError, RecursionError):
            options[name] = value
        if isinstance(found := options[name], str) and not _is_text(found):
            raise typer.BadParameter(f"--tuner-option {name} is {found!r}, which is no text")
        number = options[name]
        if isinstance(number, int | float) and not abs(number) <= _LARGEST_NUMBER:  # nor is what is not a number
            raise typer.BadParameter(f"--tuner-option {name} is a number up to {_LARGEST_NUMBER:,} either way")
    if tuner in ("autotvm", "treegru"):
        options.setdefault("plan_size", min(LARGEST_PLAN, plan_size))
    return options


def _is_text(value: str) -> bool:
    """JSON can spell halves of characters, which no file has in its name."""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True
