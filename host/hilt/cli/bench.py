"""`hilt bench`: the papers' experiments, and ours, on recorded datasets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.experiments_extra import require_experiments
from hilt.cli.files import output_folder
from hilt.cli.formatting import print_json, seconds_text
from hilt.cli.tables import column

_WITH_ADDED_TUNERS = ("trials", "mismatch")


def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments of `hilt bench --list`.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the experiments and their minutes.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each tuner on each dataset.")] = None,
    workloads: Annotated[str | None, typer.Option(metavar="A,B", help="Only these, of those that it has.")] = None,
    tuner: Annotated[
        list[str] | None,
        typer.Option(help="Compare this tuner too: a name, or FILE.py:CLASS (experiments trials and mismatch)."),
    ] = None,
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

    The datasets come from `hilt dataset build --all`. Needs the extra `experiments`.

    Runs of tuners are kept in HILT_HOME/experiments and are not run again.
    """
    from dataclasses import asdict

    require_experiments("hilt bench")
    from hilt.tune import canonical_tuner
    from hilt_experiments.bench import Bench, BenchSettings
    from hilt_experiments.catalogue import EXPERIMENTS, experiment

    if list_all and as_json:
        print_json([{"experiment": name, **asdict(entry)} for name, entry in EXPERIMENTS.items()], "experiments")
        return
    if list_all:
        table = tables.table(
            "experiment",
            column("measures", wraps=True),
            column("reproduces", drop=2, wraps=True),
            column(">minutes"),
            column(">with --full", drop=1),
        )
        for name, entry in EXPERIMENTS.items():
            table.add_row(name, entry.title, entry.source, *(f"{minutes:g}" for minutes in entry.minutes))
        tables.console().print(table)
        return
    if not names:
        raise typer.BadParameter("name an experiment; --list shows them")
    wanted = {name: experiment(name) for name in names}
    chosen = tuple(workloads.split(",")) if workloads else None
    if tuner and (others := [name for name in names if name not in _WITH_ADDED_TUNERS]):
        raise typer.BadParameter(f"--tuner is for {' and '.join(_WITH_ADDED_TUNERS)}, not for {others[0]}")
    settings = BenchSettings(seeds, chosen, full, jobs, checks, tuple(map(canonical_tuner, tuner or [])))
    results = {}
    for name, entry in wanted.items():
        started = time.monotonic()
        folder = output_folder((output or paths.home() / "experiments") / name)
        held = Bench(name, settings, folder, lambda line: typer.echo(line, err=True))
        entry.hold(held)
        if held.summary and not as_json:
            _print_summary(held.summary)
        typer.echo(f"{name}: {seconds_text(time.monotonic() - started)}; all of it in {folder}", err=as_json)
        results[name] = {
            "folder": str(folder),
            "comparisons": [asdict(comparison) for comparison in held.comparisons],
            "summary": held.summary,
        }
    if as_json:
        print_json(results, "bench")


def _print_summary(rows: list[dict[str, Any]]) -> None:
    """Print a table for each place: trials of each tuner with their spread, and how sure the difference is."""
    console = tables.console()
    for where in dict.fromkeys(row["where"] for row in rows):
        console.print(f"\n{where}: trials to within 1% of the optimum")
        table = tables.table(
            "tuner",
            column(">median"),
            column(">quartiles", drop=3),
            column(">never", drop=4),
            column(">invalid", drop=5),
            column(">over autotvm"),
            column(">95% interval", drop=1),
            column(">p", drop=2),
        )
        chosen = [row for row in rows if row["where"] == where]
        for row in chosen:
            ratio = row["ratio"]
            table.add_row(
                row["tuner"],
                f"{row['median']:,.0f}",
                f"{row['lower']:,.0f}-{row['upper']:,.0f}",
                f"{row['never']}/{row['runs']}",
                f"{100 * row['invalid_share']:.1f}%",
                "-" if ratio is None else f"{ratio:.3f}",
                "-" if ratio is None else f"{row['low']:.3f}-{row['high']:.3f}",
                "-" if ratio is None else _p_text(row["p_value"]),
            )
        console.print(table)
        tests = {row["test"] for row in chosen if row["test"]}
        if tests:
            counted = f"{chosen[0]['datasets']} dataset{'s' if chosen[0]['datasets'] > 1 else ''}"
            console.print(f"p: two-sided {', '.join(sorted(tests))}, Holm's correction; {counted}; bootstrap intervals")


def _p_text(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"
