"""A run's task: its programs, requests and options; the job around it, and durations for people."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hilt.engine import job as module
from hilt.engine.durations import seconds_text
from hilt.engine.errors import RunOverError
from hilt.engine.events import FailureCause, Finished
from hilt.engine.job import RunJob
from hilt.engine.run_spec import RunSpec, RunTask, make_run, spec_of
from hilt.engine.tuner_calls import AbandonedError, TunerCalls
from hilt.schedule import Rejected, verdicts
from hilt.silicon.fitted_machine import FittedMachine
from hilt.silicon.kept_machines import keep_machine
from hilt.simulator.builds import NEWER, OLDER, shipped_builds
from hilt.store import Run, RunState, Store, UnknownRunError, database_path
from hilt.vta.program import Program
from tests.unit.engine.table import WORKLOAD, description

OTHER = shipped_builds().machines[OLDER].to_text()


def made(workload: str = WORKLOAD, **changes: Any) -> Run:
    spec = RunSpec(workload=workload, board="table:plain", tuner="random", trials=4, **changes)
    return make_run(spec, description())


def test_a_task_lowers_each_configuration_or_says_why_not() -> None:
    run = made(repeat=3, number=5, limit_seconds=0.25, seed=9)
    task = RunTask(run, description())
    columns = task.space.columns(range(len(task.space)))
    found = verdicts(task.workload, description().accelerator, columns)
    good, bad = int(np.flatnonzero(found == 0)[1]), int(np.flatnonzero(found)[0])
    program = task.lower(good)
    assert isinstance(program, Program)
    with pytest.raises(Rejected):
        task.lower(bad)
    first, second = task.lower_many([bad, good])
    assert isinstance(first, Rejected) and isinstance(second, Program) and second.sha256 == program.sha256
    request = task.request(7, "run/7", second)
    wanted = (7, "run/7", second, 0.25, 3, 5, good)
    assert wanted == (
        request.ordinal, request.key, request.program, request.limit_seconds, request.repeat, request.number,
        request.index,
    )  # fmt: skip
    assert task.request(8, "run/8", replace(second)).index is None, "of another program nothing is known"
    lengths = task.lengths([good, bad])
    assert len(lengths) == 2 and min(lengths) > 1.0 and task.lengths([]) == []
    assert made(checks=spec_of(run).checks).limit_seconds == 0.05, "the shortest, of a small layer"


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    ("asked", "recorded"),
    [({}, True), ({"machine": ""}, False), ({"machine": OTHER}, OTHER), ({"without": "twin"}, True)],
)
def test_the_machine_of_the_bitstream_is_an_option_unless_another_is_set(
    kept: bool, asked: dict[str, object], recorded: bool | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    board = description()
    machine = shipped_builds().machines[NEWER]
    if kept:
        keep_machine(board.bitstream, FittedMachine(machine, 1e-5, NEWER, 9, 2, 0.01, None))
    spec = RunSpec(workload=WORKLOAD, board="table:plain", tuner="hilt", trials=4, tuner_options=asked)
    options = make_run(spec, board).tuner_options
    wanted = recorded if isinstance(recorded, str) else machine.to_text() if recorded and kept else None
    assert options.get("machine") == wanted
    assert options.get("without") == asked.get("without")


def test_a_job_is_of_a_run_that_is_not_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, loops = made(), []
    with Store(database_path(tmp_path)) as store:
        store.create_run(run)
        job = RunJob(store, run)
        assert (job.uuid, job.runs, job.verdict) == (run.uuid, [run], "")
        heard: list[object] = []
        job.begin(ExitStack(), heard.append, lambda event: None)

        def loop(*values: Any) -> SimpleNamespace:
            loops.append(values)
            return SimpleNamespace(run=lambda: len(loops) == 1)

        monkeypatch.setattr(module, "TuningLoop", loop)
        monkeypatch.setattr(module, "assess", lambda tuner: None if len(loops) > 1 else SimpleNamespace(text="sure"))
        monkeypatch.setattr("hilt.tune.make_tuner", lambda name, problem, seed, **options: (name, problem, seed))
        task: Any = SimpleNamespace(problem="problem")
        measurer: Any = "measurer"
        assert job.search(measurer, [task]) and job.verdict == "sure"
        assert loops[0][:5] == (run, ("random", "problem", 0), task, "measurer", store)
        loops[0][6]("an event")
        assert heard == ["an event"] and loops[0][5] is job.control
        assert not job.search(measurer, [task]) and job.verdict == ""
        job.set_state(RunState.RUNNING, "on the board")
        assert (store.run(run.uuid).state, store.run(run.uuid).detail) == (RunState.RUNNING, "on the board")
        job.end(Finished(RunState.FAILED, "no board", FailureCause.BOARD))
        ended = store.run(run.uuid)
        assert (ended.state, ended.detail, ended.failure) == (RunState.FAILED, "no board", FailureCause.BOARD)
        job.end(Finished(RunState.FINISHED, "all trials"))
        assert store.run(run.uuid).failure == ""
        with pytest.raises(RunOverError, match=f"run {run.uuid[:8]} has finished; `hilt show {run.uuid[:8]}` shows it"):
            RunJob(store, store.run(run.uuid))
        monkeypatch.setattr(TunerCalls, "run", abandoned)
        assert not job.search(measurer, [task]), "a stop while the tuner is made"
        with pytest.raises(UnknownRunError):
            store.run("f" * 32)


def abandoned(*_: object) -> None:
    raise AbandonedError


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"), (3.6, "4 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (3599, "59 min 59 s"),
        (3600, "1 h 00 min"), (3661, "1 h 01 min"), (7500, "2 h 05 min"), (90_000, "25 h 00 min"),
    ],
)  # fmt: skip
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
