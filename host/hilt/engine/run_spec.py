"""Makes a run from the settings a user asked for, and its space, tensors and programs from the run."""

from __future__ import annotations

import platform
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from hilt import schedule, tune
from hilt.engine.errors import RunMismatchError, SettingsError
from hilt.engine.taken_over import TWIN
from hilt.measure import BoardDescription, Request, name_with_model
from hilt.run_choices import CheckLevel, SpaceName
from hilt.schedule import Conv2d
from hilt.schedule.checks import Checks, Rejected
from hilt.schedule.space import ORDERS_OF, Space, SpaceKind, orders_of
from hilt.schedule.tensors import Tensors
from hilt.schedule.validity_summary import CHECK_LEVELS
from hilt.schedule.workload_syntax import format_workload
from hilt.silicon.kept_machines import kept_machine
from hilt.store import ROUNDS, Run
from hilt.tune.model_guided.analytic_model import AnalyticModel
from hilt.tune.model_guided.memories import prior_mean
from hilt.vta.program import Program

SHORTEST_LIMIT_SECONDS = 0.05
LIMIT_OVER_BOUND = 100
"""A program may take so many times the roofline bound; the slowest schedules worth knowing are far below it."""
_MOST = 2**63 - 1
"""The largest number in the database."""
_MOST_RUNS = 1000
"""The most repeats of a trial, and runs averaged in each, in the board's protocol."""


_OPTIONAL = ("machine", "without")
"""Options of the tuner hilt that a run records only where they are set."""

Choice = TypeVar("Choice", SpaceName, CheckLevel)


