"""Interactive plots of runs: trials and best so far, knob importance, parallel coordinates, runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from hilt.report.facts import RunFacts
from hilt.report.figures import FAILED, QUIET
from hilt.report.interactive import COLOURS, Plot
from hilt.store import Run, Trial

_LEAST_FOR_IMPORTANCE = 8
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in nothing but the seed. Runs of two campaigns are of two groups, so that these are compared."""

    label: str
    runs: tuple[RunFacts, ...]


def trial_plot(facts: RunFacts, name: str) -> Plot:
    """Return every trial, the best so far as steps, failures, and the roofline bound; hover has the configuration."""
    trials, steps, failed = facts.counting, facts.best_so_far, facts.failed
    last = facts.trials[-1].ordinal if facts.trials else 0
    bound = facts.run.bound_microseconds
    traces: list[dict[str, Any]] = [
        _scatter("trials", trials, {"color": QUIET, "size": 6}),
        _steps("best so far", steps, last, COLOURS[0]),
        {
            "type": "scatter", "mode": "lines", "name": "roofline bound", "x": [0, last], "y": [bound, bound],
            "line": {"color": QUIET, "dash": "dash", "width": 1}, "hoverinfo": "name+y",
        },
    ]  # fmt: skip
    if failed:
        marks = {"color": FAILED, "symbol": "x-thin-open", "size": 7}
        text = [f"trial {trial.ordinal}: {trial.outcome} {trial.reason}<br>{_knobs(trial)}" for trial in failed]
        traces.append(
            {
                "type": "scatter", "mode": "markers", "name": "failed", "x": [trial.ordinal for trial in failed],
                "y": [bound] * len(failed), "text": text, "hoverinfo": "text", "marker": marks,
            }
        )  # fmt: skip
    layout = {"xaxis": {"title": {"text": "trial"}}, "yaxis": {"title": {"text": "µs"}, "type": "log"}}
    return Plot(name, f"Latency of each trial of {facts.title}. Failed trials are on the bound's line.", traces, layout)


def importance(facts: RunFacts) -> dict[str, float]:
    """Return for each knob the share of the variance of log latency that its values explain alone, largest first.

    It is the correlation ratio over the run's trials, corrected for the number of values (epsilon squared). A tuner
    does not draw trials evenly, so it describes this run and not the whole space. Empty for few trials.
    """
    trials = facts.counting
    if len(trials) < _LEAST_FOR_IMPORTANCE:
        return {}
    logs = np.log([_latency(trial) for trial in trials])
    total = float(((logs - logs.mean()) ** 2).sum())
    if total == 0:
        return {}
    shares = {}
    for knob in trials[0].knobs:
        values = np.array([trial.knobs.get(knob, 0) for trial in trials])
        groups = [logs[values == value] for value in np.unique(values)]
        if 1 < len(groups) < len(logs):
            within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
            corrected = 1 - (within / (len(logs) - len(groups))) / (total / (len(logs) - 1))
            shares[knob] = max(0.0, corrected)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def importance_plot(facts: RunFacts, name: str) -> Plot | None:
    """Return bars of `importance`; None if there are too few trials."""
    shares = importance(facts)
    if not shares:
        return None
    knobs = list(shares)[::-1]
    bars = {
        "type": "bar", "orientation": "h", "y": knobs, "x": [100 * shares[knob] for knob in knobs],
        "marker": {"color": COLOURS[0]}, "hovertemplate": "%{y}: %{x:.1f} %<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "% of the variance of log latency, by each knob alone"}},
        "yaxis": {"automargin": True},
        "height": 320,
    }
    return Plot(name, f"Knob importance in the trials of {facts.title}.", [bars], layout)


def coordinates_plot(facts: RunFacts, name: str) -> Plot | None:
    """Return parallel coordinates: an axis for each knob, a line for each trial; None if there are none."""
    trials = facts.counting
    if not trials:
        return None
    logs = [float(np.log10(_latency(trial))) for trial in trials]
    dimensions: list[dict[str, Any]] = []
    for knob in trials[0].knobs:
        values = sorted({trial.knobs.get(knob, 0) for trial in trials})
        if len(values) > 1:
            dimensions.append(
                {
                    "label": knob,
                    "values": [values.index(trial.knobs.get(knob, 0)) for trial in trials],
                    "tickvals": list(range(len(values))),
                    "ticktext": [str(value) for value in values],
                }
            )
    ticks = np.linspace(min(logs), max(logs), 4).tolist()
    dimensions.append(
        {"label": "µs", "values": logs, "tickvals": ticks, "ticktext": [f"{10**tick:,.0f}" for tick in ticks]}
    )
    line = {"color": logs, "colorscale": "Viridis", "reversescale": True}
    traces = [{"type": "parcoords", "dimensions": dimensions, "line": line}]
    caption = f"Configurations of {facts.title} that ran: a knob an axis, yellow is fast. Drag an axis to filter."
    return Plot(name, caption, traces, {"margin": {"l": 60, "r": 60, "t": 60, "b": 30}})


