"""Runs out to AutoTVM's logs, and logs in as runs."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from hilt import schedule
from hilt.run_choices import CheckLevel
from hilt.schedule import ConfigurationError, Conv2d, Reason, Workload, WorkloadError
from hilt.schedule.space import Space
from hilt.store.autotvm_log import FAILED_COST, ErrorNumber, LogFormatError, LogRecord, OutdatedLogError, parse_log
from hilt.store.autotvm_targets import IMPORTED_PREFIX
from hilt.store.autotvm_tasks import CONV2D, KNOBS, args_of, entity_of, index_of, knobs_of, task_of, workload_of
from hilt.store.records import Run, RunState
from hilt.trial import Outcome, Trial
from hilt.vta.accelerator import Accelerator, ParameterError, VTAParameters

IMPORTED = "autotvm_log"
"""The tuner of a run that was imported."""

_ERRORS = {
    Outcome.OK: ErrorNumber.OK,
    Outcome.REJECTED: ErrorNumber.INSTANTIATION,
    Outcome.WRONG_ANSWER: ErrorNumber.WRONG_ANSWER,
    Outcome.TIMEOUT: ErrorNumber.RUN_TIMEOUT,
    Outcome.CRASH: ErrorNumber.RUNTIME_DEVICE,
    Outcome.BUS_ERROR: ErrorNumber.RUNTIME_DEVICE,
    Outcome.BOARD_LOST: ErrorNumber.UNKNOWN,
}
_OUTCOMES = {
    ErrorNumber.OK: Outcome.OK,
    ErrorNumber.INSTANTIATION: Outcome.REJECTED,
    ErrorNumber.COMPILE_HOST: Outcome.REJECTED,
    ErrorNumber.COMPILE_DEVICE: Outcome.REJECTED,
    ErrorNumber.BUILD_TIMEOUT: Outcome.REJECTED,
    ErrorNumber.RUNTIME_DEVICE: Outcome.CRASH,
    ErrorNumber.WRONG_ANSWER: Outcome.WRONG_ANSWER,
    ErrorNumber.RUN_TIMEOUT: Outcome.TIMEOUT,
    ErrorNumber.UNKNOWN: Outcome.CRASH,
}
_CLOCKS = {"ultra96": 333_000_000, "zcu104": 333_000_000, "zcu102": 333_000_000}
"""Clocks of the public flow in Hz, by TVM's target; any other is at 100 MHz."""

_LONGEST_MODEL = 100
"""It is the name of a run's board."""
_RUN_TIMEOUT_SECONDS = 10.0
"""AutoTVM's default for a runner."""


@dataclass(frozen=True)
class Exported:
    """`left_out` counts trials that a log cannot hold truthfully, by why."""

    records: list[LogRecord]
    left_out: dict[str, int]


def export_run(run: Run, trials: Sequence[Trial], parameters: VTAParameters, board: str) -> Exported:
    """Return the trials of a run as records for TVM's target `board`.

    The target (`pynq`, `ultra96`, ...) is part of the key by which apply_history_best finds them. A trial that ran but
    was not compared in full is left out, for TVM would take it as good. So is a configuration that is not in TVM's
    template, and one that TVM v0.9 would not compile or run.

    Raises WorkloadError for an operator other than TVM's conv2d and dense.
    """
    workload = schedule.convolution(schedule.workload_of(run.workload_spec))
    task, args = task_of(workload), args_of(workload, parameters)
    accelerator = Accelerator.for_parameters(parameters)
    space = schedule.space_for(workload, accelerator)
    values = {knob.name: knob.values for knob in space.knobs}
    target = f"ext_dev -keys=vta,cpu -device=vta -model={board}_{parameters.name}"
    records: list[LogRecord] = []
    left_out: Counter[str] = Counter()
    for trial in trials:
        entity = entity_of(task, trial.knobs)
        why = _why_left_out(workload, trial, accelerator, in_space=entity is not None)
        if why or entity is None:
            left_out[why] += 1
            continue
        records.append(
            LogRecord(
                target=target,
                task=task,
                args=args,
                index=index_of(entity, values),
                entity=entity,
                costs=_costs(trial),
                error=_ERRORS[trial.outcome],
                all_cost=float(sum(trial.seconds.values())),
                timestamp=trial.recorded_at,
            )
        )
    return Exported(records, dict(left_out))


def _why_left_out(workload: Conv2d, trial: Trial, accelerator: Accelerator, *, in_space: bool) -> str:
    """Return the reason why a trial is no record of TVM's; empty if it is one."""
    ran = trial.outcome is Outcome.OK
    if ran and not trial.verified:
        return "not compared in full"
    if not in_space:
        return "not in TVM's space"
    if ran and task_of(workload) == CONV2D and not _runs_on_tvm(workload, trial, accelerator):
        return "TVM v0.9 would not run it"
    return ""


def _costs(trial: Trial) -> tuple[float, ...]:
    """Return the seconds of each repeat, or the cost that TVM gives a failure."""
    if trial.outcome is not Outcome.OK:
        return (FAILED_COST,)
    microseconds = trial.repeats or (() if trial.microseconds is None else (trial.microseconds,))
    return tuple(value / 1e6 for value in microseconds)


def _runs_on_tvm(workload: Workload, trial: Trial, accelerator: Accelerator) -> bool:
    columns = {name: [value] for name, value in trial.knobs.items()}
    return bool(schedule.verdicts(workload, accelerator, columns, CheckLevel.TVM)[0] == Reason.OK)


