"""`hilt tune`: a run for a workload, a campaign for a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hilt import paths
from hilt.cli.for_tvm import For, User, for_tvm, print_for_run
from hilt.cli.input_options import Shapes, Values
from hilt.cli.run_options import (
    SHORT_RUN_PLANS,
    Boards,
    Chaos,
    Detach,
    Json,
    Number,
    Orders,
    Repeat,
    SpaceKind,
    TimeLimit,
    Tuner,
    TunerOptions,
    Wait,
    board_names,
    repeats,
    tuner_options,
)
from hilt.run_choices import CheckLevel, SpaceName

if TYPE_CHECKING:
    from hilt.store import Run


def tune(
    workload: Annotated[
        str,
        typer.Argument(
            help="resnet18.C5, deepbench.107, one spelled out as conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1 "
            "or a network (resnet18, a model.onnx), whose layers become a campaign."
        ),
    ],
    board: Boards = None,
    tuner: Tuner = "hilt",
    trials: Annotated[
        int, typer.Option(help="Budget: configurations to try, rejected ones included; of a network, a layer.")
    ] = 64,
    seed: Annotated[int, typer.Option(help="Same seed, same board: same trials.")] = 0,
    batch: Annotated[int, typer.Option(help="Trials asked of the tuner at a time.")] = 8,
    kind: SpaceKind = SpaceName.AUTOTVM,
    orders: Orders = None,
    checks: Annotated[
        CheckLevel,
        typer.Option(
            help="Rejected before it travels. compiler: configurations that do not fit; "
            "strict: also those that could lose sums; "
            "tvm: all that TVM would not run; off: none."
        ),
    ] = CheckLevel.COMPILER,
    repeat: Repeat = "1",
    number: Number = 1,
    time_limit: TimeLimit = None,
    tuner_option: TunerOptions = None,
    shape: Shapes = None,
    value: Values = None,
    chaos: Chaos = None,
    user: For = User.HILT,
    wait: Wait = False,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Find the fastest schedule of a workload, or of every layer of a network, by trying schedules on a board."""
    from hilt.cli.attending import attend_run
    from hilt.cli.exit_codes import Exit
    from hilt.cli.host_keys import confirm_host_key
    from hilt.engine import launch
    from hilt.engine.run_spec import RunSpec

    times, rounds = repeats(repeat)
    spec = RunSpec(
        workload=workload,
        board=board_names(board, chaos),
        tuner=tuner,
        trials=trials,
        seed=seed,
        batch=batch,
        space_kind=kind,
        orders=orders,
        checks=checks,
        repeat=times,
        rounds=rounds,
        number=number,
        limit_seconds=time_limit,
        tuner_options=tuner_options(tuner, max(batch, trials // SHORT_RUN_PLANS), tuner_option or []),
    )
    if user is User.TVM:
        spec = for_tvm(spec)
    home = paths.home()
    if is_network(workload):
        from hilt.campaign.budget import Budget
        from hilt.cli.campaign import network_to_tune, start_campaign

        network = network_to_tune(workload, spec.board, user, spec.checks, shape, value)
        budget = Budget(trials=trials * max(1, len(network.supported)))
        raise typer.Exit(start_campaign(network, spec, budget, shape, value, wait=wait, detach=detach, as_json=as_json))
    if shape or value:
        raise typer.BadParameter(f"--shape and --value are for a model.onnx; {workload} has its sizes")
    confirm_host_key(spec.board)
    started: list[Run] = []

    def start() -> Run:
        started.append(launch.start(spec, home, wait=wait))
        return started[0]

    ending = attend_run(home, start, detach=detach, as_json=as_json)
    if user is User.TVM and ending is Exit.OK and not (detach or as_json):
        print_for_run(home, started[0].uuid)
    raise typer.Exit(ending)


def is_network(text: str) -> bool:
    """Return whether the text names a network of the catalogue or a model's file."""
    from hilt.schedule.networks import network_names
    from hilt.schedule.onnx_model import SUFFIX

    return text.endswith(SUFFIX) or text in network_names()