def groups_of(runs: Sequence[RunFacts]) -> list[RunGroup]:
    """Return the runs grouped by all but the seed, in the order given; a label says how the groups differ."""
    keys: dict[tuple[str, ...], list[RunFacts]] = {}
    for facts in runs:
        keys.setdefault(_key(facts.run), []).append(facts)
    return [RunGroup(label, tuple(members)) for label, members in zip(_labels(list(keys)), keys.values(), strict=True)]


def _labels(keys: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a label for each key: the first facts that tell all keys apart, tuner and board before the others."""
    chosen: list[int] = []
    for place in range(len(keys[0])):
        if _distinct(keys, [place]) > 1 and _distinct(keys, chosen) < len(keys):
            chosen.append(place)
    labels = [", ".join(key[place] for place in chosen if key[place]) for key in keys]
    return [label or key[0] for label, key in zip(labels, keys, strict=True)]


def _distinct(keys: Sequence[tuple[str, ...]], places: Sequence[int]) -> int:
    """Return how many keys differ in the facts at some places."""
    return len({tuple(key[place] for place in places) for key in keys})


def comparison_plot(groups: Sequence[RunGroup], name: str) -> Plot:
    """Return the best latency so far of each group over trials, as steps; the range over seeds as a band."""
    traces: list[dict[str, Any]] = []
    for place, group in enumerate(groups):
        colour = COLOURS[place % len(COLOURS)]
        if len(group.runs) == 1:
            facts = group.runs[0]
            last = facts.trials[-1].ordinal if facts.trials else 0
            traces.append(_steps(group.label, facts.best_so_far, last, colour))
            continue
        curves = np.array([curve(facts, max(len(member.trials) for member in group.runs)) for facts in group.runs])
        ordinals = list(range(curves.shape[1]))
        traces += _band(group, ordinals, curves, colour)
    layout = {"xaxis": {"title": {"text": "trial"}}, "yaxis": {"title": {"text": "best µs so far"}, "type": "log"}}
    return Plot(name, "Best latency so far. Several seeds: the median, and the range as a band.", traces, layout)


def curve(facts: RunFacts, trials: int) -> Floats:
    """Return the best latency after each trial, shape (trials,); NaN before the first one that counts."""
    values = np.full(trials, np.nan)
    for trial in facts.best_so_far:
        values[trial.ordinal :] = _latency(trial)
    return values


def _band(group: RunGroup, ordinals: list[int], curves: Floats, colour: str) -> list[dict[str, Any]]:
    complete = curves[:, np.isfinite(curves).all(axis=0)]
    x = ordinals[len(ordinals) - complete.shape[1] :]
    low, middle, high = (
        [round(float(value), 3) for value in measure(complete, axis=0)] for measure in (np.min, np.median, np.max)
    )
    hidden = {"mode": "lines", "line": {"width": 0, "shape": "hv"}, "hoverinfo": "skip", "showlegend": False}
    return [
        {"type": "scatter", "x": x, "y": high, "legendgroup": group.label, **hidden},
        {
            "type": "scatter", "x": x, "y": low, "legendgroup": group.label, "fill": "tonexty",
            "fillcolor": f"{colour}26", **hidden,
        },
        {
            "type": "scatter", "x": x, "y": middle, "mode": "lines", "legendgroup": group.label,
            "name": f"{escape(group.label)} ({len(group.runs)} seeds)", "line": {"color": colour, "shape": "hv"},
        },
    ]  # fmt: skip


def _key(run: Run) -> tuple[str, ...]:
    options = " ".join(f"{name}={value}" for name, value in sorted(run.tuner_options.items()))
    space = f"{run.space_kind}, {run.orders} orders"
    campaign = "" if run.campaign is None else run.campaign[:8]
    return (run.tuner, run.board, options, space, f"checks {run.checks}", run.bitstream[:12], run.workload, campaign)


def _scatter(name: str, trials: Sequence[Trial], marker: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "marker": dict(marker), "hoverinfo": "text",
        "x": [trial.ordinal for trial in trials], "y": [trial.microseconds for trial in trials],
        "text": [_hover(trial) for trial in trials],
    }  # fmt: skip


def _steps(name: str, trials: Sequence[Trial], last: int, colour: str) -> dict[str, Any]:
    x = [trial.ordinal for trial in trials]
    y = [trial.microseconds for trial in trials]
    text = [_hover(trial) for trial in trials]
    if trials:
        x, y, text = [*x, last], [*y, y[-1]], [*text, text[-1]]
    return {
        "type": "scatter", "mode": "lines+markers", "name": escape(name), "x": x, "y": y, "text": text,
        "hoverinfo": "text+name", "line": {"color": colour, "shape": "hv", "width": 2}, "marker": {"size": 5},
    }  # fmt: skip


def _hover(trial: Trial) -> str:
    return f"trial {trial.ordinal}, configuration {trial.index}<br>{_latency(trial):,.1f} µs<br>{_knobs(trial)}"


def _knobs(trial: Trial) -> str:
    return escape(" ".join(f"{name}={value}" for name, value in trial.knobs.items()))


def _latency(trial: Trial) -> float:
    return trial.microseconds or float("inf")
