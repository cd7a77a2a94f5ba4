"""Trials as a table in a file: CSV, or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hilt.atomic_write import atomic_write
from hilt.report.errors import MissingLibraryError
from hilt.report.facts import RunFacts

_FACTS = (
    "run", "workload", "board", "tuner", "seed", "ordinal", "index", "outcome", "reason", "verified", "cycles",
    "microseconds", "gops", "percent_of_bound", "attempt", "recorded_at",
)  # fmt: skip


def columns(runs: Sequence[RunFacts]) -> list[str]:
    """Return the columns of both files.

    They are facts of a trial, `knob_` of each knob of any run, and `seconds_` of each step of any trial.
    `recorded_at` is in seconds since the epoch, latencies are in microseconds.
    """
    knobs = dict.fromkeys(name for run in runs for trial in run.trials for name in trial.knobs)
    steps = sorted({name for run in runs for trial in run.trials for name in trial.seconds})
    return [*_FACTS, *(f"knob_{name}" for name in knobs), *(f"seconds_{name}" for name in steps)]


def rows(runs: Sequence[RunFacts]) -> Iterator[dict[str, Any]]:
    """Yield a row for each trial, by column; a value that a trial has not is left out."""
    for facts in runs:
        run = facts.run
        for trial in facts.trials:
            latency = trial.microseconds
            row: dict[str, Any] = {
                "run": run.uuid,
                "workload": run.workload,
                "board": trial.board or run.board,
                "tuner": run.tuner,
                "seed": run.seed,
                "ordinal": trial.ordinal,
                "index": trial.index,
                "outcome": str(trial.outcome),
                "reason": trial.reason,
                "verified": trial.verified,
                "cycles": trial.cycles,
                "microseconds": latency,
                "gops": run.gops(latency) if latency else None,
                "percent_of_bound": run.percent_of_bound(latency) if latency else None,
                "attempt": trial.attempt,
                "recorded_at": trial.recorded_at,
            }
            row |= {f"knob_{name}": value for name, value in trial.knobs.items()}
            yield row | {f"seconds_{name}": value for name, value in trial.seconds.items()}


def write_csv(path: Path, runs: Sequence[RunFacts]) -> None:
    """Write the file whole or not at all. Raises UnwritableFileError, OSError."""
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, columns(runs), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(runs))


def write_parquet(path: Path, runs: Sequence[RunFacts]) -> None:
    """Write the file whole or not at all. Raises MissingLibraryError without pyarrow, UnwritableFileError, OSError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingLibraryError("a Parquet file", "pyarrow") from error
    found = list(rows(runs))
    table = pyarrow.table({name: [row.get(name) for row in found] for name in columns(runs)})
    with atomic_write(path) as file:
        pyarrow.parquet.write_table(table, file.buffer)