@dataclass(frozen=True)
class RunSpec:
    """The settings a user asked for. Raises SettingsError for a value that no run can have."""

    workload: str
    board: str
    tuner: str
    trials: int
    seed: int = 0
    batch: int = 8
    space_kind: SpaceKind = SpaceName.AUTOTVM
    orders: int | None = None
    """Loop orders that the space has. None: all that its kind knows."""
    checks: Checks = CheckLevel.COMPILER
    repeat: int = 1
    number: int = 1
    rounds: int | None = ROUNDS
    """Rounds in which the best trials are measured again at the end; None: as many as their noise needs."""
    limit_seconds: float | None = None
    """Seconds of the board's clock; None is LIMIT_OVER_BOUND times the bound, at least SHORTEST_LIMIT_SECONDS."""
    tuner_options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("trials", "batch", "repeat", "number"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.seed <= _MOST:
            raise SettingsError(f"seed is {self.seed}; it must be from 0 to {_MOST}")
        for name, most in (("trials", _MOST), ("batch", _MOST), ("repeat", _MOST_RUNS), ("number", _MOST_RUNS)):
            if getattr(self, name) > most:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at most {most}")
        if self.rounds is not None and not 1 <= self.rounds <= _MOST_RUNS:
            raise SettingsError(f"rounds is {self.rounds}; it must be from 1 to {_MOST_RUNS}")
        if self.limit_seconds is not None and not 0 < self.limit_seconds <= 3600:
            raise SettingsError(f"time limit is {self.limit_seconds} s; it must be above 0 and at most 3600")
        if self.space_kind not in ORDERS_OF:
            raise SettingsError(f"space {self.space_kind!r} is none of {', '.join(ORDERS_OF)}")
        if self.orders is not None:
            try:
                orders_of(self.space_kind, self.orders)
            except ValueError as error:
                raise SettingsError(str(error)) from None
        if self.checks not in CHECK_LEVELS:
            raise SettingsError(f"checks {self.checks!r} is none of {', '.join(CHECK_LEVELS)}")


def make_run(settings: RunSpec, board: BoardDescription, campaign: str | None = None) -> Run:
    """Return a new run of these settings on this board, part of the campaign of that uuid.

    Raises WorkloadError, UnknownTunerError, TunerOptionError, RunMismatchError for another space than a dataset's.
    """
    workload = schedule.load_workload(settings.workload)
    if settings.checks is CheckLevel.OFF and isinstance(workload, Conv2d) and workload.epilogue:
        raise SettingsError(f"checks off: the epilogue {workload.epilogue} is for configurations that fit on chip")
    orders = orders_of(settings.space_kind, settings.orders or max(ORDERS_OF[settings.space_kind]))
    _check_recorded(settings, workload, orders, board)
    space = schedule.space_for(workload, board.accelerator, orders=orders, kind=settings.space_kind)
    bound = schedule.bound_cycles(workload, board.accelerator)
    limit = settings.limit_seconds or max(SHORTEST_LIMIT_SECONDS, LIMIT_OVER_BOUND * bound / board.clock_hz)
    return Run(
        uuid=uuid.uuid4().hex,
        workload=settings.workload,
        workload_spec=workload.to_dict(),
        board=board.name,
        parameters=board.accelerator.parameters.name,
        isa=str(board.accelerator.isa),
        bitstream=board.bitstream,
        clock_hz=board.clock_hz,
        tuner=tune.canonical_tuner(settings.tuner),
        tuner_options=_options(settings, board),
        seed=settings.seed,
        checks=settings.checks,
        space_kind=settings.space_kind,
        orders=orders,
        space=describe_space(space),
        space_size=len(space),
        budget=settings.trials,
        batch=settings.batch,
        repeat=settings.repeat,
        number=settings.number,
        rounds=settings.rounds,
        limit_seconds=limit,
        output_elements=schedule.output_elements(workload, board.accelerator.parameters),
        macs=workload.macs,
        bound_cycles=bound,
        versions=versions() | ({TWIN: board.twin} if board.twin else {}),
        created=time.time(),
        campaign=campaign,
    )


def _options(settings: RunSpec, board: BoardDescription) -> dict[str, object]:
    """Return the tuner's options, and the machine that measurements gave for the bitstream unless another is set.

    Raises UnknownTunerError, TunerOptionError, KeptMachineError.
    """
    options = dict(tune.resolve_options(settings.tuner, **settings.tuner_options))
    if options.get("machine") == "" and "machine" not in settings.tuner_options:
        machine = kept_machine(board.bitstream)
        options["machine"] = "" if machine is None else machine.to_text()
    return {name: value for name, value in options.items() if name not in _OPTIONAL or value}


def _check_recorded(settings: RunSpec, workload: schedule.Workload, orders: int, board: BoardDescription) -> None:
    if board.recorded is None:
        return
    wanted: dict[str, object] = {
        "workload": format_workload(workload),
        "checks": settings.checks,
        "space": settings.space_kind,
        "orders": orders,
    }
    differences = [
        f"{name}: {board.recorded[name]} there, {wanted[name]} asked for"
        for name in wanted
        if board.recorded[name] != wanted[name]
    ]
    if differences:
        raise RunMismatchError(f"{board.name} was recorded of something else: {'; '.join(differences)}")


def resolve_run(run: Run, board: BoardDescription) -> RunTask:
    """Return the task of a run on this board, once it is sure that the run fits the board and this hilt.

    Raises RunMismatchError, which names both values of each difference; the errors of `make_run`.
    """
    settings = spec_of(run)
    workload = schedule.load_workload(settings.workload)
    _check_recorded(settings, workload, run.orders, board)
    task = RunTask(run, board)
    wanted = {
        "workload": _shape(task.workload),
        "parameters": run.parameters,
        "ISA": run.isa,
        "bitstream": run.bitstream,
        "clock": f"{run.clock_hz} Hz",
        "space": run.space,
        "tuner options": dict(run.tuner_options),
        "output elements": run.output_elements,
    }
    found = {
        "workload": _shape(workload),
        "parameters": board.accelerator.parameters.name,
        "ISA": str(board.accelerator.isa),
        "bitstream": board.bitstream,
        "clock": f"{board.clock_hz} Hz",
        "space": describe_space(task.space),
        "tuner options": _known_then(run),
        "output elements": schedule.output_elements(workload, board.accelerator.parameters),
    }
    differences = [f"{name}: {wanted[name]} then, {found[name]} now" for name in wanted if wanted[name] != found[name]]
    if differences:
        raise RunMismatchError(
            f"run {run.uuid[:8]} does not fit the board and settings here: {'; '.join(differences)}. "
            f"{_way_back(run, board)}, or begin it anew: `hilt resume {run.campaign or run.uuid:.8} --anew`"
        )
    return task


def _way_back(run: Run, board: BoardDescription) -> str:
    kept = name_with_model(board.name, run.bitstream) if run.bitstream != board.bitstream else None
    if kept is None:
        return "Bring back the board and settings it began with"
    return f"The model it began with is in the cache: `hilt resume {run.campaign or run.uuid:.8} --board '{kept}'`"


def _known_then(run: Run) -> dict[str, object]:
    """Return the options as this hilt reads them, without those that the run's hilt did not have."""
    options = tune.resolve_options(run.tuner, **run.tuner_options)
    return {name: value for name, value in options.items() if name in run.tuner_options}


def _shape(workload: schedule.Workload) -> dict[str, object]:
    return {name: value for name, value in workload.to_dict().items() if name != "name"}


def describe_space(space: Space) -> str:
    """Knobs and values in one line, first knob fastest."""
    return " ".join(f"{knob.name}={','.join(map(str, knob.values))}" for knob in space.knobs)


def versions() -> dict[str, str]:
    """Return the versions that the results of a run may depend on."""
    found = {"python": platform.python_version()}
    for package in ("hilt", "numpy", "scipy", "torch", "xgboost", "xgboost-cpu"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


class RunTask:
    """The run's workload on its board's accelerator: hilt.engine.loop.TuningTask."""

    def __init__(self, run: Run, board: BoardDescription) -> None:
        self._run = run
        self._accelerator = board.accelerator
        self.workload = schedule.workload_of(run.workload_spec)
        kind = SpaceName(run.space_kind)
        orders = orders_of(kind, run.orders)
        self._checks = CheckLevel(run.checks)
        self._lowered: WeakKeyDictionary[Program, int] = WeakKeyDictionary()
        self.space = schedule.space_for(self.workload, board.accelerator, orders=orders, kind=kind)

    @property
    def problem(self) -> tune.TuningProblem:
        """The problem of its tuner."""
        return tune.TuningProblem(self.workload, self._accelerator, self.space, self._checks)

    @cached_property
    def tensors(self) -> Tensors:
        return schedule.make_tensors(self.workload, self._accelerator, self._run.seed)

    def knobs(self, index: int) -> Mapping[str, int]:
        return self.space.knobs_at(index)

    def lower(self, index: int) -> Program:
        (lowered,) = self.lower_many([index])
        if isinstance(lowered, Rejected):
            raise lowered
        return lowered

    def lower_many(self, indices: Sequence[int]) -> Iterator[Program | Rejected]:
        columns = self.space.columns(indices)
        found = schedule.lower_many(self.workload, columns, self._accelerator, self._checks)
        for index, lowered in zip(indices, found, strict=True):
            if not isinstance(lowered, Rejected):
                self._lowered[lowered] = index
            yield lowered

    def lengths(self, indices: Sequence[int]) -> Sequence[float]:
        """Return each configuration's cycles by the analytic model; 1.0 where the workload is no convolution."""
        if not indices or not isinstance(self.workload, Conv2d):
            return [1.0] * len(indices)
        features = self.problem.hidden_features(np.array(indices, dtype=np.int64))
        memory = prior_mean(self._accelerator)
        return [float(cycles) for cycles in AnalyticModel(self._accelerator, features).cycles(memory)]

    def request(self, ordinal: int, key: str, program: Program) -> Request:
        return Request(
            ordinal,
            key,
            program,
            self.tensors,
            self._run.limit_seconds,
            repeat=self._run.repeat,
            number=self._run.number,
            index=self._lowered.get(program),
        )


def spec_of(run: Run) -> RunSpec:
    """Return the settings from which `make_run` makes the same run. Raises SettingsError."""
    return RunSpec(
        workload=run.workload,
        board=run.board,
        tuner=run.tuner,
        trials=run.budget,
        seed=run.seed,
        batch=run.batch,
        space_kind=_choice(SpaceName, "space", run.space_kind),
        orders=run.orders,
        checks=_choice(CheckLevel, "checks", run.checks),
        repeat=run.repeat,
        number=run.number,
        rounds=run.rounds,
        limit_seconds=run.limit_seconds,
        tuner_options=run.tuner_options,
    )


def _choice(kind: type[Choice], name: str, value: str) -> Choice:
    try:
        return kind(value)
    except ValueError:
        raise SettingsError(f"{name} {value!r} is none of {', '.join(kind)}") from None
