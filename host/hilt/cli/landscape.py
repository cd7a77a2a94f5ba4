"""`hilt landscape`: record what every configuration of a space does, and look at what was recorded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.words import print_json, seconds_text, time_text
from hilt.processes import processes

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hilt.measure.landscape import Landscape, Shelf, Subject
    from hilt.measure.landscape.check import Sampling

application = typer.Typer(
    help="Landscapes: the recorded outcome and cycles of a whole space. `--board landscape:NAME` tunes on one.",
    no_args_is_help=True,
)


@application.command()
def build(
    workload: Annotated[str | None, typer.Argument(help="A workload, or a group such as resnet18.")] = None,
    personality: Annotated[
        str, typer.Option("--personality", help="A board of `hilt boards` without virtual:, or a mismatched one.")
    ] = "pynq",
    checks: Annotated[str, typer.Option(help="compiler, strict, tvm or off.")] = "compiler",
    space: Annotated[str, typer.Option(help="autotvm or ml2.")] = "autotvm",
    orders: Annotated[int, typer.Option(help="Loop orders of the autotvm space: 1 or 4.")] = 4,
    everything: Annotated[
        bool, typer.Option("--all", help="All that `hilt bench` needs: about 300 landscapes.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=0, help="Processes on this machine; 0: one a core.")] = 0,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, such as tcp://host:8786, to do the work.")
    ] = None,
    rtl_sample: Annotated[int, typer.Option(min=0, help="Configurations that also run on the RTL.")] = 4,
    golden_sample: Annotated[int, typer.Option(min=0, help="Configurations that also run on the golden model.")] = 8,
    sample_cycles: Annotated[int, typer.Option(min=1, help="Cycles that each model may run for in all.")] = 10_000_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample, and of its tensors.")] = 0,
) -> None:
    """Predict every configuration with the twin, check a sample on the RTL, and keep it.

    Killed, it goes on where it was; what is there already is not built again.
    """
    from hilt.measure.landscape import Shelf
    from hilt.measure.landscape.check import Sampling

    if everything == (workload is not None):
        raise typer.BadParameter("name a workload, or give --all")
    shelf = Shelf()
    if everything:
        from hilt.experiments.landscapes import evidence

        groups = evidence()
    else:
        groups = [[each] for each in _subjects(str(workload), personality, checks, space, orders)]

    def missing(group: list[Subject]) -> list[Subject]:
        return [subject for subject in group if not shelf.has(subject)]

    if not everything:
        for group in groups:
            if not missing(group):
                typer.echo(f"{group[0].name} is there already: {shelf.path_of(group[0])}")
    if not any(map(missing, groups)):
        return
    sampling = Sampling(rtl_sample, golden_sample, seed, sample_cycles)
    with _executor(jobs, cluster) as executor:
        for number, group in enumerate(groups, 1):
            if wanted := missing(group):
                _build_group(wanted, shelf, executor, sampling, f"{number}/{len(groups)}")


def _build_group(subjects: list[Subject], shelf: Shelf, executor: Executor, sampling: Sampling, place: str) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from hilt.cli.plain_console import PlainConsole
    from hilt.measure.landscape.build import build as build_landscapes

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=PlainConsole(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{place} {subjects[0].name}", total=None)
        made = build_landscapes(
            subjects, shelf, executor, sampling, lambda done, total: bar.update(task, completed=done, total=total)
        )
    for landscape in made:
        typer.echo(_line(landscape))


def _line(landscape: Landscape) -> str:
    """A landscape, and what its sample came to."""
    valid = int(landscape.valid.sum())
    best = f"best {landscape.optimum:,.1f} µs" if valid else "none"
    return f"{landscape.name}: {len(landscape):,} configurations, {valid:,} valid, {best}; {_check_text(landscape)}"


def _check_text(landscape: Landscape) -> str:
    check: dict[str, Any] = landscape.metadata["check"]
    parts = []
    if "rtl" in check:
        rtl = check["rtl"]
        differ = f"{rtl['outcome']} of {rtl['run']} outcomes differ"
        parts.append(f"RTL: {differ}, largest error of cycles {100 * rtl['cycles_error']:.3g}%")
    if "golden" in check:
        parts.append(f"golden model: {check['golden']['outcome']} of {check['golden']['run']} outcomes differ")
    return "; ".join(parts) or "no sample was run"


def _subjects(workload: str, board: str, checks: str, kind: str, orders: int) -> list[Subject]:
    from hilt.cli.space import orders_of
    from hilt.experiments.mismatched import any_personality
    from hilt.measure.landscape import Subject
    from hilt.schedule import load_workload, workload_names
    from hilt.schedule.survey import CHECK_LEVELS

    level = next((each for each in CHECK_LEVELS if each == checks), None)
    if level is None:
        raise typer.BadParameter(f"--checks {checks!r} is none of {', '.join(CHECK_LEVELS)}")
    if kind not in ("autotvm", "ml2"):
        raise typer.BadParameter(f"--space {kind!r} is neither autotvm nor ml2")
    if kind == "ml2" and level == "tvm":
        raise typer.BadParameter("--checks tvm is about TVM's own space, not ml2")
    names = [name for name in workload_names() if name.startswith(f"{workload}.")] or [workload]
    return [
        Subject.on(
            load_workload(name),
            any_personality(board.removeprefix("virtual:")),
            checks=level,
            kind="ml2" if kind == "ml2" else "autotvm",
            orders=orders_of(orders),
        )
        for name in names
    ]


@contextmanager
def _executor(jobs: int, cluster: str | None) -> Iterator[Executor]:
    """Processes of this machine, or a Dask cluster."""
    with ExitStack() as stack:
        if cluster is None:
            yield stack.enter_context(processes(jobs or os.cpu_count() or 1))
            return
        try:
            import distributed
        except ImportError as error:
            raise typer.BadParameter("--cluster needs Dask: pip install 'hilt[cluster]'") from error
        try:
            client = stack.enter_context(distributed.Client(cluster, timeout="20s"))
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"no Dask scheduler answers at {cluster} ({error})") from error
        yield stack.enter_context(client.get_executor(pure=False))


@application.command("list")
def list_landscapes(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """What was recorded, by name."""
    from hilt.measure.landscape import Landscape, LandscapeError, Shelf

    rows: list[dict[str, Any]] = []
    for path in Shelf().paths():
        try:
            landscape = Landscape.read(path)
        except LandscapeError as error:
            typer.echo(f"hilt: {error}", err=True)
            continue
        rows.append(_row(landscape) | {"bytes": path.stat().st_size})
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no landscapes yet; `hilt landscape build WORKLOAD` records one")
        return
    table = tables.table("landscape", ">configurations", ">valid", ">best µs", ">kB", "made", "commit")
    for row in rows:
        best = "" if row["best_microseconds"] is None else f"{row['best_microseconds']:,.1f}"
        size = f"{row['bytes'] / 1000:.0f}"
        numbers = (f"{row['configurations']:,}", f"{row['valid']:,}", best, size)
        table.add_row(row["name"], *numbers, time_text(row["made"]["at"]), row["made"]["commit"])
    tables.console().print(table)


@application.command()
def show(
    name: Annotated[str, typer.Argument(help="Its name or key, or the beginning of one.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What a landscape is of, its outcomes, its best configuration, and how its sample fared."""
    from hilt.measure.landscape import Shelf

    landscape = Shelf().find(name)
    row = _row(landscape) | {"outcomes": landscape.counts(), "check": landscape.metadata["check"]}
    if as_json:
        print_json(row | {"identity": landscape.identity})
        return
    made = landscape.metadata["made"]
    typer.echo(_line(landscape))
    for outcome, count in landscape.counts().items():
        typer.echo(f"  {count:>9,} {outcome}")
    if landscape.valid.any():
        typer.echo(f"best: configuration {landscape.best}, {int(landscape.cycles[landscape.best]):,} cycles")
    typer.echo(
        f"made {time_text(made['at'])} in {seconds_text(made['seconds'])} by hilt {made['hilt']} {made['commit']} "
        f"on {made['machine']}"
    )


def _row(landscape: Landscape) -> dict[str, Any]:
    valid = int(landscape.valid.sum())
    return {
        "name": landscape.name,
        "configurations": len(landscape),
        "valid": valid,
        "best_microseconds": landscape.optimum if valid else None,
        "best_index": landscape.best if valid else None,
        "made": landscape.metadata["made"],
    }
