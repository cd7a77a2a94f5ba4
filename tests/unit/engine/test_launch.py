"""The start of an engine: its report to the command, and the state of a run whose engine did not start."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hilt.engine import launch
from hilt.engine.errors import EngineStartError, RunOverError, failure_of
from hilt.engine.events import FailureCause
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec, spec_of
from hilt.store import RunState, Store, database_path
from hilt.store.labels import Labels, labels_of, set_labels

from .table import WORKLOAD, TableBoards

UUID = "d" * 32
SETTINGS = RunSpec(workload=WORKLOAD, board="table:plain", tuner="random", trials=40, seed=3, batch=5)


def engine(program: str) -> tuple[str, ...]:
    """Return the command of an engine that runs this program; `ready` answers its starter."""
    ready = "import os, sys; ready = lambda words: os.write(int(sys.argv[sys.argv.index('--ready-fd') + 1]), words)"
    return (sys.executable, "-S", "-c", f"{ready}; {program}")


READY = "ready(b'{\"failure\": null}\\n')"


def test_an_engine_that_is_ready_has_its_arguments_and_no_terminal(tmp_path: Path) -> None:
    RunFiles(tmp_path, UUID).log_path.parent.mkdir(parents=True, exist_ok=True)
    words = "print(sys.argv[1:3], '--wait' in sys.argv, os.getsid(0) == os.getpid(), sys.stdin.read(), flush=True)"
    for wait in (False, True):
        launch.spawn(UUID, tmp_path, engine(f"{words}; {READY}"), wait=wait)
    said = RunFiles(tmp_path, UUID).log_path.read_text().splitlines()
    assert said == [f"['{UUID}', '--home'] {wait} True " for wait in (False, True)], "one log holds both starts"


def test_an_engine_that_dies_is_quoted_with_its_last_lines(tmp_path: Path) -> None:
    lines = "\\n".join(f"line {number}" for number in range(5))
    with pytest.raises(EngineStartError) as error:
        launch.spawn(UUID, tmp_path, engine(f"sys.exit({lines!r}.encode().decode('unicode_escape'))"))
    log = RunFiles(tmp_path, UUID).log_path
    assert str(error.value) == (f"the engine died at its start: line 2 | line 3 | line 4 (all of it in {log})")
    assert failure_of(error.value) is FailureCause.INTERNAL


def test_an_engine_that_refuses_gives_its_reason_and_kind(tmp_path: Path) -> None:
    refusal = 'ready(b\'{"failure": "board", "message": "the board is in use"}\\n\')'
    with pytest.raises(EngineStartError, match="^the board is in use$") as error:
        launch.spawn(UUID, tmp_path, engine(refusal))
    assert failure_of(error.value) is FailureCause.BOARD


def test_an_engine_that_says_nothing_is_ended_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_START_SECONDS", 0.3)
    pid = tmp_path / "pid"
    silent = f"open({str(pid)!r}, 'w').write(str(os.getpid())); sys.stdin.close(); import signal; signal.pause()"
    with pytest.raises(EngineStartError, match="^the engine did not start within 0 s$") as error:
        launch.spawn(UUID, tmp_path, engine(silent))
    assert failure_of(error.value) is FailureCause.INTERNAL
    assert not pid.exists() or not Path(f"/proc/{pid.read_text()}").exists()


def test_a_run_whose_engine_did_not_start_is_removed(tmp_path: Path) -> None:
    with pytest.raises(EngineStartError):
        launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine("sys.exit(1)"))
    with Store(database_path(tmp_path)) as store:
        assert store.runs() == []
    run = launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine(READY))
    with Store(database_path(tmp_path)) as store:
        assert [each.uuid for each in store.runs()] == [run.uuid]


def test_a_finished_run_has_no_engine_again_and_no_lock_means_none(tmp_path: Path) -> None:
    run = launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine(READY))
    assert not launch.is_served(tmp_path, run.uuid)
    with Store(database_path(tmp_path)) as store:
        store.set_state(run.uuid, RunState.FINISHED)
    with pytest.raises(RunOverError, match=f"^run {run.uuid[:8]} has finished; `hilt show {run.uuid[:8]}` shows it$"):
        launch.resume(run.uuid, tmp_path, boards=TableBoards(), engine=engine(READY))


def test_a_run_moves_when_it_is_resumed_on_another_board(tmp_path: Path) -> None:
    run = launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine(READY))
    for board, wanted in ((None, "table:plain"), ("table:plain@shaky", "table:plain@shaky")):
        launch.resume(run.uuid, tmp_path, board=board, boards=TableBoards(), engine=engine(READY))
        with Store(database_path(tmp_path)) as store:
            assert store.run(run.uuid).board == wanted


def test_a_run_that_begins_anew_has_the_settings_the_tags_and_a_note(tmp_path: Path) -> None:
    old = launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine(READY))
    with Store(database_path(tmp_path)) as store:
        set_labels(store, old.uuid, Labels(("nightly",), "the old one"))
    new = launch.begin_anew(old.uuid, tmp_path, board="table:other", boards=TableBoards(), engine=engine(READY))
    with Store(database_path(tmp_path)) as store:
        assert labels_of(store, new.uuid) == Labels(("nightly",), f"began anew from {old.uuid[:8]}")
        assert labels_of(store, old.uuid).note == "the old one"
    assert (new.board, new.bitstream) == ("table:other", "other" * 8)
    assert spec_of(new) == replace(spec_of(old), board="table:other")


@pytest.mark.parametrize(("results", "more"), [(0, ""), (1, ", with its 1 verified results")])
def test_the_note_of_a_new_beginning_counts_the_results_that_hold(tmp_path: Path, results: int, more: str) -> None:
    old = launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine(READY))
    new = launch.start(SETTINGS, tmp_path, boards=TableBoards(), engine=engine(READY))
    with Store(database_path(tmp_path)) as store:
        launch.label_anew(store, new.uuid, old.uuid, results)
        assert labels_of(store, new.uuid).note == f"began anew from {old.uuid[:8]}{more}"
