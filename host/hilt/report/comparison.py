"""Runs, campaigns and bundles side by side: whole networks first, then layer by layer, with a bar of the difference.

The page adds the runs' curves, knob importance and parallel coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from hilt.atomic_write import atomic_write
from hilt.report.facts import RunFacts
from hilt.report.interactive import Plot, html_cards, page
from hilt.report.run_plots import (
    RunGroup,
    comparison_plot,
    coordinates_plot,
    groups_of,
    importance_plot,
    trial_plot,
)


@dataclass(frozen=True)
class ComparedGroup:
    """Runs that differ in the seed alone, and are of one campaign or none, summed up.

    Latencies are the best of each run, in microseconds.
    """

    workload: str
    name: str
    """Its short name: a layer's, else the workload's."""
    label: str
    runs: tuple[str, ...]
    """Their ids."""
    seeds: tuple[int, ...]
    trials: int
    valid_share: float
    median: float | None
    least: float | None
    largest: float | None
    ratio: float | None
    """The median over that of the first group of the same workload."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class ComparedNetwork:
    """A whole network of a campaign or a bundle, in microseconds, and its ratio to the first one of its name."""

    identifier: str
    network: str
    board: str
    microseconds: float
    mark: str
    whole: bool
    ratio: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))


def with_ratios(networks: Sequence[ComparedNetwork]) -> list[ComparedNetwork]:
    """Return the networks with their ratios to the first one."""
    first = networks[0].microseconds if networks else 0.0
    return [replace(each, ratio=each.microseconds / first if first else 1.0) for each in networks]


def compare_views(views: Mapping[str, Mapping[str, Any]]) -> list[ComparedGroup]:
    """Return the nodes of bundles, each over that of the first bundle that has it.

    Args:
        views: hilt.network.network_view by the bundles' names.
    """
    rows: dict[str, list[ComparedGroup]] = {}
    for label, view in views.items():
        for node in view["nodes"]:
            found = rows.setdefault(node["name"], [])
            took = node["microseconds"]
            first = found[0].median if found else took
            ratio = took / first if first else None
            found.append(ComparedGroup(node["op"], node["name"], label, (label,), (), 0, 1.0, took, took, took, ratio))
    return [row for found in rows.values() for row in found if any(each.median for each in found)]


def compare(runs: Sequence[RunFacts]) -> list[ComparedGroup]:
    """Return the groups of the runs, workload after workload."""
    compared: list[ComparedGroup] = []
    for workload in dict.fromkeys(facts.name for facts in runs):
        first: float | None = None
        for group in groups_of([facts for facts in runs if facts.name == workload]):
            bests = [facts.best_so_far[-1].microseconds or 0.0 for facts in group.runs if facts.best_so_far]
            first = float(np.median(bests)) if bests and first is None else first
            compared.append(_compared(workload, group, bests, first))
    return compared


def _compared(workload: str, group: RunGroup, bests: Sequence[float], first: float | None) -> ComparedGroup:
    """Return a group with the best latencies of its runs, beside the `first` group's median."""
    median = float(np.median(bests)) if bests else None
    trials = sum(len(facts.trials) for facts in group.runs)
    return ComparedGroup(
        workload,
        group.runs[0].title,
        group.label,
        tuple(facts.run.uuid for facts in group.runs),
        tuple(facts.run.seed for facts in group.runs),
        trials,
        sum(len(facts.counting) for facts in group.runs) / trials if trials else 0.0,
        median,
        min(bests, default=None),
        max(bests, default=None),
        median / first if median is not None and first else None,
    )


def write_comparison(
    path: Path,
    runs: Sequence[RunFacts],
    networks: Sequence[ComparedNetwork] = (),
    groups: Sequence[ComparedGroup] | None = None,
) -> None:
    """Write the page of several runs; `groups` are those of the runs unless they are given.

    Raises MissingLibraryError without plotly, UnwritableFileError.
    """
    text = comparison_page(runs, networks, groups)
    with atomic_write(path) as file:
        file.write(text)


_NETWORKS = ("", "network", "board", "µs", "over the first", "")
_LAYERS = ("layer", "differs in", "seeds", "trials", "valid", "best µs", "range", "over the first", "")


def comparison_page(
    runs: Sequence[RunFacts],
    networks: Sequence[ComparedNetwork] = (),
    groups: Sequence[ComparedGroup] | None = None,
) -> str:
    """Return the page as HTML: networks, layers, then each layer's plots. Raises MissingLibraryError without plotly."""
    sections = []
    if networks:
        rows = [
            (*map(escape, (each.identifier, each.network, each.board, f"{each.mark}{each.microseconds:,.1f}")),
             *_difference(each.ratio))
            for each in networks
        ]  # fmt: skip
        sections.append("<h2>Networks</h2>" + html_cards(_NETWORKS, rows))
    groups = compare(runs) if groups is None else groups
    sections.append("<h2>Layers</h2>" + html_cards(_LAYERS, [_row(group) for group in groups]))
    for place, workload in enumerate(dict.fromkeys(facts.name for facts in runs)):
        sections += _layer_sections(place, [facts for facts in runs if facts.name == workload])
    return page("Compared", sections)


def _layer_sections(place: int, members: Sequence[RunFacts]) -> list[str]:
    """Return the plot of a workload's runs, then those of each group of them."""
    groups, title, workload = groups_of(members), members[0].title, members[0].name
    plot = comparison_plot(groups, f"compare-{place}")
    note = "" if title == workload else f'<p class="note">workload <code>{escape(workload)}</code></p>'
    own = [_group_section(group, f"{place}-{number}") for number, group in enumerate(groups)]
    return [f"<h2>{escape(title)}</h2>{note}{plot.html()}", *own]


def _difference(ratio: float | None) -> tuple[str, str]:
    """Return the ratio in words and as a bar: to the left where it is faster, to the right where it is slower."""
    if ratio is None:
        return "–", ""
    share = min(abs(ratio - 1), 1.0) / 2
    left = 0.5 - share if ratio < 1 else 0.5
    colour = "#2e7d4f" if ratio < 1 else "#b3261e"
    style = f"margin-left: {100 * left:.1f}%; width: {100 * share:.1f}%; background: {colour}"
    return f"{ratio:.3f}", f'<span class="difference"><i style="{style}"></i></span>'


def _group_section(group: RunGroup, suffix: str) -> str:
    facts = group.runs[0]
    plots: list[Plot | None] = [
        trial_plot(facts, f"trials-{suffix}"),
        importance_plot(facts, f"importance-{suffix}"),
        coordinates_plot(facts, f"coordinates-{suffix}"),
    ]
    title = f"{group.label}: run {facts.run.uuid[:8]}, seed {facts.run.seed}"
    return f"<h3>{escape(title)}</h3>" + "".join(plot.html() for plot in plots if plot is not None)


def _row(group: ComparedGroup) -> tuple[str, ...]:
    spread = "–" if group.least is None else f"{group.least:,.1f} to {group.largest:,.1f}".replace(" ", "&nbsp;")
    return (
        escape(group.name),
        escape(group.label),
        str(len(set(group.seeds)) or "–"),
        f"{group.trials:,}" if group.seeds else "–",
        f"{100 * group.valid_share:.0f}&nbsp;%" if group.seeds else "–",
        "–" if group.median is None else f"{group.median:,.1f}",
        spread,
        *_difference(group.ratio),
    )
