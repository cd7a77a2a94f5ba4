"""`hilt bench`: the papers' experiments, and ours, on recorded datasets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.files import output_folder
from hilt.cli.formatting import print_json, seconds_text
from hilt.cli.tables import column


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments of `hilt bench --list`.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="What can be run, and how long it takes.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each tuner on each dataset.")] = None,
    workloads: Annotated[str | None, typer.Option(metavar="A,B", help="Only these, of those that it has.")] = None,
    full: Annotated[bool, typer.Option("--full", help="As many runs and trials as the paper made.")] = False,
    checks: Annotated[
        str | None, typer.Option(help="Only this level of checks, of those that it has: tvm or compiler.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: one a core.")] = 0,
    output: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where CSV, PNG, SVG and about.json go; else HILT_HOME.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="End with one JSON object; all else to standard error.")
    ] = False,
) -> None:
    """Reproduce figures and tables of the four papers: data, a plot, and the paper's figure beside ours.

    The datasets come from `hilt dataset build --all`.

    Runs of tuners are kept in HILT_HOME/experiments and are not run again.
    """
    from dataclasses import asdict

    from hilt.experiments.bench import Bench, BenchSettings
    from hilt.experiments.catalogue import EXPERIMENTS, experiment

    if list_all:
        table = tables.table(
            "experiment",
            column("what", wraps=True),
            column("reproduces", drop=2, wraps=True),
            column(">minutes"),
            column(">with --full", drop=1),
        )
        for name, each in EXPERIMENTS.items():
            table.add_row(name, each.title, each.source, *(f"{minutes:g}" for minutes in each.minutes))
        tables.console().print(table)
        return
    if not names:
        raise typer.BadParameter("name an experiment; --list shows them")
    wanted = {name: experiment(name) for name in names}
    chosen = tuple(workloads.split(",")) if workloads else None
    settings = BenchSettings(seeds, chosen, full, jobs, checks)
    results = {}
    for name, each in wanted.items():
        started = time.monotonic()
        folder = output_folder((output or paths.home() / "experiments") / name)
        held = Bench(name, settings, folder, lambda line: typer.echo(line, err=as_json))
        each.hold(held)
        typer.echo(f"{name}: {seconds_text(time.monotonic() - started)}; all of it in {folder}", err=as_json)
        results[name] = {"folder": str(folder), "comparisons": [asdict(one) for one in held.comparisons]}
    if as_json:
        print_json(results, "bench")
