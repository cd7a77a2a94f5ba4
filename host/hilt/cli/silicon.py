"""`hilt silicon`: machine models of bitstreams, fitted to measurements and tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilt.cli.formatting import print_json
from hilt.cli.work import CommandWork

application = typer.Typer(help="Machine models of bitstreams: fit, predict, choose.", no_args_is_help=True)


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

    with CommandWork(f"predicting the records of {file}"):
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
    sources: Annotated[
        list[str],
        typer.Argument(help="Runs or campaigns, AutoTVM logs, or published measurements (docs/silicon.md)."),
    ],
    board: Annotated[str | None, typer.Option(help="The board whose bitstream an AutoTVM log is of.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the machines as JSON.")] = None,
    validate: Annotated[bool, typer.Option(help="Published measurements: fit again without each workload.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, of your own bitstream.")] = False,
) -> None:
    """Fit a bitstream's machine to measurements, keep it for later runs, and print how far it can be trusted.

    The machine of your own bitstream is kept in HILT_HOME by its hash; tune, campaign and compile use it from then on.
    """
    from hilt.cli.fit_machine import fit_own
    from hilt.cli.fit_published import fit_published, is_published

    files = [Path(source) for source in sources]
    if all(is_published(file) for file in files):
        fit_published(files, output, validate)
    else:
        fit_own(sources, board, output, as_json)


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
    from hilt.silicon.advice import (
        Advice,
        advice_for_network,
        advice_for_records,
        advice_json,
        advice_lines,
        total_lines,
    )

    layers = advice_for_records(records) if records is not None else advice_for_network(network, machine)
    seen: list[Advice] = []
    while True:
        with CommandWork(f"choosing the schedule of layer {len(seen) + 1}"):
            layer = next(layers, None)
        if layer is None:
            break
        seen.append(layer)
        if not as_json:
            typer.echo(advice_lines(layer))
    if as_json:
        print_json(advice_json(seen), "silicon_choice")
    elif records is None:
        typer.echo("\n".join(total_lines(seen)))
