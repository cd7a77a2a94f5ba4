"""`hilt silicon`: machine models of boards that people own, fitted and put to the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hilt.cli.formatting import print_json

application = typer.Typer(help="Machine models of public bitstreams: fit, predict.", no_args_is_help=True)


@application.command("predict")
def predict_records(
    file: Annotated[Path, typer.Argument(help="Measurements, one JSON object a line (docs/silicon.md).")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print measured and predicted seconds of each record, by machine model, with the parameters that ship."""
    from hilt.silicon.measured import with_programs
    from hilt.silicon.predict import predict
    from hilt.silicon.records import read_records
    from hilt.silicon.report import prediction_json, prediction_lines
    from hilt.simulator.builds import shipped_builds

    records = read_records(file)
    measured, refused = with_programs(records.records)
    skipped = sorted((*records.skipped, *refused), key=lambda skip: skip.line)
    predictions = predict(measured, shipped_builds())
    if as_json:
        print_json(prediction_json(records, skipped, predictions), "silicon_prediction")
    else:
        typer.echo("\n".join(prediction_lines(skipped, predictions)))


@application.command("fit")
def fit_records(
    files: Annotated[list[Path], typer.Argument(help="Measurements, one JSON object a line (docs/silicon.md).")],
    output: Annotated[Path | None, typer.Option(help="Write the fitted machines as JSON.")] = None,
    validate: Annotated[bool, typer.Option(help="Fit again without each workload in turn.")] = True,
) -> None:
    """Fit the public builds' costs to measurements of boards, and print how far they can be trusted."""
    from hilt.atomic_write import atomic_write
    from hilt.silicon.fit import FITTED_TASKS, FREE, builds_of, cross_validate, fit, log_errors
    from hilt.silicon.measured import with_programs
    from hilt.silicon.packed_task import TASKS
    from hilt.silicon.records import RecordError, read_records
    from hilt.silicon.report import identification_lines, parameter_lines, unseen_lines, validation_lines
    from hilt.simulator.builds import shipped_builds

    measured = []
    for file in files:
        records = read_records(file)
        usable, refused = with_programs(records.records)
        for skip in (*records.skipped, *refused):
            typer.echo(f"{file}, line {skip.line} skipped: {skip.reason}")
        for item in usable:
            record = item.record
            doubt = record.doubt or ("below the MAC bound at 100 MHz" if record.below_mac_bound else None)
            if doubt or not record.seconds:
                typer.echo(f"{file}, line {record.line} left out: {record.task.name}: {doubt or 'it has no seconds'}")
            else:
                measured.append(item)
    fitted = [item for item in measured if item.record.task.kind in FITTED_TASKS]
    if len(fitted) <= len(FREE):
        raise RecordError(
            f"{len(fitted)} usable records of {', '.join(FITTED_TASKS)}; a fit of {len(FREE)} costs needs more"
        )
    result = fit(fitted)
    if validate:
        typer.echo("fitting without each workload in turn ...", err=True)
        typer.echo("\n".join(validation_lines(fitted, result, cross_validate(fitted, result.values))))
    else:
        typer.echo(f"root mean square of log error: {result.rms:.4f} fitted")
    builds = builds_of(result.values)
    for kind in TASKS:
        unseen = [item for item in measured if item.record.task.kind == kind and kind not in FITTED_TASKS]
        if unseen:
            typer.echo("\n".join(unseen_lines(kind, unseen, log_errors(unseen, builds))))
    typer.echo("\n".join(parameter_lines(result)))
    typer.echo("\n".join(identification_lines(result)))
    if output is not None:
        whole = builds.to_dict()
        whole["machines"] = {**shipped_builds().to_dict()["machines"], **whole["machines"]}
        with atomic_write(output) as stream:
            stream.write(json.dumps(whole, indent=2) + "\n")


@application.command("choose")
def choose_schedules(
    records: Annotated[
        Path | None, typer.Option(help="Measurements: choose for each of their convolutions, on its board's build.")
    ] = None,
    network: Annotated[str, typer.Option(help="Without --records: a network of the catalogue.")] = "resnet18",
    machine: Annotated[str, typer.Option(help="Without --records: the machine model.")] = "pynq_public",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the schedule that hilt would choose for each layer on a public board, and its predicted gain.

    Every chosen program runs on the golden model, and its output is compared in full.
    """
    from hilt.silicon.advice import advice_for_network, advice_for_records, advice_json, advice_lines, total_lines

    layers = advice_for_records(records) if records is not None else advice_for_network(network, machine)
    seen = []
    for layer in layers:
        seen.append(layer)
        if not as_json:
            typer.echo(advice_lines(layer))
    if as_json:
        print_json(advice_json(seen), "silicon_choice")
    elif records is None:
        typer.echo("\n".join(total_lines(seen)))
