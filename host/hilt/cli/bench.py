"""`hilt bench`: the papers' experiments, and ours, on recorded datasets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.experiments_extra import require_experiments
from hilt.cli.files import output_folder
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.engine.durations import seconds_text

if TYPE_CHECKING:
    from hilt_experiments.bench import BenchSettings
    from hilt_experiments.catalogue import Experiment

_ALL = "all"
_QUICK_MINUTES = 30.0
_WITH_ADDED_TUNERS = ("trials", "mismatch", "baselines", "score")
_WITH_DRAWN_WORLDS = ("foreign", "certainty", "sides", "score")
_WITH_LEVELS = (
    *("foreign", "certainty", "sides", "trials", "baselines", "ablations", "mismatch"),
    *("glimpse-fig4", "glimpse-fig6", "glimpse-steps", "glimpse-fig7"),
)


Names = Annotated[
    list[str] | None, typer.Argument(help="Experiments of `hilt bench --list`; `all`: each of them, and a page.")
]
ListAll = Annotated[bool, typer.Option("--list", help="List the experiments and their minutes.")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Runs of each tuner on each dataset.")]
Workloads = Annotated[str | None, typer.Option(metavar="A,B", help="Only these, of those that it has.")]
AddedTuners = Annotated[
    list[str] | None,
    typer.Option(
        help="Compare this tuner too: a name, or FILE.py:CLASS (experiments trials, mismatch, baselines and score)."
    ),
]
WorldSeed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed of the generator of worlds (experiments foreign, certainty, sides and score)."),
]
Full = Annotated[bool, typer.Option("--full", help="As many runs and trials as the paper made.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few runs of few layers; `all` takes half an hour.")]
Minutes = Annotated[
    float | None,
    typer.Option(min=0, help="Of `all`: begin no experiment after as many; the same command goes on. 30 with --quick."),
]
OneLevel = Annotated[
    str | None,
    typer.Option(help="Only this level of checks, of an experiment that has both: tvm or compiler."),
]
Jobs = Annotated[int, typer.Option(min=0, help="Processes; 0: one a core.")]
Output = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Where CSV, PNG, SVG and about.json go; else HILT_HOME.")
]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object; all else to standard error.")]


def bench(
    names: Names = None,
    list_all: ListAll = False,
    seeds: Seeds = None,
    workloads: Workloads = None,
    tuner: AddedTuners = None,
    seed: WorldSeed = None,
    full: Full = False,
    quick: Quick = False,
    minutes: Minutes = None,
    checks: OneLevel = None,
    jobs: Jobs = 0,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Reproduce figures and tables of the four papers: data, a plot, and the paper's figure beside ours.

    The datasets come from `hilt dataset build --all`. Needs the extra `experiments`.

    Runs of tuners are kept in HILT_HOME/experiments and are not run again.
    """
    require_experiments("hilt bench")
    from hilt.tune import canonical_tuner
    from hilt_experiments.bench import BenchSettings

    if list_all:
        _list(as_json)
        return
    _refuse_contradictions(names, full, quick)
    chosen = tuple(workloads.split(",")) if workloads else None
    added = tuple(map(canonical_tuner, tuner or []))
    settings = BenchSettings(seeds, chosen, full, quick, jobs, checks, added, seed)
    folder = output or paths.home() / "experiments"
    if names == [_ALL]:
        _everything(settings, folder / _ALL, minutes, as_json)
    else:
        _hold(names or [], settings, minutes, folder, as_json)


def _refuse_contradictions(names: list[str] | None, full: bool, quick: bool) -> None:
    """Raise BadParameter without an experiment, and for two sizes."""
    if not names:
        raise typer.BadParameter("name an experiment; --list shows them")
    if full and quick:
        raise typer.BadParameter("--full and --quick are two sizes; give one")


def _hold(names: list[str], settings: BenchSettings, minutes: float | None, folder: Path, as_json: bool) -> None:
    """Hold the experiments of these names."""
    from hilt_experiments.catalogue import experiment

    _refuse_others(names, settings, minutes)
    wanted = {name: experiment(name) for name in names}
    results = {name: _held(name, entry, settings, folder / name, as_json) for name, entry in wanted.items()}
    if as_json:
        print_json(results, "bench")


def _refuse_others(names: list[str], settings: BenchSettings, minutes: float | None) -> None:
    """Raise BadParameter for an option that one of the experiments does not have."""
    for option, given, having in (
        ("--tuner", bool(settings.tuners), _WITH_ADDED_TUNERS),
        ("--seed", settings.seed is not None, _WITH_DRAWN_WORLDS),
        ("--checks", settings.checks is not None, _WITH_LEVELS),
    ):
        if given and (others := [name for name in names if name not in having]):
            raise typer.BadParameter(f"{option} is for {', '.join(having)}, not for {others[0]}")
    if minutes is not None:
        raise typer.BadParameter(f"--minutes is for {_ALL}, which no other experiment stands beside")


