"""`--for tvm`: a run or a campaign whose schedules TVM v0.9 can run, and the schedules that TVM gets from a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt.cli import tables
from hilt.run_choices import CheckLevel, SpaceName

if TYPE_CHECKING:
    from hilt.campaign.tvm_layers import TvmLayer
    from hilt.engine.run_spec import RunSpec
    from hilt.schedule.onnx_model import Network


class User(StrEnum):
    """The compiler that the schedules are for."""

    HILT = "hilt"
    TVM = "tvm"


For = Annotated[
    User,
    typer.Option(
        "--for", help="tvm: schedules that TVM v0.9 can run (--orders 1 --checks tvm); ends with AutoTVM's log."
    ),
]


def for_tvm(spec: RunSpec) -> RunSpec:
    """Return settings with the space and checks of TVM v0.9. Raises BadParameter if an option contradicts."""
    for option, value, allowed in (
        ("--space", spec.space_kind, (SpaceName.AUTOTVM,)),
        ("--orders", spec.orders, (None, 1)),
        ("--checks", spec.checks, (CheckLevel.COMPILER, CheckLevel.TVM)),
    ):
        if value not in allowed:
            raise typer.BadParameter(f"{option} {value} has configurations that TVM v0.9 has not; leave it out")
    return replace(spec, orders=1, checks=CheckLevel.TVM)


def network_for_tvm(network: Network) -> Network:
    """Return a network in which the layers that TVM's templates do not have are left to the processor."""
    from hilt.schedule import WorkloadError, load_convolution
    from hilt.store.autotvm_tasks import require_template

    layers = []
    for layer in network.layers:
        if layer.workload:
            try:
                require_template(load_convolution(layer.workload))
            except WorkloadError as error:
                layer = replace(layer, workload="", reason=str(error))
        layers.append(layer)
    return replace(network, layers=tuple(layers))


def print_tvm_layers(layers: Sequence[TvmLayer]) -> None:
    """Print a table of the layers as TVM runs them, and their sum."""
    from hilt.campaign.tvm_layers import summary

    table = tables.table("layer", ">times", "TVM gets", ">µs in TVM", ">µs with hilt", ">times as long")
    for layer in layers:
        table.add_row(
            layer.name,
            str(layer.count),
            layer.gets,
            _figure(layer.tvm_microseconds, 1),
            _figure(layer.microseconds, 1),
            _figure(layer.slower, 2),
        )
    tables.console().print(table)
    typer.echo(summary(layers))


def print_for_run(home: Path, uuid: str) -> None:
    """Write the log of a run to its directory, and print the schedules that TVM gets from it."""
    from hilt.campaign.outputs import LOG
    from hilt.campaign.tvm_layers import tvm_layer
    from hilt.engine.run_files import RunFiles
    from hilt.store import Store, database_path
    from hilt.store.autotvm_exchange import export_run
    from hilt.store.autotvm_log import write_log
    from hilt.store.autotvm_targets import UnknownTargetError, target_of
    from hilt.vta.parameters import VTAParameters

    with Store(database_path(home)) as store:
        run = store.run(uuid)
        trials, best = store.reported(uuid), store.best(uuid)
    print_tvm_layers([tvm_layer(run, trials, best)])
    try:
        target = target_of(run.board)
    except UnknownTargetError as error:
        typer.echo(f"no AutoTVM log: {error}")
        return
    path = RunFiles(home, uuid).directory / LOG
    write_log(path, export_run(run, trials, VTAParameters.from_name(run.parameters), target).records)
    typer.echo(f"AutoTVM's log: {path}")


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
