"""The files that a campaign ends with: the schedule, AutoTVM's log, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hilt.atomic_write import atomic_write
from hilt.campaign.launch import find
from hilt.engine.campaign_results import CampaignResult, load_result
from hilt.engine.run_files import RunFiles
from hilt.report.errors import MissingLibraryError
from hilt.report.schedule_file import write_schedule
from hilt.schedule.workload import WorkloadError
from hilt.store import Store
from hilt.store.autotvm_exchange import export_run
from hilt.store.autotvm_log import LogRecord, write_log
from hilt.store.autotvm_targets import UnknownTargetError, target_of
from hilt.vta.parameters import VTAParameters

SCHEDULE, LOG, REPORT = "schedule.json", "autotvm.log", "report.html"
_FOLDER = "output"
"""In a campaign's directory: the folder of `--output`."""


@dataclass(frozen=True)
class Written:
    """The written files, and a note for each missing part."""

    paths: list[Path]
    notes: list[str]


def keep_folder(home: Path, uuid: str, folder: Path) -> None:
    """Let a campaign's engine write the files to this folder too, whatever becomes of the command that began it."""
    with atomic_write(RunFiles(home, uuid).directory / _FOLDER) as file:
        file.write(str(folder.resolve()))


def folders_of(home: Path, uuid: str) -> list[Path]:
    """Return where a campaign's engine writes its files."""
    directory = RunFiles(home, uuid).directory
    kept = directory / _FOLDER
    return [directory, *([Path(kept.read_text(encoding="utf-8"))] if kept.is_file() else [])]


def write_outputs(store: Store, identifier: str, directory: Path) -> Written:
    """Write the results so far. Without the extra `report` there is no report, and a note says so.

    Raises UnknownRunError, StoreError, UnwritableFileError, OSError.
    """
    result = load_result(store, find(store, identifier))
    paths, notes = [directory / SCHEDULE, directory / LOG], []
    write_schedule(paths[0], result)
    try:
        if about_tvm := len(write_autotvm_log(store, result, paths[1]).notes):
            notes.append(_counted(about_tvm, result))
    except UnknownTargetError as error:
        paths.remove(directory / LOG)
        notes.append(f"for TVM's users: no {LOG}: {error}")
    try:
        from hilt.report.html import write_campaign_report

        write_campaign_report(directory / REPORT, store, result)
        paths.append(directory / REPORT)
    except MissingLibraryError as error:
        notes.append(str(error))
    return Written(paths, notes)


def _counted(notes: int, result: CampaignResult) -> str:
    """Return one line for all notes on the log for TVM, which concern TVM's users alone."""
    short = result.campaign.uuid[:8]
    return (
        f"for TVM's users: {LOG} comes with {'a note' if notes == 1 else f'{notes} notes'}; "
        f"`hilt log export {short} {LOG}` prints {'it' if notes == 1 else 'them'}"
    )


@dataclass(frozen=True)
class AutotvmLog:
    """A campaign's log for TVM: its records, the trials that it leaves out by why, and notes for people."""

    records: int
    left_out: dict[str, int]
    notes: list[str]


def write_autotvm_log(store: Store, result: CampaignResult, path: Path, target: str | None = None) -> AutotvmLog:
    """Write the trials of all layers as one log for TVM v0.9's apply_history_best.

    The target of the key is that of the board unless `target` gives one. The notes say which layers have no schedule
    in the log, or no better one than the fallback, and the network's latency with the log's best schedules.

    Raises UnknownTargetError for a board that TVM has no target for.
    """
    records: list[LogRecord] = []
    left_out: Counter[str] = Counter()
    notes = []
    seconds = dict[str, float]()
    for layer in result.layers:
        if layer.run is None:
            continue
        parameters = VTAParameters.from_name(layer.run.parameters)
        name = target or target_of(layer.run.board)
        try:
            exported = export_run(layer.run, store.reported(layer.run.uuid), parameters, name)
        except WorkloadError as error:
            notes.append(f"{layer.layer.name} is not in the AutoTVM log: {error}")
            continue
        records += exported.records
        left_out.update(exported.left_out)
        costs = [sum(record.costs) / len(record.costs) for record in exported.records if record.error == 0]
        if costs:
            seconds[layer.layer.workload] = min(costs)
        elif layer.best is not None:
            notes.append(f"{layer.layer.name}: no schedule of the AutoTVM log runs on TVM v0.9")
    write_log(path, records)
    return AutotvmLog(len(records), dict(left_out), notes + loss_of_log(result, seconds))


_NOTABLE_LOSS = 1.01
"""A log whose schedules are slower than the campaign's by more than this factor gets a note."""


def loss_of_log(result: CampaignResult, seconds: Mapping[str, float]) -> list[str]:
    """Return a note where TVM's best choice from the log is slower than the campaign's schedules."""
    solved = [layer for layer in result.layers if layer.microseconds is not None and layer.layer.workload in seconds]
    ours = sum(layer.microseconds or 0.0 for layer in solved)
    of_log = sum(1e6 * seconds[layer.layer.workload] * layer.layer.count for layer in solved)
    if not ours or of_log <= _NOTABLE_LOSS * ours:
        return []
    worse = [
        layer.layer.name
        for layer in solved
        if 1e6 * seconds[layer.layer.workload] * layer.layer.count > _NOTABLE_LOSS * (layer.microseconds or 0.0)
    ]
    return [
        f"TVM can use a part of the schedules only: with the AutoTVM log these {len(solved)} layers take "
        f"{of_log / 1e3:,.2f} ms, with hilt's schedules {ours / 1e3:,.2f} ms; slower are {', '.join(worse)}; "
        "`--orders 1 --checks tvm` tunes schedules that TVM can use"
    ]