@dataclass(frozen=True)
class TvmLog:
    """The records of a log that hilt can take in, with their lines; `left_out` counts the others, by why."""

    records: list[tuple[int, LogRecord]]
    left_out: dict[str, int]


def read_tvm_log(path: Path) -> TvmLog:
    """Return the records of VTA's convolutions and dense layers in a log, as TVM v0.9 reads it.

    Lines of version 0.1 and records of other tasks are counted and left out.

    Raises:
        LogFormatError: A line is no record of AutoTVM's; the message names it.
        OSError: The file cannot be read.
    """
    records: list[tuple[int, LogRecord]] = []
    left_out: dict[str, int] = {}
    for ordinal, record in parse_log(path):
        if isinstance(record, OutdatedLogError):
            why = "log version 0.1, which TVM no longer reads"
        elif record.task not in KNOBS:
            why = f"task {record.task[:60]}"
        else:
            records.append((ordinal, record))
            continue
        left_out[why] = left_out.get(why, 0) + 1
    return TvmLog(records, left_out)


@dataclass
class ImportedRun:
    """A run for the store, its trials, and how many later records of a configuration replaced earlier ones."""

    run: Run
    trials: list[Trial] = field(default_factory=list)
    replaced: int = 0


def import_records(records: Sequence[tuple[int, LogRecord]], path: Path, now: float) -> list[ImportedRun]:
    """Return a finished run for each workload and target of a log, in the order of the log.

    None of its trials is verified, for TVM compares no outputs: none is ever a best. Raises LogFormatError, which
    names the line.
    """
    groups: dict[tuple[str, Workload], dict[int, Trial]] = {}
    spaces: dict[tuple[str, Workload], tuple[Accelerator, Space]] = {}
    counts: dict[tuple[str, Workload], int] = {}
    for line, record in records:
        try:
            key = (record.model, workload_of(record))
            if key not in spaces:
                accelerator = _accelerator(record.model)
                spaces[key] = accelerator, schedule.space_for(key[1], accelerator)
            index = spaces[key][1].index(knobs_of(record))
            group = groups.setdefault(key, {})
            counts[key] = counts.get(key, 0) + 1
            ordinal = group[index].ordinal if index in group else len(group)
            group[index] = _trial(ordinal, index, record)
        except (LogFormatError, ConfigurationError, ParameterError, WorkloadError) as error:
            raise LogFormatError(f"{path}, line {line}: {error}") from error
    return [
        ImportedRun(
            _run(*key, *spaces[key], len(group), path, now),
            sorted(group.values(), key=lambda trial: trial.ordinal),
            counts[key] - len(group),
        )
        for key, group in groups.items()
    ]


def _accelerator(model: str) -> Accelerator:
    """Return the accelerator of a model text, as in `pynq_1x16_i8w8a32_15_15_18_17`.

    Raises ParameterError, LogFormatError.
    """
    if not model.isprintable():  # half of a surrogate pair cannot be stored
        raise LogFormatError(f"target model {model!r} is no text")
    if len(model) > _LONGEST_MODEL:
        raise LogFormatError(f"target model {model[:_LONGEST_MODEL]!r}... is longer than {_LONGEST_MODEL} characters")
    board, _, name = model.partition("_")
    parameters = VTAParameters.from_name(name)
    return Accelerator.for_parameters(parameters, clock_hz=_CLOCKS.get(board, 100_000_000))


def _trial(ordinal: int, index: int, record: LogRecord) -> Trial:
    ok = record.error is ErrorNumber.OK
    repeats = tuple(1e6 * cost for cost in record.costs) if ok else ()
    return Trial(
        ordinal=ordinal,
        index=index,
        knobs=knobs_of(record),
        outcome=_OUTCOMES[record.error],
        reason="" if ok else f"tvm:{record.error.name.lower()}",
        microseconds=median(repeats) if repeats else None,
        repeats=repeats,
        board=record.model,
        seconds={"all": record.all_cost},
        recorded_at=record.timestamp,
    )


def _run(
    model: str, workload: Workload, accelerator: Accelerator, space: Space, trials: int, path: Path, now: float
) -> Run:
    file = os.fsencode(path.name).decode(errors="replace")  # a file's name may be any bytes
    return Run(
        uuid=uuid.uuid4().hex,
        workload=workload.name,
        workload_spec=workload.to_dict(),
        board=f"{IMPORTED_PREFIX}{model}",
        parameters=accelerator.parameters.name,
        isa=str(accelerator.isa),
        bitstream="unknown",
        clock_hz=accelerator.clock_hz,
        tuner=IMPORTED,
        tuner_options={"file": file},
        seed=0,
        checks="tvm",
        space_kind="autotvm",
        orders=1,
        space=" ".join(f"{knob.name}={','.join(map(str, knob.values))}" for knob in space.knobs),
        space_size=len(space),
        budget=trials,
        batch=1,
        repeat=1,
        limit_seconds=_RUN_TIMEOUT_SECONDS,
        output_elements=schedule.output_elements(workload, accelerator.parameters),
        macs=workload.macs,
        bound_cycles=schedule.bound_cycles(workload, accelerator),
        versions={},
        created=now,
        state=RunState.FINISHED,
        detail=f"imported from {file}",
    )
