"""Fits the machine of the user's own bitstream to runs, campaigns and AutoTVM logs, and keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from hilt import paths
from hilt.atomic_write import atomic_write
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork
from hilt.engine.machine_records import MachineRecords, runs_of
from hilt.silicon.calibrate import FEWEST, TooFewMeasurementsError, calibrate
from hilt.silicon.fitted_machine import FittedMachine
from hilt.silicon.kept_machines import keep_machine
from hilt.store import Store, database_path

_RELIABLE = 0.04


def fit_own(sources: Sequence[str], board: str | None, output: Path | None, as_json: bool) -> None:
    """Fit a bitstream's machine, keep it and print it.

    Raises TooFewMeasurementsError, MixedBitstreamsError, UnknownRunError, LogFormatError and the errors of a board.
    """
    with CommandWork("reading measurements"):
        records = _gathered(sources, board)
    for why, count in records.left_out.items():
        say_text(f"{count} left out: {why}", err=True)
    count = len(records.measurements)
    if count < FEWEST:
        raise TooFewMeasurementsError(
            f"{count} verified measurements of {records.bitstream[:16]}; a fit needs {FEWEST}, so tune a layer first"
        )
    with CommandWork() as work:
        fitting = f"fitting {count} measurements of bitstream {records.bitstream[:16]}"
        work.begin(fitting)
        fitted = calibrate(records.measurements, records.accelerator, work.counter(fitting, "searches"))
    kept = keep_machine(records.bitstream, fitted)
    if output is not None:
        with atomic_write(output) as stream:
            stream.write(json.dumps(_values(records, fitted), indent=1) + "\n")
    if as_json:
        print_json(_values(records, fitted), "fitted_machine")
    else:
        say_text("\n".join([*_lines(fitted), f"kept in {kept}: tune, campaign and compile use it for {records.board}"]))


def _gathered(sources: Sequence[str], board: str | None) -> MachineRecords:
    """Return the measurements of all sources."""
    logs = [Path(source) for source in sources if Path(source).is_file()]
    names = [source for source in sources if not Path(source).is_file()]
    with Store(database_path(paths.home())) as store:
        runs = [run for name in names for run in runs_of(store, name)]
        if board is None and not runs:
            raise typer.BadParameter("an AutoTVM log does not name a bitstream; give --board")
        records = MachineRecords.of_board(board or runs[0].board)
        for run in runs:
            records.add_run(store, run)
    for log in logs:
        records.add_log(log)
    return records


def _values(records: MachineRecords, fitted: FittedMachine) -> dict[str, Any]:
    return {"board": records.board, "bitstream": records.bitstream, **asdict(fitted)}


def _lines(fitted: FittedMachine) -> list[str]:
    """Return the machine, where its search began, and its errors."""
    costs = [f"{name:<16} {value:>10.4g}" for name, value in asdict(fitted.machine).items()]
    seen = f"{fitted.measurements} measurements of {fitted.workloads} workloads"
    lines = [
        *costs,
        f"search began at the shipped machine {fitted.start}",
        f"error on the {seen} that it was fitted to: {100 * fitted.fitted_error:.1f} %",
    ]
    if fitted.unseen_error is None:
        return [*lines, "error on other layers: unknown; add a run of another layer"]
    lines.append(f"error on layers that a fit did not see: {100 * fitted.unseen_error:.1f} %")
    if fitted.unseen_error > _RELIABLE:
        lines.append("that is a rough machine; more measurements of other layers make it better")
    return lines
