"""Runs side by side: a table, and a page with their curves, knob importance and parallel coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from hilt.atomic_write import atomic_write
from hilt.report.facts import RunFacts
from hilt.report.interactive import Plot, html_table, page
from hilt.report.run_plots import (
    RunGroup,
    best_so_far,
    comparison_plot,
    coordinates_plot,
    counting,
    groups_of,
    importance_plot,
    trial_plot,
)


@dataclass(frozen=True)
class ComparedGroup:
    """Runs that differ in the seed alone, summed up. Latencies are the best of each run, in microseconds."""

    workload: str
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


def compare(runs: Sequence[RunFacts]) -> list[ComparedGroup]:
    """Return the groups of the runs, workload after workload."""
    compared: list[ComparedGroup] = []
    for workload in dict.fromkeys(facts.name for facts in runs):
        first: float | None = None
        for group in groups_of([facts for facts in runs if facts.name == workload]):
            bests = [best_so_far(facts)[-1].microseconds or 0.0 for facts in group.runs if best_so_far(facts)]
            median = float(np.median(bests)) if bests else None
            first = median if first is None else first
            trials = sum(len(facts.trials) for facts in group.runs)
            compared.append(
                ComparedGroup(
                    workload,
                    group.label,
                    tuple(facts.run.uuid for facts in group.runs),
                    tuple(facts.run.seed for facts in group.runs),
                    trials,
                    sum(len(counting(facts)) for facts in group.runs) / trials if trials else 0.0,
                    median,
                    min(bests, default=None),
                    max(bests, default=None),
                    median / first if median is not None and first else None,
                )
            )
    return compared


def write_comparison(path: Path, runs: Sequence[RunFacts]) -> None:
    """Write the page of several runs. Raises MissingLibraryError without plotly, UnwritableFileError."""
    text = comparison_page(runs)
    with atomic_write(path) as file:
        file.write(text)


def comparison_page(runs: Sequence[RunFacts]) -> str:
    """Return the page of several runs as HTML. Raises MissingLibraryError without plotly."""
    header = (
        "workload",
        "runs that differ in",
        "seeds",
        "trials",
        "valid",
        "best µs, median",
        "range",
        "over the first",
    )
    sections = [html_table(header, [_row(group) for group in compare(runs)])]
    for place, workload in enumerate(dict.fromkeys(facts.name for facts in runs)):
        members = [facts for facts in runs if facts.name == workload]
        plots = [comparison_plot(groups_of(members), f"compare-{place}")]
        sections.append(f"<h2>{escape(workload)}</h2>" + "".join(plot.html() for plot in plots))
        sections += [_group_section(group, f"{place}-{number}") for number, group in enumerate(groups_of(members))]
    return page("Runs compared", sections)


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
    spread = "-" if group.least is None else f"{group.least:,.1f} to {group.largest:,.1f}"
    return (
        group.workload,
        group.label,
        ", ".join(map(str, group.seeds)),
        f"{group.trials:,}",
        f"{100 * group.valid_share:.0f} %",
        "-" if group.median is None else f"{group.median:,.1f}",
        spread,
        "-" if group.ratio is None else f"{group.ratio:.3f}",
    )
