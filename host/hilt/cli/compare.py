"""`hilt compare`: runs and campaigns side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt import paths
from hilt.cli import tables
from hilt.cli.bundle_text import SUFFIX, view_of
from hilt.cli.formatting import print_json, short
from hilt.cli.tables import column
from hilt.cli.work import CommandWork
from hilt.store import Run, Store, database_path
from hilt.store.identifiers import run_or_campaign

if TYPE_CHECKING:
    from hilt.report.comparison import ComparedGroup, ComparedNetwork
    from hilt.report.facts import RunFacts


Identifiers = Annotated[
    list[str],
    typer.Argument(metavar="RUN|CAMPAIGN|FILE.hilt", help="Ids, beginnings of them, `last`, or bundles' files."),
]
Page = Annotated[Path | None, typer.Option(help="Write one page: curves, knob importance, parallel coordinates.")]


def compare(
    identifiers: Identifiers,
    html: Page = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare runs, campaigns or bundles: whole networks first, then layer by layer, each over the first.

    Runs that differ in the seed alone count as one row; each campaign has rows of its own.
    """
    from hilt.report.comparison import compare as compare_runs
    from hilt.report.comparison import compare_views, with_ratios, write_comparison

    found: dict[str, RunFacts] = {}
    networks: list[ComparedNetwork] = []
    views: dict[str, Mapping[str, Any]] = {}
    with CommandWork() as work, Store(database_path(paths.home())) as store:
        for identifier in identifiers:
            work.begin(f"reading {identifier}")
            if identifier.endswith(SUFFIX):
                views[identifier] = view_of(Path(identifier))
                networks.append(_of_bundle(identifier, views[identifier]))
                continue
            facts, network, view = _found(store, identifier)
            found |= {member.run.uuid: member for member in facts}
            if network is not None:
                networks.append(network)
                views |= {network.identifier: view} if view else {}
    runs, networks = list(found.values()), with_ratios(networks)
    beside_bundles = any(identifier.endswith(SUFFIX) for identifier in identifiers)
    groups = (compare_views(views) if beside_bundles else []) + compare_runs(runs)
    if html is not None:
        with CommandWork(f"drawing {html}"):
            write_comparison(html, runs, networks, groups)
    if as_json:
        compared = [network.to_dict() for network in networks]
        rows = [group.to_dict() for group in groups]
        print_json({"networks": compared, "runs": [_values(facts) for facts in runs], "groups": rows}, "comparison")
        return
    _print(networks, groups)
    if html is not None:
        typer.echo(str(html))


def _values(facts: RunFacts) -> dict[str, Any]:

    return {
        "run": facts.run.uuid,
        "workload": facts.run.workload,
        "board": facts.run.board,
        "tuner": facts.run.tuner,
        "seed": facts.run.seed,
        "trials": len(facts.trials),
        "improvements": [
            {"ordinal": trial.ordinal, "microseconds": trial.microseconds, "knobs": dict(trial.knobs)}
            for trial in facts.best_so_far
        ],
    }


def _print(networks: Sequence[ComparedNetwork], groups: Sequence[ComparedGroup]) -> None:
    if networks:
        tables.console().print(_networks_table(networks))
        typer.echo("")
    tables.console().print(_layers_table(groups))


def _found(store: Store, identifier: str) -> tuple[Sequence[RunFacts], ComparedNetwork | None, Mapping[str, Any]]:
    """Return the runs of a run or a campaign, the campaign's network if its latency is known, and its bundle's view."""
    from hilt.engine.campaign_results import board_of, load_result
    from hilt.report.comparison import ComparedNetwork
    from hilt.report.facts import facts_of_campaign, facts_of_run
    from hilt.report.network_latency import network_figure

    record = run_or_campaign(store, identifier)
    if isinstance(record, Run):
        return facts_of_run(store, record).runs, None, {}
    result = load_result(store, record)
    facts = facts_of_campaign(store, result)
    figure = network_figure(result, facts.inference)
    if not figure.microseconds:
        return facts.runs, None, {}
    network = ComparedNetwork(
        short(record.uuid), record.name, board_of(store, record), figure.microseconds, figure.mark, figure.whole, 1.0
    )
    return facts.runs, network, facts.inference.values.get("view", {}) if facts.inference is not None else {}


def _of_bundle(path: str, view: Mapping[str, Any]) -> ComparedNetwork:
    from hilt.network.latency import Latency
    from hilt.report.comparison import ComparedNetwork

    latency = Latency.from_dict(view["latency"])
    return ComparedNetwork(path, view["name"], view["board"], latency.total, "≈" if latency.assumed else "", True, 1.0)


def _networks_table(networks: Sequence[ComparedNetwork]) -> tables.Table:
    table = tables.table(
        "campaign", column("network", cuts=True), column("board", drop=2), ">µs", ">ratio", column("difference", drop=1)
    )
    for each in networks:
        difference = _bar(each.ratio)
        latency = f"{each.mark}{each.microseconds:,.1f}"
        table.add_row(each.identifier, each.network, each.board, latency, f"{each.ratio:.3f}", difference)
    return table


def _layers_table(groups: Sequence[ComparedGroup]) -> tables.Table:
    table = tables.table(
        column("layer", cuts=True),
        column("differs in", cuts=True, drop=1),
        column(">seeds", drop=5),
        column(">trials", drop=6),
        column(">valid", drop=4),
        column(">best µs"),
        column(">range", drop=3),
        column(">ratio"),
        column("difference", drop=2),
    )
    for group in groups:
        table.add_row(
            group.name,
            group.label,
            str(len(set(group.seeds)) or "-"),
            f"{group.trials:,}" if group.seeds else "-",
            f"{100 * group.valid_share:.0f}%" if group.seeds else "-",
            "-" if group.median is None else f"{group.median:,.1f}",
            "-" if group.least is None else f"{group.least:,.1f}-{group.largest:,.1f}",
            "-" if group.ratio is None else f"{group.ratio:.3f}",
            _bar(group.ratio),
        )
    return table


def _bar(ratio: float | None) -> str:
    """Return a bar of how much faster or slower: a cell for every tenth, ten at most."""
    if ratio is None or abs(ratio - 1) < 0.005:
        return ""
    cells = "█" * max(1, min(round(10 * abs(ratio - 1)), 10))
    return f"{'-' if ratio < 1 else '+'}{cells} {100 * abs(ratio - 1):.0f}% {'faster' if ratio < 1 else 'slower'}"
