"""`hilt tune`: a run for a workload, a campaign for a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hilt import paths
from hilt.cli.for_tvm import For, User, print_for_run
from hilt.cli.input_options import Shapes, Values
from hilt.cli.run_options import (
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
    with_options,
)
from hilt.run_choices import CheckLevel, SpaceName

if TYPE_CHECKING:
    from hilt.cli.exit_codes import Exit
    from hilt.engine.run_spec import RunSpec
    from hilt.store import Run


Workload = Annotated[
    str,
    typer.Argument(
        help="resnet18.C5, deepbench.107, one spelled out as conv2d:n=1,ci=64,h=56,w=56,co=64,k=3x3,s=1x1,p=1x1 "
        "or a network (resnet18, a model.onnx), whose layers become a campaign."
    ),
]
Trials = Annotated[
    int, typer.Option(help="Budget: configurations to try, rejected ones included; of a network, a layer.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same board: same trials.")]
Batch = Annotated[int, typer.Option(help="Trials asked of the tuner at a time.")]
Level = Annotated[
    CheckLevel,
    typer.Option(
        help="Rejected before it travels. compiler: configurations that do not fit; "
        "strict: also those that could lose sums; "
        "tvm: all that TVM would not run; off: none.",
    ),
]


def tune(
    workload: Workload,
    board: Boards = None,
    tuner: Tuner = "hilt",
    trials: Trials = 64,
    seed: Seed = 0,
    batch: Batch = 8,
    kind: SpaceKind = SpaceName.AUTOTVM,
    orders: Orders = None,
    checks: Level = CheckLevel.COMPILER,
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
    from hilt.engine.run_spec import RunSpec

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
        number=number,
        limit_seconds=time_limit,
    )
    spec = with_options(spec, repeat, tuner_option, user)
    start = _tune_network if is_network(workload) else _tune_layer
    raise typer.Exit(start(spec, user, shape, value, wait=wait, detach=detach, as_json=as_json))


def _tune_network(
    spec: RunSpec, user: User, shape: Shapes, value: Values, *, wait: bool, detach: bool, as_json: bool
) -> Exit:
    from hilt.campaign.budget import Budget
    from hilt.cli.campaign import network_to_tune, start_campaign

    network = network_to_tune(spec.workload, spec.board, user, spec.checks, shape, value)
    budget = Budget(trials=spec.trials * max(1, len(network.supported)))
    return start_campaign(network, spec, budget, shape, value, wait=wait, detach=detach, as_json=as_json)


def _tune_layer(
    spec: RunSpec, user: User, shape: Shapes, value: Values, *, wait: bool, detach: bool, as_json: bool
) -> Exit:
    from hilt.cli.attending import attend_run
    from hilt.cli.exit_codes import Exit
    from hilt.cli.host_keys import confirm_host_key
    from hilt.engine import launch

    if shape or value:
        raise typer.BadParameter(f"--shape and --value are for a model.onnx; {spec.workload} has its sizes")
    confirm_host_key(spec.board)
    home = paths.home()
    started: list[Run] = []

    def start() -> Run:
        started.append(launch.start(spec, home, wait=wait))
        return started[0]

    ending = attend_run(home, start, detach=detach, as_json=as_json)
    if user is User.TVM and ending is Exit.OK and not (detach or as_json):
        print_for_run(home, started[0].uuid)
    return ending


def is_network(text: str) -> bool:
    """Return whether the text names a network of the catalogue or a model's file."""
    from hilt.schedule.networks import network_names
    from hilt.schedule.onnx_model import SUFFIX

    return text.endswith(SUFFIX) or text in network_names()
