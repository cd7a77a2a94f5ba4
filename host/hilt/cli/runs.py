"""`hilt runs`, `hilt show` and `hilt best`: the contents of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.bundle_text import SUFFIX, show_bundle, write_page
from hilt.cli.formatting import (
    best_json,
    knobs_text,
    labels_text,
    latency_text,
    outcomes_text,
    print_json,
    run_json,
    short,
    state_text,
    time_text,
)
from hilt.cli.listing import ListAll, ListTag, is_listed, nothing_listed
from hilt.cli.prose import print_text, say_text
from hilt.cli.tables import column
from hilt.engine.campaign_results import RunNames
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, Run, Store, database_path
from hilt.store.identifiers import run_or_campaign
from hilt.store.labels import Labels, all_labels, labels_of

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_SPARKS = "▁▂▃▄▅▆▇█"
_SPARK_COLUMNS = 60


def runs(
    limit: Annotated[int, typer.Option(min=1, max=2**63 - 1, help="At most so many, newest first.")] = 50,
    tag: ListTag = None,
    all_of_them: ListAll = False,
    as_json: Json = False,
) -> None:
    """List tuning runs, newest first."""
    home = paths.home()
    with Store(database_path(home)) as store:
        labels = all_labels(store)
        listed = (run for run in store.runs() if is_listed(labels, (run.uuid, run.campaign or ""), tag, all_of_them))
        found = list(islice(listed, limit))
        if as_json:
            values = [run_json(store, run, _running(home, run), labels.get(run.uuid, Labels())) for run in found]
            print_json(values, "runs")
        elif not found:
            say_text(nothing_listed("runs", "hilt tune resnet18.C5", tag, labels))
        else:
            tables.console().print(_runs_table(store, found, labels))


def _runs_table(store: Store, found: Sequence[Run], labels: Mapping[str, Labels]) -> tables.Table:
    table = tables.table(
        "run",
        column("workload", cuts=True),
        column("board", drop=4),
        column("tuner", drop=5),
        column(">trials", drop=2),
        column(">valid", drop=6),
        column(">best µs", drop=1),
        column(">% of bound", drop=7),
        column("state", drop=3),
        column("begun", drop=8),
        column("tags", drop=9),
    )
    names, home = RunNames(store), paths.home()
    for run in found:
        summary = store.summary(run.uuid)
        latency = summary.best.microseconds if summary.best else None
        table.add_row(
            short(run.uuid),
            names(run),
            run.board,
            run.tuner,
            str(summary.trials) if run.campaign else f"{summary.trials}/{run.budget}",
            str(summary.valid),
            f"{latency:,.1f}" if latency else "-",
            f"{run.percent_of_bound(latency):.1f}" if latency else "-",
            state_text(run, _running(home, run)),
            time_text(run.created),
            " ".join(labels.get(run.uuid, Labels()).tags),
        )
    return table


def show(
    identifier: Annotated[
        str,
        typer.Argument(metavar="ID|FILE.hilt", help="The id of a run or a campaign, or `last`; or a bundle's file."),
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write a bundle's or campaign's network as a page: graph and timeline.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a run (settings, outcomes, best), a campaign (layers, latency, gain) or a bundle (nodes, times)."""
    if identifier.endswith(SUFFIX):
        show_bundle(Path(identifier), html, as_json=as_json)
        return
    home = paths.home()
    with Store(database_path(home)) as store:
        record = run_or_campaign(store, identifier)
        running = _running(home, record)
        if html is not None:
            _write_network(store, record, html)
        if isinstance(record, Campaign):
            from hilt.cli.network_text import show_campaign

            show_campaign(store, record, running, as_json=as_json)
            return
        if as_json:
            print_json(run_json(store, record, running) | _details_json(store, record), "run")
            return
        _show(store, record, running)


def _write_network(store: Store, record: Run | Campaign, path: Path) -> None:
    """Write the page of a campaign's network. Raises BadParameter where there is none."""
    from hilt.report.campaign_inference import load_inference

    inference = load_inference(store, record.uuid)
    if inference is None or "view" not in inference.values:
        raise typer.BadParameter(
            f"{short(record.uuid)} has no inference of a network to draw; `hilt report {short(record.uuid)}` has the "
            "page of its trials"
        )
    write_page(path, inference.values["view"])


