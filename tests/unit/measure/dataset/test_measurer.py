"""Runs on a dataset: the engine's records equal the dataset's, and nothing is verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilt import measure
from hilt.engine.errors import RunMismatchError
from hilt.engine.loop import TuningLoop
from hilt.engine.run_control import Control
from hilt.engine.run_spec import RunSpec, RunTask, make_run
from hilt.measure.dataset import DatasetError, DatasetStore
from hilt.store import Store, Trial, database_path
from hilt.trial import Outcome
from hilt.tune import make_tuner
from tests.unit.measure.dataset.small import WORKLOAD, built, small_subject


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    return tmp_path


def settings(board: str, **changes: object) -> RunSpec:
    asked = {"workload": WORKLOAD.name, "board": board, "tuner": "random", "trials": 40, "orders": 1, "seed": 4}
    return RunSpec(**(asked | changes))  # type: ignore[arg-type]


def run_on(home: Path, board: str, folder: str) -> list[Trial]:
    (home / folder).mkdir()
    run = make_run(settings(board), measure.describe_board(board))
    with Store(database_path(home / folder)) as store:
        store.create_run(run)
        task = RunTask(run, measure.describe_board(board))
        tuner = make_tuner(run.tuner, task.problem, run.seed)
        measurer = measure.open_measurer(board)
        assert TuningLoop(run, tuner, task, measurer, store, Control(), lambda event: None).run()
        assert store.best(run.uuid) is None
        return list(store.trials(run.uuid))


def test_a_run_equals_its_record_and_verifies_nothing(home: Path) -> None:
    subject = small_subject()
    (dataset,) = built(DatasetStore().folder, [subject])
    board = f"dataset:{subject.key[:10]}"
    trials = run_on(home, board, "first")
    assert len(trials) == 40 and {trial.outcome for trial in trials} == {Outcome.OK, Outcome.REJECTED}
    for trial in trials:
        recorded = dataset.result(trial.index)
        assert (trial.outcome, trial.cycles, trial.microseconds) == (
            recorded.outcome,
            recorded.cycles,
            recorded.microseconds,
        )
        assert not trial.verified
    again = run_on(home, board, "again")
    assert [trial.index for trial in again] == [trial.index for trial in trials]


def test_another_space_is_refused_with_both_values(home: Path) -> None:
    subject = small_subject()
    built(DatasetStore().folder, [subject])
    board = f"dataset:{subject.key[:10]}"
    described = measure.describe_board(board)
    for changes, said in (
        ({"orders": 4}, "orders: 1 there, 4 asked for"),
        ({"checks": "strict"}, "checks: compiler there, strict asked for"),
        ({"workload": "resnet18.C2"}, "workload: conv2d:.* there, conv2d:.* asked for"),
    ):
        with pytest.raises(RunMismatchError, match=said):
            make_run(settings(board, **changes), described)


def test_an_outdated_dataset_is_refused(home: Path) -> None:
    """Its timing model is not the one that is here."""
    subject = small_subject()
    (dataset,) = built(DatasetStore().folder, [subject])
    dataset.metadata["identity"]["timing_design"] = "of an older twin"
    dataset.write(DatasetStore().path_of(subject))
    with pytest.raises(DatasetError, match="is outdated: timing_design was of an older twin, is .*build it again"):
        measure.describe_board(f"dataset:{subject.name}")


def test_a_program_over_the_limit_times_out_and_one_of_no_configuration_is_refused(home: Path) -> None:
    subject = small_subject()
    (dataset,) = built(DatasetStore().folder, [subject])
    board = f"dataset:{subject.key[:10]}"
    measurer = measure.open_measurer(board)
    limit = dataset.optimum * 1.5e-6
    run = make_run(settings(board, limit_seconds=limit), measurer.description)
    task = RunTask(run, measurer.description)
    slow = int(np.argmax(np.where(dataset.valid, dataset.microseconds, 0)))
    found = {}
    requests = [task.request(index, "key", task.lower(index)) for index in (slow, dataset.best)]
    measurer.measure(requests, found.__setitem__)
    assert found[slow].outcome is Outcome.TIMEOUT and "the limit is" in found[slow].reason
    assert found[dataset.best].outcome is Outcome.OK
    stranger = task.request(7, "key", subject_program(subject))
    with pytest.raises(DatasetError, match="of no configuration"):
        measurer.measure([stranger], found.__setitem__)


def subject_program(subject: object) -> object:
    from hilt.schedule import lower

    return lower(WORKLOAD, small_subject().space.knobs_at(0), small_subject().accelerator)
