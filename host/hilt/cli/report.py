"""`hilt report`: a run or a campaign as a page, as pictures, and as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt import paths
from hilt.cli.files import output_folder
from hilt.cli.work import CommandWork
from hilt.store import Run, Store, database_path
from hilt.store.identifiers import run_or_campaign

if TYPE_CHECKING:
    from collections.abc import Callable

    from hilt.report.facts import Facts


Identifiers = Annotated[
    list[str],
    typer.Argument(metavar="RUN|CAMPAIGN", help="Its id, the beginning of it, or `last`; several are compared."),
]
Static = Annotated[
    bool, typer.Option("--static", help="A page without scripts and interactive plots: a tenth of the bytes.")
]


def report(
    identifiers: Identifiers,
    html: Annotated[Path | None, typer.Option(help="One page that needs nothing else.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Every trial, a line each.")] = None,
    parquet: Annotated[Path | None, typer.Option(help="The same as Parquet.")] = None,
    png: Annotated[Path | None, typer.Option(file_okay=False, help="A directory for the pictures as PNG.")] = None,
    svg: Annotated[Path | None, typer.Option(file_okay=False, help="A directory for the pictures as SVG.")] = None,
    schedule: Annotated[Path | None, typer.Option(help="A campaign's schedules as JSON.")] = None,
    static: Static = False,
) -> None:
    """Write a report of a run or a campaign: page, pictures, tables. Also while it is running.

    Without an option it writes hilt-report-ID.html in this folder. Several runs give the page that compares them.
    """
    if not any((html, csv, parquet, png, svg, schedule)):
        html = Path(f"hilt-report-{'-'.join(name[:8] for name in identifiers[:4])}.html")
    if len(identifiers) > 1:
        if any((csv, parquet, png, svg, schedule)) or html is None:
            raise typer.BadParameter("a report of several runs is a page: give --html, or no option")
        from hilt.cli.compare import compare

        compare(identifiers, html)
        return
    from hilt.report.html import write_report
    from hilt.report.trials_file import write_csv, write_parquet

    facts = _facts(identifiers[0])
    writers: tuple[tuple[Path | None, Callable[[Path], None]], ...] = (
        (schedule, lambda path: _write_schedule(path, facts)),
        (html, lambda path: write_report(path, facts, static=static)),
        (csv, lambda path: write_csv(path, facts.runs)),
        (parquet, lambda path: write_parquet(path, facts.runs)),
        (png, lambda path: _draw(facts, path, ".png")),
        (svg, lambda path: _draw(facts, path, ".svg")),
    )
    with CommandWork(f"drawing {identifiers[0]}"):
        for path, write in writers:
            if path is not None:
                write(path)
    for written in filter(None, (html, csv, parquet, png, svg, schedule)):
        typer.echo(str(written))


def _facts(identifier: str) -> Facts:
    """Return the facts of a run or a campaign."""
    from hilt.report.facts import facts_of_campaign, facts_of_run

    with CommandWork(f"reading {identifier}"), Store(database_path(paths.home())) as store:
        found = run_or_campaign(store, identifier)
        if isinstance(found, Run):
            return facts_of_run(store, found)
        from hilt.engine.campaign_results import load_result

        return facts_of_campaign(store, load_result(store, found))


def _write_schedule(path: Path, facts: Facts) -> None:
    from hilt.report.schedule_file import write_schedule

    if facts.result is None:
        raise typer.BadParameter("--schedule is of a campaign; `hilt show RUN` has a run's best configuration")
    write_schedule(path, facts.result)


def _draw(facts: Facts, directory: Path, ending: str) -> None:
    from hilt.report.figures import save
    from hilt.report.plots import pictures

    made = output_folder(directory)
    for name, _, figure in pictures(facts):
        save(figure, made / f"{name}{ending}")
