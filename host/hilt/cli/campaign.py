"""`hilt campaign` and `hilt campaigns`: a network with one budget for all its layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.files import output_folder
from hilt.cli.for_tvm import For, User, network_for_tvm
from hilt.cli.formatting import print_json, short, state_text, time_text
from hilt.cli.input_options import Shapes, Values, model_network, read_shapes, read_values
from hilt.cli.listing import ListAll, ListTag, is_listed, nothing_listed
from hilt.cli.prose import say_text
from hilt.cli.run_options import (
    Boards,
    Chaos,
    Detach,
    Json,
    Number,
    Orders,
    Output,
    Repeat,
    SpaceKind,
    TimeLimit,
    Tuner,
    TunerOptions,
    Wait,
    board_names,
    with_options,
)
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.engine.run_files import RunFiles
from hilt.measure import DATASET_PREFIX, describe_board
from hilt.run_choices import CheckLevel, SpaceName
from hilt.store import Store, database_path
from hilt.store.labels import Labels, all_labels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hilt.campaign.budget import Budget
    from hilt.cli.exit_codes import Exit
    from hilt.engine.campaign_results import CampaignResult
    from hilt.engine.run_spec import RunSpec
    from hilt.report.campaign_inference import CampaignInference
    from hilt.schedule.onnx_model import Network


NetworkName = Annotated[str, typer.Argument(help="resnet18, or a model.onnx.")]
Spend = Annotated[
    str,
    typer.Option(help="For all layers together: trials, as 200, or time, as 2h, 90m, 1h30m."),
]
Seed = Annotated[int, typer.Option(help="Same seed, same board, a budget of trials: same trials.")]
Batch = Annotated[int, typer.Option(help="Trials that a layer gets at a time.")]
Level = Annotated[CheckLevel, typer.Option(help="Rejected before it travels, as of `hilt tune`.")]
CalibrationData = Annotated[
    Path | None,
    typer.Option(
        metavar="DATA.npz",
        help="Quantise the model first, as `hilt quantize`; writes MODEL.int8.onnx.",
    ),
]


def campaign(
    network: NetworkName,
    budget: Spend,
    board: Boards = None,
    tuner: Tuner = "hilt",
    seed: Seed = 0,
    batch: Batch = 4,
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
    output: Output = None,
    calibration: CalibrationData = None,
    user: For = User.HILT,
    wait: Wait = False,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Tune a network: trials go to the layers where they save most. Ends with schedules, AutoTVM's log and a report."""
    from hilt.campaign.budget import parse_budget
    from hilt.engine.run_spec import RunSpec

    if calibration is not None:
        network = _quantised(network, calibration, shape, value, quiet=as_json)
        shape = value = None  # they are part of the quantised model
    boards = board_names(board, chaos)
    found = network_to_tune(network, boards, user, checks, shape, value)
    spend = parse_budget(budget)
    spec = RunSpec(
        workload=network,
        board=boards,
        tuner=tuner,
        trials=max(1, (spend.trials or 0) // max(1, len(found.supported))),
        seed=seed,
        batch=batch,
        space_kind=kind,
        orders=orders,
        checks=checks,
        number=number,
        limit_seconds=time_limit,
    )
    spec = with_options(spec, repeat, tuner_option, user)
    ending = start_campaign(found, spec, spend, shape, value, wait=wait, detach=detach, as_json=as_json, output=output)
    raise typer.Exit(ending)


def _check_output(output: Path | None, detach: bool) -> None:
    if output is not None and detach:
        raise typer.BadParameter(
            "--output is written by the command that waits for the end, and --detach does not wait; "
            "`hilt resume ID --output FOLDER` writes it later"
        )


def _quantised(
    network: str, calibration: Path, shape: list[str] | None, value: list[str] | None, *, quiet: bool
) -> str:
    """Quantise a model beside it; return the path of the quantised one. Raises the errors of `hilt quantize`."""
    from hilt.cli.files import check_folder
    from hilt.network.quantize.files import quantise_file, write_model
    from hilt.schedule.onnx_model import SUFFIX

    if not network.endswith(SUFFIX):
        raise typer.BadParameter(f"--calibration is for a model{SUFFIX}; {network} is a network of the catalogue")
    path = Path(network).with_suffix(f".int8{SUFFIX}")
    check_folder(path)
    reading = f"reading {network} and running its samples"
    with CommandWork(reading, command=f"quantize {path.name}") as work:
        result = quantise_file(
            Path(network),
            calibration,
            shapes=read_shapes(shape),
            values=read_values(value),
            counting=work.counter,
        )
        work.begin(f"checking {path}")
        write_model(result, path)
    say_text(f"{path}: outputs are {result.costs.decibels:.1f} dB above the error of quantising", err=quiet)
    return str(path)


def network_to_tune(
    text: str, boards: str, user: User, checks: CheckLevel, shape: list[str] | None, value: list[str] | None
) -> Network:
    """Return the layers to tune on `boards`: in the forms of the compiled network where its programs run.

    Raises the errors of read_network.
    """
    with CommandWork(f"reading {text}"):
        network = read_network(text, shape, value)
        if user is User.TVM:
            return network_for_tvm(network)
        if checks in (CheckLevel.COMPILER, CheckLevel.STRICT):
            return _in_forms(network, text, boards, shape, value)
        return network


def _in_forms(network: Network, text: str, boards: str, shape: list[str] | None, value: list[str] | None) -> Network:
    """Return a quantised model's network in the forms that it is compiled to; any other network as it is."""
    from hilt.network.graph import GraphError
    from hilt.network.onnx_graph import OnnxError
    from hilt.network.onnx_import import import_model
    from hilt.network.target import holds_bands
    from hilt.network.tuned_forms import tuned_network
    from hilt.schedule.onnx_model import SUFFIX

    if not text.endswith(SUFFIX) or boards.startswith(DATASET_PREFIX):
        return network
    try:
        graph = import_model(Path(text), read_shapes(shape), read_values(value))
    except (OnnxError, GraphError):
        return network
    accelerator = describe_board(boards).accelerator
    return tuned_network(graph, network.name, accelerator, bands=holds_bands(accelerator, graph))


def read_network(text: str, shape: list[str] | None = None, value: list[str] | None = None) -> Network:
    """Return a network of the catalogue, or of a model's file as it will be compiled.

    Raises:
        WorkloadError: There is no such network.
        OnnxError: The model cannot be read.
        typer.BadParameter: `shape` or `value` is given for a network of the catalogue.
    """
    from hilt.schedule.networks import load_network
    from hilt.schedule.onnx_model import SUFFIX
    from hilt.schedule.workload import WorkloadError

    if text.endswith(SUFFIX):
        return model_network(Path(text), shape, value)
    if shape or value:
        raise typer.BadParameter(f"--shape and --value are for a model{SUFFIX}; {text} has its sizes")
    try:
        return load_network(text)
    except WorkloadError as error:
        from hilt.network import zoo

        if text not in zoo.NETWORKS:
            raise
        raise WorkloadError(
            f"{error}; {text} is in hilt.network.zoo alone: onnx.save(zoo.make({text!r}), '{text}.onnx') makes a file, "
            "`hilt quantize` its int8 model"
        ) from None


def start_campaign(
    network: Network,
    spec: RunSpec,
    budget: Budget,
    shape: list[str] | None = None,
    value: list[str] | None = None,
    *,
    wait: bool,
    detach: bool,
    as_json: bool,
    output: Path | None = None,
) -> Exit:
    """Start a campaign, follow it unless detached, and return the exit code."""
    from hilt.campaign import launch
    from hilt.campaign.network_bundle import keep_graph
    from hilt.campaign.outputs import keep_folder
    from hilt.cli.attending_campaign import attend_campaign
    from hilt.cli.host_keys import confirm_host_key
    from hilt.cli.network_text import listing
    from hilt.cli.plain_console import PlainConsole
    from hilt.cli.prose import print_text

    _check_output(output, detach)
    if output is not None:
        output_folder(output)  # a bad folder is refused now, not after hours
    confirm_host_key(spec.board)
    describe_board(spec.board)  # a name that is none is refused before the list of layers
    print_text(PlainConsole(stderr=as_json), listing(network))
    home = paths.home()
    with CommandWork("starting the engine"):
        made = launch.start(network, spec, budget, home, wait=wait)
    if output is not None:
        keep_folder(home, made.uuid, output)
    if _has_bundle(spec):
        missing = keep_graph(home, made, Path(spec.workload), read_shapes(shape), read_values(value))
        if missing:
            typer.echo(f"the campaign ends without a bundle: {missing}", err=as_json)
    return attend_campaign(home, made, detach=detach, as_json=as_json, output=output)


def _has_bundle(spec: RunSpec) -> bool:
    """Return whether the campaign ends with a bundle: it is of a model, on a board that runs programs."""
    from hilt.schedule.onnx_model import SUFFIX

    return spec.workload.endswith(SUFFIX) and not spec.board.startswith(DATASET_PREFIX)


def campaigns(
    tag: ListTag = None,
    all_of_them: ListAll = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List campaigns, newest first."""
    from hilt.cli.network_text import result_values
    from hilt.engine.campaign_results import board_of, load_result
    from hilt.report.campaign_inference import load_inference

    with Store(database_path(paths.home())) as store:
        labels = all_labels(store)
        listed = [campaign for campaign in store.campaigns() if is_listed(labels, (campaign.uuid,), tag, all_of_them)]
        results = [load_result(store, campaign) for campaign in listed]
        boards = [board_of(store, result.campaign) for result in results]
        inferences = [load_inference(store, campaign.uuid) for campaign in listed]
    if as_json:
        values = [
            result_values(result, labels.get(result.campaign.uuid, Labels()), inference)
            for result, inference in zip(results, inferences, strict=True)
        ]
        print_json(values, "campaigns")
    elif not results:
        say_text(nothing_listed("campaigns", "hilt campaign resnet18 --budget 200", tag, labels))
    else:
        tables.console().print(_campaigns_table(results, boards, inferences, labels))


def _campaigns_table(
    results: Sequence[CampaignResult],
    boards: Sequence[str],
    inferences: Sequence[CampaignInference | None],
    labels: Mapping[str, Labels],
) -> tables.Table:
    from hilt.campaign.budget import Budget
    from hilt.report.network_latency import network_figure

    table = tables.table(
        "campaign",
        column("network", cuts=True),
        column("board", drop=3),
        column(">trials", drop=2),
        column("budget", drop=6),
        ">ms",
        ">gain",
        column("state", drop=1),
        column("begun", drop=5),
        column("tags", drop=4),
    )
    for result, board, inference in zip(results, boards, inferences, strict=True):
        figure = network_figure(result, inference)
        table.add_row(
            short(result.campaign.uuid),
            result.network.name,
            board,
            str(result.trials),
            str(Budget.from_dict(result.campaign.budget)),
            f"{figure.mark}{figure.microseconds / 1e3:,.2f}",
            f"{figure.gain:.2f}" if figure.gain else "-",
            state_text(result.campaign, RunFiles(paths.home(), result.campaign.uuid).is_running()),
            time_text(result.campaign.created),
            " ".join(labels.get(result.campaign.uuid, Labels()).tags),
        )
    return table