def best(
    workload: Annotated[str | None, typer.Argument(help="Only this workload.")] = None, as_json: Json = False
) -> None:
    """List the best verified configuration of every workload on every board."""
    with Store(database_path(paths.home())) as store:
        found = store.best_of_each(workload)
        names = RunNames(store)
        named = [names(run) for run, _ in found]
    if as_json:
        print_json(
            [
                {"workload": run.workload, "board": run.board, "run": run.uuid, "best": best_json(run, trial)}
                for run, trial in found
            ],
            "best",
        )
    elif not found:
        if workload is not None:
            from hilt.schedule import load_workload

            load_workload(workload)  # raises if the text is no workload, such as the id of a run
        say_text(f"no verified configuration of {workload or 'any workload'} yet; `hilt tune` looks for one")
    else:
        table = tables.table("workload", "board", ">cycles", ">µs", ">GOP/s", ">% of bound", "knobs", "run")
        for name, (run, trial) in zip(named, found, strict=True):
            latency = trial.microseconds or 0.0
            table.add_row(
                name,
                run.board,
                f"{trial.cycles:,}" if trial.cycles is not None else "-",
                f"{latency:,.1f}",
                f"{run.gops(latency):.1f}",
                f"{run.percent_of_bound(latency):.1f}",
                knobs_text(trial.knobs),
                short(run.uuid),
            )
        tables.console().print(table)
    if not found:
        raise typer.Exit(1)


def _show(store: Store, run: Run, running: bool) -> None:
    console = tables.console()
    summary = store.summary(run.uuid)
    facts = tables.table(header=False)
    for name, value in (
        ("run", run.uuid),
        *([("layer", layer)] if (layer := RunNames(store)(run)) != run.workload else []),
        ("workload", f"{run.workload}, {run.macs:,} multiply-accumulates"),
        ("board", f"{run.board}: {run.parameters}, ISA {run.isa}, {run.clock_hz / 1e6:g} MHz"),
        ("bitstream", run.bitstream),
        ("tuner", f"{run.tuner}, seed {run.seed}, batches of {run.batch}"),
        ("options", knobs_text(run.tuner_options) or "none"),
        ("space", f"{run.space_size:,} configurations, {_space_words(run)}, checks {run.checks}"),
        ("time limit", f"{run.limit_seconds * 1e3:,.0f} ms a run, by the board's clock"),
        ("state", f"{state_text(run, running)}{', ' if run.detail else ''}{run.detail}"),
        ("begun", time_text(run.created)),
        *([("labels", text)] if (text := labels_text(labels_of(store, run.uuid))) else []),
        ("trials", f"{summary.trials} of {run.budget}, {summary.valid} valid"),
    ):
        facts.add_row(name, value)
    console.print(facts)
    outcomes = tables.table("outcome", ">trials", ">share", "most frequent reasons")
    for outcome, count, reasons in outcomes_text(store, run):
        outcomes.add_row(outcome, str(count), f"{100 * count / summary.trials:.0f}%", reasons)
    if summary.trials:
        console.print()
        console.print(outcomes)
    console.print()
    if summary.best is None or summary.best.microseconds is None:
        print_text(console, "no verified configuration yet")
        return
    found = summary.best
    print_text(console, f"best: configuration {found.index}, trial {found.ordinal}: {knobs_text(found.knobs)}")
    print_text(console, f"  {latency_text(run, found.cycles, summary.best.microseconds)}")
    curve = store.improvements(run.uuid)
    ends = f"{curve[0][1]:,.1f} to {curve[-1][1]:,.1f} µs"
    print_text(console, f"best latency by trial: {sparkline(curve, summary.trials)} {ends}")


def _space_words(run: Run) -> str:
    return f"space {run.space_kind} of {run.orders} loop order{'s' if run.orders > 1 else ''}"


def sparkline(curve: list[tuple[int, float]], trials: int) -> str:
    """Return the best latency after each trial as bars, from the first verified one; blank before it."""
    columns = min(_SPARK_COLUMNS, trials)
    values: list[float | None] = []
    for place in range(columns):
        last = (place + 1) * trials // columns - 1
        so_far = [latency for ordinal, latency in curve if ordinal <= last]
        values.append(so_far[-1] if so_far else None)
    low, high = curve[-1][1], curve[0][1]
    span = high - low or 1.0
    top = len(_SPARKS) - 1
    return "".join(" " if value is None else _SPARKS[round(top * (value - low) / span)] for value in values)


def _details_json(store: Store, run: Run) -> dict[str, object]:
    return {
        "parameters": run.parameters,
        "isa": run.isa,
        "bitstream": run.bitstream,
        "clock_hz": run.clock_hz,
        "tuner_options": dict(run.tuner_options),
        "space": run.space_kind,
        "orders": run.orders,
        "checks": run.checks,
        "space_size": run.space_size,
        "batch": run.batch,
        "repeat": run.repeat,
        "rounds": run.rounds,
        "limit_seconds": run.limit_seconds,
        "output_elements": run.output_elements,
        "bound_cycles": run.bound_cycles,
        "versions": dict(run.versions),
        "created": run.created,
        "finished": run.finished,
        "improvements": [
            {"ordinal": ordinal, "microseconds": latency} for ordinal, latency in store.improvements(run.uuid)
        ],
    }


def _running(home: Path, record: Run | Campaign) -> bool:
    return RunFiles(home, record.uuid).is_running()
