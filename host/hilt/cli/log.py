"""`hilt log`: results out to AutoTVM's logs and to histories, and AutoTVM's logs in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli.formatting import short
from hilt.store import Store, database_path

application = typer.Typer(help="AutoTVM's tuning logs, out and in; histories to transfer from.", no_args_is_help=True)


@application.command("export")
def export_log(
    run: Annotated[str, typer.Argument(help="Its id, the beginning of it, or `last`.")],
    file: Annotated[Path, typer.Argument(help="Where to write.")],
    target: Annotated[
        str | None, typer.Option(help="TARGET in TVM's vta_config.json, part of the key of its results.")
    ] = None,
) -> None:
    """Write a run as a log that TVM v0.9's apply_history_best takes."""
    from hilt.store.autotvm_exchange import export_run, target_of
    from hilt.store.autotvm_log import write_log
    from hilt.vta.parameters import VTAParameters

    with Store(database_path(paths.home())) as store:
        record = store.run(run)
        trials = store.trials(record.uuid)
    name = target or target_of(record.board)
    exported = export_run(record, trials, VTAParameters.from_name(record.parameters), name)
    write_log(file, exported.records)
    typer.echo(f"{len(exported.records)} trials of run {short(record.uuid)} for TVM's target {name}, to {file}")
    for why, count in exported.left_out.items():
        typer.echo(f"{count} left out: {why}")


@application.command("import")
def import_log(file: Annotated[Path, typer.Argument(help="A log of AutoTVM's.", exists=True, dir_okay=False)]) -> None:
    """Take in a log of TVM v0.9's, a run for each workload. TVM compares no outputs, so none of it can be a best."""
    from hilt.store.autotvm_exchange import import_records, read_tvm_log

    log = read_tvm_log(file)
    for why, count in log.left_out.items():
        typer.echo(f"{count} left out: {why}", err=True)
    imported = import_records(log.records, file, time.time())
    if not imported:
        raise typer.BadParameter(f"{file} holds no records of VTA's conv2d or dense")
    with Store(database_path(paths.home())) as store:
        store.create_recorded((each.run, each.trials) for each in imported)
    for each in imported:
        again = f", {each.replaced} replaced by later ones" if each.replaced else ""
        typer.echo(f"run {short(each.run.uuid)}: {each.run.workload} on {each.run.board}, {len(each.trials)} "
                   f"trials{again}")  # fmt: skip


@application.command("history")
def write_history(
    file: Annotated[Path, typer.Argument(help="Where to write.")],
    runs: Annotated[list[str], typer.Argument(help="Runs of other workloads: ids, beginnings of them, or `last`.")],
) -> None:
    """Write the results of runs as a history, for `hilt tune --tuner autotvm --tuner-option history=FILE`."""
    from hilt.engine.history import history_of

    with Store(database_path(paths.home())) as store:
        history = history_of(store, [store.run(run) for run in runs])
    history.save(file)
    typer.echo(f"{len(history)} trials of {len(history.parts)} runs, to {file}")
