"""Rows of the database <-> records."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hilt.store.errors import CorruptStoreError
from hilt.store.records import Campaign, Run, RunState
from hilt.trial import Outcome, Trial, Verification

RUN_COLUMNS = (
    "uuid", "workload", "workload_spec", "board", "parameters", "isa", "bitstream", "clock_hz", "tuner",
    "tuner_options", "seed", "checks", "space_kind", "orders", "space", "space_size", "budget", "batch", "repeat",
    "number", "limit_seconds", "output_elements", "macs", "bound_cycles", "state", "detail", "failure", "created",
    "finished", "versions", "campaign", "predicted_microseconds",
    "confidence", "rounds",
)  # fmt: skip
TRIAL_COLUMNS = (
    "ordinal", "index", "knobs", "outcome", "reason", "cycles", "microseconds", "repeats", "compared",
    "mismatched", "first", "largest_error", "output_elements", "board", "attempt", "seconds", "recorded_at",
)  # fmt: skip
CAMPAIGN_COLUMNS = ("uuid", "name", "network", "settings", "created", "budget", "fallback_first", "state")
"""The columns that are written when a campaign is created."""
_RUN_JSON = ("workload_spec", "tuner_options", "versions")


def to_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def run_row(run: Run) -> dict[str, Any]:
    row = {name: getattr(run, name) for name in RUN_COLUMNS}
    return row | {name: to_json(dict(row[name])) for name in _RUN_JSON} | {"state": str(run.state)}


def run_of(row: sqlite3.Row) -> Run:
    values = {name: row[name] for name in RUN_COLUMNS}
    with _readable(f"run {str(values['uuid'])[:8]}"):
        values |= {name: json.loads(values[name]) for name in _RUN_JSON}
        return Run(**values | {"state": RunState(values["state"])})


def campaign_row(campaign: Campaign) -> tuple[Any, ...]:
    """Return the values in the order of CAMPAIGN_COLUMNS."""
    network, settings, budget = to_json(campaign.network), to_json(campaign.settings), to_json(dict(campaign.budget))
    facts = (campaign.created, budget, campaign.fallback_first, str(campaign.state))
    return (campaign.uuid, campaign.name, network, settings, *facts)


def campaign_of(row: sqlite3.Row) -> Campaign:
    with _readable(f"campaign {str(row['uuid'])[:8]}"):
        return Campaign(
            uuid=row["uuid"],
            name=row["name"],
            network=json.loads(row["network"]),
            settings=json.loads(row["settings"]),
            created=row["created"],
            budget=json.loads(row["budget"]),
            fallback_first=bool(row["fallback_first"]),
            state=RunState(row["state"]),
            detail=row["detail"],
            failure=row["failure"],
            finished=row["finished"],
            spent_seconds=row["spent_seconds"],
        )


def trial_row(trial: Trial) -> dict[str, Any]:
    seen = trial.verification
    return {name: getattr(trial, name, None) for name in TRIAL_COLUMNS} | {
        "knobs": _knobs_json(trial.knobs),
        "outcome": str(trial.outcome),
        "repeats": to_json(trial.repeats),
        "seconds": to_json(dict(trial.seconds)),
        "compared": seen and seen.compared,
        "mismatched": seen and seen.mismatched,
        "first": seen and seen.first,
        "largest_error": seen and seen.largest_error,
    }


def trial_of(row: sqlite3.Row) -> Trial:
    verification = None
    if row["compared"] is not None:
        verification = Verification(row["compared"], row["mismatched"], row["first"], row["largest_error"])
    with _readable(f"trial {row['ordinal']}"):
        return Trial(
            ordinal=row["ordinal"],
            index=row["index"],
            knobs=json.loads(row["knobs"]),
            outcome=Outcome(row["outcome"]),
            reason=row["reason"],
            cycles=row["cycles"],
            microseconds=row["microseconds"],
            repeats=tuple(json.loads(row["repeats"])),
            verification=verification,
            output_elements=row["output_elements"],
            board=row["board"],
            attempt=row["attempt"],
            seconds=json.loads(row["seconds"]),
            recorded_at=row["recorded_at"],
        )


@contextmanager
def _readable(record: str) -> Iterator[None]:
    """Raise CorruptStoreError, which names the record, if its columns hold values that hilt cannot have written."""
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptStoreError(
            f"{record} of the database is damaged ({type(error).__name__}: {error}); restore the database from a copy, "
            f"or move it away to begin a new one"
        ) from error


def _knobs_json(knobs: Mapping[str, int]) -> str:
    """Return the knobs as JSON in the order of the space."""
    return json.dumps({name: int(value) for name, value in knobs.items()}, separators=(",", ":"))
