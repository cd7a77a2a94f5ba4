"""The files that a campaign ends with: the schedule, AutoTVM's log, and the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hilt.campaign.launch import find
from hilt.engine.campaign_results import CampaignResult, load_result
from hilt.report.errors import MissingLibraryError
from hilt.report.schedule_file import write_schedule
from hilt.schedule.workload import WorkloadError
from hilt.store import Store
from hilt.store.autotvm_exchange import export_run, target_of
from hilt.store.autotvm_log import LogRecord, write_log
from hilt.vta.parameters import VTAParameters

SCHEDULE, LOG, REPORT = "schedule.json", "autotvm.log", "report.html"


@dataclass(frozen=True)
class Written:
    """The written files, and a note for each missing part."""

    paths: list[Path]
    notes: list[str]


def write_outputs(store: Store, identifier: str, directory: Path) -> Written:
    """Write the results so far. Without the extra `report` there is no report, and a note says so.

    Raises UnknownRunError, StoreError, UnwritableFileError, OSError.
    """
    result = load_result(store, find(store, identifier))
    paths, notes = [directory / SCHEDULE, directory / LOG], []
    write_schedule(paths[0], result)
    notes += write_autotvm_log(store, result, paths[1])
    try:
        from hilt.report.html import write_campaign_report

        write_campaign_report(directory / REPORT, store, result)
        paths.append(directory / REPORT)
    except MissingLibraryError as error:
        notes.append(str(error))
    return Written(paths, notes)


def write_autotvm_log(store: Store, result: CampaignResult, path: Path) -> list[str]:
    """Write the trials of all layers as one log for TVM v0.9's apply_history_best; return notes on trials left out."""
    records: list[LogRecord] = []
    notes = []
    for each in result.layers:
        if each.run is None:
            continue
        parameters = VTAParameters.from_name(each.run.parameters)
        try:
            exported = export_run(each.run, store.trials(each.run.uuid), parameters, target_of(each.run.board))
        except WorkloadError as error:
            notes.append(f"{each.layer.workload} is not in the AutoTVM log: {error}")
            continue
        records += exported.records
        if each.best is not None and not any(record.error == 0 for record in exported.records):
            notes.append(f"{each.layer.workload}: no schedule of the AutoTVM log runs on TVM v0.9")
    write_log(path, records)
    return notes
