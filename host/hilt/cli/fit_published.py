"""Fits the costs of the public builds to published measurements, and prints how far they can be trusted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from hilt.atomic_write import atomic_write
from hilt.cli.work import CommandWork
from hilt.silicon.fit import FITTED_TASKS, FREE, builds_of, cross_validate, fit, log_errors
from hilt.silicon.measured import MeasuredWorkload, with_programs
from hilt.silicon.packed_task import TASKS
from hilt.silicon.records import RecordError, read_records
from hilt.silicon.report import identification_lines, parameter_lines, unseen_lines, validation_lines
from hilt.simulator.builds import Builds, shipped_builds

_HEAD = 4096


def is_published(file: Path) -> bool:
    """Return whether a file has measurements as docs/silicon.md describes them: JSON objects that name a board."""
    try:
        with file.open("rb") as stream:
            first = stream.read(_HEAD).split(b"\n")[0]
    except OSError:
        return False
    return b'"board"' in first


def fit_published(files: Sequence[Path], output: Path | None, validate: bool) -> None:
    """Fit the public builds' costs. Raises RecordError."""
    measured = [item for file in files for item in _counted(file)]
    fitted = [item for item in measured if item.record.task.kind in FITTED_TASKS]
    if len(fitted) <= len(FREE):
        raise RecordError(
            f"{len(fitted)} usable records of {', '.join(FITTED_TASKS)}; a fit of {len(FREE)} costs needs more"
        )
    with CommandWork(f"fitting {len(fitted)} records"):
        result = fit(fitted)
    if validate:
        with CommandWork("fitting without each workload in turn") as work:
            validation = cross_validate(
                fitted, result.values, work.counter("fitting without each in turn", "workloads")
            )
        typer.echo("\n".join(validation_lines(fitted, result, validation)))
    else:
        typer.echo(f"root mean square of log error: {result.rms:.4f} fitted")
    builds = builds_of(result.values)
    for kind in TASKS:
        unseen = [item for item in measured if item.record.task.kind == kind and kind not in FITTED_TASKS]
        if unseen:
            typer.echo("\n".join(unseen_lines(kind, unseen, log_errors(unseen, builds))))
    typer.echo("\n".join(parameter_lines(result)))
    typer.echo("\n".join(identification_lines(result)))
    if output is not None:
        _write(output, builds)


def _counted(file: Path) -> list[MeasuredWorkload]:
    """Return the records of a file that count; print each other line and why it does not."""
    with CommandWork(f"making the programs of {file}"):
        records = read_records(file)
        usable, refused = with_programs(records.records)
    for skip in (*records.skipped, *refused):
        typer.echo(f"{file}, line {skip.line} skipped: {skip.reason}")
    counted = []
    for item in usable:
        record = item.record
        doubt = record.doubt or ("below the MAC bound at 100 MHz" if record.below_mac_bound else None)
        if doubt or not record.seconds:
            typer.echo(f"{file}, line {record.line} left out: {record.task.name}: {doubt or 'it has no seconds'}")
        else:
            counted.append(item)
    return counted


def _write(output: Path, builds: Builds) -> None:
    whole = builds.to_dict()
    whole["machines"] = {**shipped_builds().to_dict()["machines"], **whole["machines"]}
    with atomic_write(output) as stream:
        stream.write(json.dumps(whole, indent=2) + "\n")
