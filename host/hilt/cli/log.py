"""`hilt log`: results out to AutoTVM's logs and to histories, and AutoTVM's logs in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli.formatting import short
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork
from hilt.store import Campaign, Run, Store, database_path
from hilt.store.identifiers import run_or_campaign

application = typer.Typer(help="AutoTVM's tuning logs, out and in; histories to transfer from.", no_args_is_help=True)


@application.command("export")
def export_log(
    identifier: Annotated[
        str, typer.Argument(metavar="ID", help="The id of a run or a campaign, the beginning of it, or `last`.")
    ],
    file: Annotated[Path, typer.Argument(help="Where to write.")],
    target: Annotated[
        str | None, typer.Option(help="TARGET in TVM's vta_config.json, part of the key of its results.")
    ] = None,
) -> None:
    """Write a run, or all layers of a campaign, as a log that TVM v0.9's apply_history_best takes."""
    with Store(database_path(paths.home())) as store:
        record = run_or_campaign(store, identifier)
        if isinstance(record, Campaign):
            _export_campaign(store, record, file, target)
        else:
            _export_run(store, record, file, target)


def _export_run(store: Store, run: Run, file: Path, target: str | None) -> None:
    from hilt.campaign.tvm_layers import tvm_layer
    from hilt.cli.for_tvm import print_tvm_layers
    from hilt.store.autotvm_exchange import export_run
    from hilt.store.autotvm_log import write_log
    from hilt.store.autotvm_targets import target_of
    from hilt.vta.parameters import VTAParameters

    name = target or target_of(run.board)
    exported = export_run(run, store.reported(run.uuid), VTAParameters.from_name(run.parameters), name)
    write_log(file, exported.records)
    say_text(f"{len(exported.records)} trials of run {short(run.uuid)} for TVM's target {name}, to {file}")
    _print_left_out(exported.left_out)
    print_tvm_layers([tvm_layer(run, store.reported(run.uuid), store.best(run.uuid))])


def _export_campaign(store: Store, campaign: Campaign, file: Path, target: str | None) -> None:
    from hilt.campaign.outputs import write_autotvm_log
    from hilt.campaign.tvm_layers import tvm_layers
    from hilt.cli.for_tvm import print_tvm_layers
    from hilt.engine.campaign_results import board_of, load_result
    from hilt.store.autotvm_targets import target_of

    with CommandWork(f"writing {file}"):
        result = load_result(store, campaign)
        log = write_autotvm_log(store, result, file, target)
    name = target or target_of(board_of(store, campaign))
    say_text(f"{log.records} trials of campaign {short(campaign.uuid)} for TVM's target {name}, to {file}")
    _print_left_out(log.left_out)
    for note in log.notes:
        say_text(note)
    print_tvm_layers(tvm_layers(store, result))


def _print_left_out(left_out: Mapping[str, int]) -> None:
    for why, count in left_out.items():
        say_text(f"{count} left out: {why}")


@application.command("import")
def import_log(file: Annotated[Path, typer.Argument(help="A log of AutoTVM's.", exists=True, dir_okay=False)]) -> None:
    """Take in a log of TVM v0.9's, a run for each workload. TVM compares no outputs, so none of it can be a best."""
    from hilt.store.autotvm_exchange import import_records, read_tvm_log

    with CommandWork(f"reading {file}"):
        log = read_tvm_log(file)
    for why, count in log.left_out.items():
        say_text(f"{count} left out: {why}", err=True)
    with CommandWork(f"taking in {len(log.records):,} records"):
        imported = import_records(log.records, file, time.time())
    if not imported:
        raise typer.BadParameter(f"{file} holds no records of VTA's conv2d or dense")
    with Store(database_path(paths.home())) as store:
        store.create_recorded((entry.run, entry.trials) for entry in imported)
    for entry in imported:
        again = f", {entry.replaced} replaced by later ones" if entry.replaced else ""
        say_text(f"run {short(entry.run.uuid)}: {entry.run.workload} on {entry.run.board}, {len(entry.trials)} "
                   f"trials{again}")  # fmt: skip


@application.command("history")
def write_history(
    file: Annotated[Path, typer.Argument(help="Where to write.")],
    identifiers: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="Runs and campaigns of other workloads: ids, beginnings of them, or `last`."
        ),
    ],
) -> None:
    """Write the results of runs as a history, for `hilt tune --tuner autotvm --tuner-option history=FILE`."""
    from hilt.engine.history import history_of

    with CommandWork("reading runs"), Store(database_path(paths.home())) as store:
        found = [run_or_campaign(store, identifier) for identifier in identifiers]
        runs = [
            run for match in found for run in (store.runs_of(match.uuid) if isinstance(match, Campaign) else [match])
        ]
        history = history_of(store, runs)
    history.save(file)
    say_text(f"{len(history)} trials of {len(history.parts)} runs, to {file}")
