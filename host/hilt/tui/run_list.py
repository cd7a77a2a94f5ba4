"""The rows of the list of runs: campaigns with their layers below, filtered and sorted. Knows nothing of the screen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hilt.engine.campaign_results import RunNames
from hilt.engine.run_files import RunFiles
from hilt.report.campaign_inference import CampaignInference, load_inference
from hilt.store import Campaign, Run, RunState, RunSummary, Store
from hilt.store.labels import Labels, all_labels
from hilt.tui import formatting
from hilt.tui.event_lines import one_line

MOST_RUNS = 400
"""Runs that are read, the newest."""
_GOING = (RunState.RUNNING, RunState.PAUSED, RunState.CREATED)


@dataclass(frozen=True)
class RunRow:
    """A run, or a campaign with the runs of its layers, as text by column."""

    uuid: str
    is_campaign: bool
    cells: dict[str, str]
    begun: float
    latency: float
    """Infinite where nothing verified was found, and for a campaign without an inference."""
    layers: tuple[RunRow, ...] = ()
    labels: Labels = field(default_factory=Labels)

    def holds(self, text: str) -> bool:
        """Return whether the row or one of its layers has the text in a cell."""
        return any(text in cell.lower() for cell in self.cells.values()) or any(row.holds(text) for row in self.layers)


COLUMNS = {
    "run": 10,
    "state": 11,
    "trials": 9,
    "best": 10,
    "workload": 20,
    "tuner": 8,
    "begun": 16,
    "valid": 6,
    "board": 24,
    "tags": 16,
    "note": 32,
}
"""Titles and widths. A table that is painted before it has measured its rows would cut them. Up to `begun`
they fit 100 cells."""

_SORT_KEYS: dict[str, Callable[[RunRow], object]] = {
    "best": lambda row: row.latency,
    "begun": lambda row: -row.begun,
    "trials": lambda row: -int(row.cells["trials"].partition("/")[0] or 0),
    "valid": lambda row: -int(row.cells["valid"] or 0),
}


def read_rows(store: Store, home: Path) -> list[RunRow]:
    """Return campaigns and the runs of no campaign, newest first, archived ones too. Raises StoreError."""
    labels = all_labels(store)
    campaigns = {campaign.uuid: campaign for campaign in store.campaigns()}
    rows: list[RunRow] = []
    layers: dict[str, list[RunRow]] = {}
    names = RunNames(store)
    for run in store.runs(MOST_RUNS):
        row = _run_row(store.summary(run.uuid), names(run), RunFiles(home, run.uuid).is_running())
        row = _labelled(row, labels.get(run.uuid, Labels()))
        if run.campaign in campaigns:
            layers.setdefault(run.campaign or "", []).append(row)
        else:
            rows.append(row)
    for uuid, campaign in campaigns.items():
        members = layers.get(uuid, [])
        live = RunFiles(home, uuid).is_running()
        row = _campaign_row(campaign, members[::-1], load_inference(store, uuid), live)
        rows.append(_labelled(row, labels.get(uuid, Labels())))
    return sorted(rows, key=lambda row: -row.begun)


def arrange(
    rows: Sequence[RunRow], text: str, column: str, reverse: bool, unfolded: Iterable[str], archived: bool = False
) -> list[tuple[RunRow, int]]:
    """Return (row, depth) in the order in which they are shown: those that hold the text, sorted by a column.

    Archived ones are left out unless `archived`.
    """
    key = _SORT_KEYS.get(column, lambda row: row.cells[column].lower())
    chosen = [row for row in rows if row.holds(text.lower()) and (archived or not row.labels.archived)]
    shown: list[tuple[RunRow, int]] = []
    for row in sorted(chosen, key=key, reverse=reverse):
        shown.append((row, 0))
        if row.uuid in unfolded:
            shown += [(layer, 1) for layer in row.layers]
    return shown


def _labelled(row: RunRow, labels: Labels) -> RunRow:
    note = one_line(labels.note)
    cells = {"tags": " ".join(labels.tags), "note": f"(archived) {note}" if labels.archived else note}
    return replace(row, cells=row.cells | cells, labels=labels)


def _state(state: RunState, live: bool) -> str:
    return "interrupted" if state in _GOING and not live else str(state)


def _run_row(summary: RunSummary, name: str, live: bool) -> RunRow:
    run, best = summary.run, summary.best
    latency = best.microseconds if best is not None else None
    budget = "" if run.campaign else f"/{run.budget}"
    cells = {
        "run": run.uuid[:8],
        "state": _state(run.state, live),
        "trials": f"{summary.trials}{budget}",
        "best": formatting.microseconds(latency),
        "workload": name,
        "tuner": run.tuner,
        "begun": _date(run),
        "valid": str(summary.valid),
        "board": run.board,
    }
    return RunRow(run.uuid, False, cells, run.created, latency or float("inf"))


def _campaign_row(
    campaign: Campaign, layers: Sequence[RunRow], inference: CampaignInference | None, live: bool
) -> RunRow:
    """Return a campaign's row: its best is the whole inference, where one ran."""
    latency = inference.after.total if inference is not None else None
    trials = sum(int(row.cells["trials"].partition("/")[0]) for row in layers)
    valid = sum(int(row.cells["valid"]) for row in layers)
    budget = (campaign.budget or {}).get("trials")
    going = live or any(row.cells["state"] == "running" for row in layers)
    cells = {
        "run": campaign.uuid[:8],
        "state": _state(campaign.state, going),
        "trials": f"{trials}/{budget}" if budget else str(trials),
        "best": "" if latency is None else formatting.microseconds(latency),
        "workload": f"{campaign.name} ({len(layers)} layer{'' if len(layers) == 1 else 's'})",
        "tuner": layers[0].cells["tuner"] if layers else "",
        "begun": _date(campaign),
        "valid": str(valid),
        "board": str(campaign.settings.get("board", "")),
    }
    return RunRow(campaign.uuid, True, cells, campaign.created, latency or float("inf"), tuple(layers))


def _date(record: Run | Campaign) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(record.created))
