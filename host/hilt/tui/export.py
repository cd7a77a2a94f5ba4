"""Files of a run, written whole or not at all."""

from __future__ import annotations

import csv
from enum import StrEnum
from pathlib import Path

from hilt.atomic_write import atomic_write
from hilt.store import Store
from hilt.store.autotvm_exchange import export_run, target_of
from hilt.store.autotvm_log import write_log
from hilt.vta.parameters import VTAParameters


class ExportKind(StrEnum):
    TRIALS = "trials.csv"
    REPORT = "report.html"
    AUTOTVM = "autotvm.log"
    SCREEN = "screen.svg"


WORDS = {
    ExportKind.TRIALS: "all trials as CSV",
    ExportKind.REPORT: "the report, as one HTML page",
    ExportKind.AUTOTVM: "AutoTVM's log, for TVM v0.9's apply_history_best",
    ExportKind.SCREEN: "the screen behind this one, as SVG",
}
_COLUMNS = ("ordinal", "index", "outcome", "reason", "cycles", "microseconds", "verified", "board", "attempt")


def export(store: Store, uuid: str, kind: ExportKind, path: Path, screen: str) -> str:
    """Write the file and return a line about it. `screen` is an SVG.

    Raises StoreError, UnwritableFileError, OSError, MissingLibraryError without the extra `report`, and ValueError
    for a
    parameter set that TVM has no name for.
    """
    if kind is ExportKind.SCREEN:
        with atomic_write(path) as file:
            file.write(screen)
        return f"the screen, to {path}"
    if kind is ExportKind.REPORT:
        from hilt.report.html import write_run_report  # loads the drawing code, which nothing else here needs

        write_run_report(path, store, store.run(uuid))
        return f"the report, to {path}"
    run, trials = store.run(uuid), store.trials(uuid)
    if kind is ExportKind.AUTOTVM:
        target = target_of(run.board)
        exported = export_run(run, trials, VTAParameters.from_name(run.parameters), target)
        write_log(path, exported.records)
        left_out = sum(exported.left_out.values())
        what = f"{len(exported.records)} trials for TVM's target {target} ({left_out} left out that it could not use)"
        return f"{what}, to {path}"
    with atomic_write(path) as file:
        writer = csv.writer(file)
        knobs = list(trials[0].knobs) if trials else []
        writer.writerow([*_COLUMNS, *knobs])
        for trial in trials:
            writer.writerow([*(getattr(trial, name) for name in _COLUMNS), *(trial.knobs[name] for name in knobs)])
    return f"{len(trials)} trials, to {path}"