def _everything(settings: BenchSettings, folder: Path, minutes: float | None, as_json: bool) -> None:
    """Hold all experiments, and print how many claims are reproduced and where the page is."""
    from collections import Counter
    from dataclasses import asdict

    from hilt_experiments.catalogue import EXPERIMENTS
    from hilt_experiments.everything import Everything

    if settings.workloads or settings.seeds or settings.checks or settings.tuners or settings.seed is not None:
        raise typer.BadParameter(f"{_ALL} has the sizes --quick, --full and the usual one, and no other selection")
    if minutes is None:
        minutes = _QUICK_MINUTES if settings.quick else float("inf")
    until = time.monotonic() + 60 * minutes
    with CommandWork(_ALL, command=f"bench {_ALL}") as work:
        judgements = Everything(settings, output_folder(folder), _reporter(work, _ALL), until, EXPERIMENTS).run()
    counts = Counter(str(each.state) for each in judgements)
    typer.echo(", ".join(f"{count} {state}" for state, count in counts.most_common()), err=as_json)
    typer.echo(f"The page is {folder / 'page.html'}.", err=as_json)
    if as_json:
        print_json({"folder": str(folder), "claims": [asdict(each) for each in judgements]}, "bench")


def _reporter(work: CommandWork, name: str) -> Callable[[str], None]:
    """Return a function that prints an experiment's lines; those that begin as `3/12 ` count its runs."""
    advance = work.counter(name, "runs")

    def report(line: str) -> None:
        say_text(line, err=True)
        if counted := re.match(r"(\d+)/(\d+) ", line):
            advance(int(counted[1]), int(counted[2]))

    return report


def _list(as_json: bool) -> None:
    """Print the experiments with the minutes that they take."""
    from dataclasses import asdict

    from hilt_experiments.catalogue import EXPERIMENTS

    if as_json:
        print_json([{"experiment": name, **asdict(entry)} for name, entry in EXPERIMENTS.items()], "experiments")
        return
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


def _held(name: str, entry: Experiment, settings: BenchSettings, output: Path, as_json: bool) -> dict[str, Any]:
    """Hold an experiment and print its summary; return its results."""
    from dataclasses import asdict

    from hilt_experiments.bench import Bench

    started = time.monotonic()
    folder = output_folder(output)
    with CommandWork(name, command=f"bench {name}") as work:
        held = Bench(name, entry.sized(settings), folder, _reporter(work, name))
        entry.hold(held)
    if held.summary and not as_json:
        _print_summary(held.summary)
    typer.echo(f"{name}: {seconds_text(time.monotonic() - started)}; all of it in {folder}", err=as_json)
    return {
        "folder": str(folder),
        "comparisons": [asdict(comparison) for comparison in held.comparisons],
        "summary": held.summary,
    }


def _print_summary(rows: list[dict[str, Any]]) -> None:
    """Print a table for each place: trials of each tuner with their spread, and how sure the difference is."""
    for where in dict.fromkeys(row["where"] for row in rows):
        tables.console().print(f"\n{where}: trials to within 1% of the optimum")
        _print_place([row for row in rows if row["where"] == where])


def _print_place(rows: list[dict[str, Any]]) -> None:
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
    for row in rows:
        table.add_row(
            row["tuner"],
            f"{row['median']:,.0f}",
            f"{row['lower']:,.0f}-{row['upper']:,.0f}",
            f"{row['never']}/{row['runs']}",
            f"{100 * row['invalid_share']:.1f}%",
            *_ratio_cells(row),
        )
    tables.console().print(table)
    tests = {row["test"] for row in rows if row["test"]}
    if tests:
        counted = f"{rows[0]['datasets']} dataset{'s' if rows[0]['datasets'] > 1 else ''}"
        tables.console().print(
            f"p: two-sided {', '.join(sorted(tests))}, Holm's correction; {counted}; bootstrap intervals"
        )


def _ratio_cells(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return a tuner's ratio to autotvm, its interval and its p; dashes for autotvm itself."""
    if row["ratio"] is None:
        return "-", "-", "-"
    return f"{row['ratio']:.3f}", f"{row['low']:.3f}-{row['high']:.3f}", _p_text(row["p_value"])


def _p_text(p_value: float) -> str:
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"
