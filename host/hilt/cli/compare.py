"""`hilt compare`: runs and campaigns side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.formatting import print_json, short
from hilt.cli.tables import column
from hilt.store import Run, Store, database_path
from hilt.store.identifiers import run_or_campaign


def compare(
    identifiers: Annotated[
        list[str], typer.Argument(metavar="RUN|CAMPAIGN", help="Ids, beginnings of them, or `last`.")
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write one page: curves, knob importance, parallel coordinates.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare runs: best latency, spread over seeds, and the ratio to the first; layer by layer for campaigns.

    Runs that differ in the seed alone count as one row.
    """
    from hilt.engine.campaign_results import load_result
    from hilt.report.comparison import compare as compare_runs
    from hilt.report.comparison import write_comparison
    from hilt.report.facts import RunFacts, facts_of_campaign, facts_of_run
    from hilt.report.run_plots import best_so_far

    runs: dict[str, RunFacts] = {}
    with Store(database_path(paths.home())) as store:
        for identifier in identifiers:
            found = run_or_campaign(store, identifier)
            facts = (
                facts_of_run(store, found)
                if isinstance(found, Run)
                else facts_of_campaign(store, load_result(store, found))
            )
            runs |= {member.run.uuid: member for member in facts.runs}
    groups = compare_runs(list(runs.values()))
    if html is not None:
        write_comparison(html, list(runs.values()))
    if as_json:
        listed = [
            {
                "run": facts.run.uuid,
                "workload": facts.run.workload,
                "board": facts.run.board,
                "tuner": facts.run.tuner,
                "seed": facts.run.seed,
                "trials": len(facts.trials),
                "improvements": [
                    {"ordinal": trial.ordinal, "microseconds": trial.microseconds, "knobs": dict(trial.knobs)}
                    for trial in best_so_far(facts)
                ],
            }
            for facts in runs.values()
        ]
        print_json({"runs": listed, "groups": [group.to_dict() for group in groups]}, "comparison")
        return
    table = tables.table(
        "run",
        column("workload", cuts=True),
        column("differs in", cuts=True),
        column(">seeds", drop=3),
        column(">trials", drop=4),
        column(">valid", drop=2),
        column(">best µs"),
        column(">range", drop=1),
        column(">ratio"),
    )
    for group in groups:
        table.add_row(
            short(group.runs[0]),
            group.workload,
            group.label,
            str(len(group.seeds)),
            f"{group.trials:,}",
            f"{100 * group.valid_share:.0f}%",
            "-" if group.median is None else f"{group.median:,.1f}",
            "-" if group.least is None else f"{group.least:,.1f}-{group.largest:,.1f}",
            "-" if group.ratio is None else f"{group.ratio:.3f}",
        )
    tables.console().print(table)
    if html is not None:
        typer.echo(str(html))
