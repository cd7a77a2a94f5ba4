"""A run or a campaign as one HTML file that needs nothing else: to read on a phone, to print, to send."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write
from hilt.engine.campaign_results import CampaignResult
from hilt.network.latency import runs_text, scaled
from hilt.plain_text import plain
from hilt.report.errors import MissingLibraryError
from hilt.report.facts import Facts, RunFacts, facts_of_campaign, facts_of_run
from hilt.report.figures import inline_svg
from hilt.report.health import board_rows, event_rows, step_rows, usage_rows
from hilt.report.interactive import Plot, plotly_script
from hilt.report.network_latency import LEGEND, layer_latency, layer_share, network_figure
from hilt.report.network_page import network_section
from hilt.report.plots import pictures
from hilt.report.reproduce import commands, origin_rows
from hilt.report.run_plots import coordinates_plot, importance_plot, trial_plot
from hilt.store import Run, Store
from hilt.trial import Outcome


def write_campaign_report(path: Path, store: Store, result: CampaignResult) -> None:
    """Write the report whole or not at all.

    Raises MissingLibraryError without the extra `report`, StoreError, UnwritableFileError.
    """
    write_report(path, facts_of_campaign(store, result))


def write_run_report(path: Path, store: Store, run: Run) -> None:
    """Write the report of a run. Raises as write_campaign_report."""
    write_report(path, facts_of_run(store, run))


def write_report(path: Path, facts: Facts, *, static: bool = False) -> None:
    """Write the report of facts that were read before; a static one has no scripts. Raises as write_campaign_report."""
    page = render(facts, static=static)
    with atomic_write(path) as file:
        file.write(page)


def render(facts: Facts, *, static: bool = False) -> str:
    """Return the page. All that comes from users is escaped by the template. Raises MissingLibraryError.

    Args:
        facts: The run or campaign.
        static: Leave out the interactive plots, and with them the scripts, which are most of the page's bytes.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingLibraryError("a report", "Jinja2") from error
    environment = Environment(
        loader=PackageLoader("hilt.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
    )
    environment.filters |= {"figure": _figure, "share": _share, "latency": scaled}
    drawn = {name: inline_svg(figure, name, title) for name, title, figure in pictures(facts)}
    return environment.get_template("report.html.j2").render(
        facts=facts,
        result=facts.result,
        legend=LEGEND,
        figure=network_figure(facts.result, facts.inference) if facts.result else None,
        network_section=_network_section(facts, static),
        runs_text=runs_text(facts.inference.after) if facts.inference else "",
        network=facts.result.network if facts.result else None,
        layers=[_layer(place, run, facts) for place, run in enumerate(facts.runs)],
        drawn=drawn,
        boards=board_rows(facts),
        steps=step_rows(facts),
        used=usage_rows(facts),
        happened=event_rows(facts),
        commands=commands(facts),
        origin=origin_rows(facts),
        interactive="" if static else _interactive(facts),
        title=_title(facts),
        made=time.strftime("%Y-%m-%d %H:%M %Z"),
    )


def _network_section(facts: Facts, static: bool) -> str:
    """Return the graph and the timeline of the network's inference as HTML; empty if there is none."""
    view = facts.inference.values.get("view") if facts.inference is not None else None
    return network_section(view, static=static) if view else ""


def _interactive(facts: Facts) -> str:
    """Return Plotly and the runs' plots as HTML: of a run its trials, knobs and coordinates, of a network each layer.

    Empty without plotly: the page's pictures do without.
    """
    try:
        script = plotly_script()
    except MissingLibraryError:
        return ""
    plots: list[Plot | None] = []
    for place, run in enumerate(facts.runs):
        plots += [
            trial_plot(run, f"trials-{place}"),
            importance_plot(run, f"importance-{place}"),
            coordinates_plot(run, f"coordinates-{place}"),
        ]
    return script + "".join(plot.html() for plot in plots if plot is not None)


def _title(facts: Facts) -> str:
    name = facts.result.network.name if facts.result else facts.runs[0].name
    return f"{name} on {facts.runs[0].run.board}" if facts.runs else name


def _layer(place: int, each: RunFacts, facts: Facts) -> dict[str, Any]:
    """Return the values of a layer's row and section."""
    run, best, fallback = each.run, each.best, each.fallback
    latency = best.microseconds if best is not None else None
    everywhere = each.layer.count * latency if latency else None
    return {
        "place": place,
        "name": each.title,
        "workload": each.name,
        "run": run,
        "count": each.layer.count,
        "nodes": each.layer.nodes,
        "trials": len(each.trials),
        "valid": each.valid,
        "best": best,
        "fallback": fallback,
        "latency": latency,
        "everywhere": everywhere,
        "shown": layer_latency(each.result),
        "share": layer_share(each.result, facts.result) if facts.result else None,
        "gain": each.result.gain,
        "gops": run.gops(latency) if latency else None,
        "percent": run.percent_of_bound(latency) if latency else None,
        "knobs": " ".join(f"{name}={value}" for name, value in best.knobs.items()) if best is not None else "",
        "failed": set(each.counts) - {Outcome.OK},
        "outcomes": [
            (str(outcome), count, ", ".join(f"{reason or 'no reason given'} {times}" for reason, times in
                                            each.reasons.get(outcome, {}).items()))
            for outcome, count in sorted(each.counts.items(), key=lambda item: (item[0] is not Outcome.OK, -item[1]))
        ],
    }  # fmt: skip


def _figure(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"
