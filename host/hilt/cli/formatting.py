"""Runs and trials as text and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hilt.cli.plain_text import plain
from hilt.store import Campaign, Confirmed, Run, RunState, Store, Trial, with_noise
from hilt.store.labels import Labels, labels_of
from hilt.trial import Outcome


def short(uuid: str) -> str:
    """Return the first eight digits of a run's id, as people type it."""
    return uuid[:8]


JSON_SCHEMA = 1
"""The version of everything that --json prints (docs/json.md); it rises when a field changes its meaning or leaves."""


def print_json(value: Mapping[str, Any] | Sequence[Any], kind: str) -> None:
    """Print one JSON object on standard output, headed by its schema version and kind; a list is its `items`."""
    content = dict(value) if isinstance(value, Mapping) else {"items": list(value)}
    sys.stdout.write(json.dumps({"schema": JSON_SCHEMA, "kind": kind} | content) + "\n")


def knobs_text(knobs: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in knobs.items())


def latency_text(run: Run, cycles: int | None, microseconds: float) -> str:
    """Return, for example, `451,584 cycles = 4515.8 µs at 100 MHz, 51.2 GOP/s, 100.0% of the roofline bound`."""
    counted = f"{cycles:,} cycles = " if cycles is not None else ""
    clock = f" at {run.clock_hz / 1e6:g} MHz" if cycles is not None else ""
    return (
        f"{counted}{microseconds:,.1f} µs{clock}, {run.gops(microseconds):.1f} GOP/s, "
        f"{run.percent_of_bound(microseconds):.1f}% of the roofline bound ({run.bound_cycles:,} cycles)"
    )


def time_text(since_epoch: float) -> str:
    return datetime.fromtimestamp(since_epoch).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def state_text(record: Run | Campaign, running: bool) -> str:
    """Return the state; a run that should be going on but has no engine was interrupted."""
    if record.state in (RunState.CREATED, RunState.RUNNING, RunState.PAUSED) and not running:
        return "interrupted"
    return str(record.state)


def outcomes_text(store: Store, run: Run) -> list[tuple[str, int, str]]:
    """Return (outcome, trials, its most frequent reasons) by how many."""
    rows = []
    for outcome, count in sorted(store.counts(run.uuid).items(), key=lambda item: (-item[1], item[0])):
        reasons = list(store.reasons(run.uuid, outcome).items()) if outcome is not Outcome.OK else []
        named = [f"{reason or 'no reason given'} {times}" for reason, times in reasons[:3]]
        rest = len(reasons) - len(named)
        rows.append((str(outcome), count, ", ".join(named) + (f", {rest} more" if rest else "")))
    return rows


def best_json(run: Run, best: Trial | None, confirmed: Confirmed | None = None) -> dict[str, Any] | None:
    """`configuration` is knob values by name, `index` its number in the space, `number` the trial's in its run."""
    if best is None or best.microseconds is None:
        return None
    return {
        "knobs": dict(best.knobs),
        "index": best.index,
        "ordinal": best.ordinal,
        "cycles": best.cycles,
        "microseconds": best.microseconds,
        "gops": run.gops(best.microseconds),
        "percent_of_bound": run.percent_of_bound(best.microseconds),
        "verified": best.verified,
        **_confirmed_json(confirmed),
    }


def _confirmed_json(confirmed: Confirmed | None) -> dict[str, Any]:
    """Return how often a latency was confirmed, and its spread as a share; 0 and None where it was measured once."""
    if confirmed is None:
        return {"confirmed": 0, "spread": None}
    return {"confirmed": len(confirmed.latencies), "spread": confirmed.spread}


def labels_json(labels: Labels) -> dict[str, Any]:
    """Return tags, note and whether it is archived."""
    return {"tags": list(labels.tags), "note": labels.note, "archived": labels.archived}


def labels_text(labels: Labels) -> str:
    """Return tags and note in one line; empty if there are none."""
    parts = [f"#{tag}" for tag in labels.tags] + ([plain(labels.note)] if labels.note else [])
    return " ".join([*parts, *(["(archived)"] if labels.archived else [])])


def run_json(store: Store, run: Run, running: bool, labels: Labels | None = None) -> dict[str, Any]:
    """Return a run as `tune`, `resume`, `runs` and `show` print it; its labels are read unless given."""
    summary, confirmed = store.summary(run.uuid), store.confirmations(run.uuid)
    return {
        "run": run.uuid,
        **labels_json(labels_of(store, run.uuid) if labels is None else labels),
        "workload": run.workload,
        "board": run.board,
        "tuner": run.tuner,
        "seed": run.seed,
        "state": state_text(run, running),
        "detail": run.detail,
        "trials": summary.trials,
        "budget": run.budget,
        "valid": summary.valid,
        "outcomes": {str(outcome): count for outcome, count in store.counts(run.uuid).items()},
        "confidence": with_noise(run.confidence, confirmed),
        "best": best_json(run, summary.best, confirmed.get(summary.best.ordinal) if summary.best else None),
    }
