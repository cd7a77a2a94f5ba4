"""A board that is in use: its holder is named, `wait` waits, and a run that never began leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt.cli.attending import attend_run
from hilt.cli.exit_codes import Exit
from hilt.engine import launch
from hilt.engine.board_health import holder_of
from hilt.engine.client import EngineClient
from hilt.engine.events import EngineCommand, Finished, StateChanged
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, Run, RunState, Store, database_path
from tests.unit.store.examples import run as example_run

from .table import BUSY, TableBoards
from .test_process import ENGINE, at_root, settings, to_the_end, wait

__all__ = ["at_root"]  # a fixture


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file; boards are in use while it exists."""
    path = tmp_path / "busy"
    path.touch()
    monkeypatch.setenv(BUSY, str(path))
    return path


def start(home: Path, *, wait: bool) -> Run:
    return launch.start(settings(trials=10), home, wait=wait, boards=TableBoards(), engine=ENGINE)


@pytest.mark.slow
def test_a_run_waits_for_a_board_that_is_in_use(tmp_path: Path, busy: Path) -> None:
    run = start(tmp_path, wait=True)
    with EngineClient.attach(tmp_path, run.uuid) as client:
        wait(client, lambda event: isinstance(event, StateChanged) and event.detail.startswith("waiting: board is in"))
        busy.unlink()
        wait(client, lambda event: isinstance(event, Finished) and event.state is RunState.FINISHED)
    _, trials = to_the_end(tmp_path, run)
    assert len(trials) == 10


@pytest.mark.slow
def test_a_run_that_waits_can_be_stopped(tmp_path: Path, busy: Path) -> None:
    run = start(tmp_path, wait=True)
    with EngineClient.attach(tmp_path, run.uuid) as client:
        wait(client, lambda event: isinstance(event, StateChanged) and event.detail.startswith("waiting: "))
        client.send(EngineCommand.STOP)
        wait(client, lambda event: isinstance(event, Finished) and event.state is RunState.STOPPED)


@pytest.mark.slow
def test_a_run_that_never_began_is_none(tmp_path: Path, busy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = attend_run(tmp_path, lambda: start(tmp_path, wait=False), detach=False, as_json=False)
    said = capsys.readouterr()
    assert code is Exit.BOARD
    assert said.err == "hilt: board is in use by ann: wait, or stop that session; `--wait` waits for it\n"
    assert "another seed" not in said.out + said.err
    with Store(database_path(tmp_path)) as store:
        assert store.runs() == []


def test_the_holder_of_a_board_is_named(tmp_path: Path) -> None:
    with Store(database_path(tmp_path)) as store:
        store.create_campaign(Campaign("c" * 32, "net", {}, {}, 1.0, {"trials": 8}))
        store.create_run(example_run("a" * 32, board="one", campaign="c" * 32))
        store.create_run(example_run("b" * 32, board="two"))
        assert holder_of(store, tmp_path, "one", "f" * 32) is None, "none runs"
        with RunFiles(tmp_path, "c" * 32).locked(), RunFiles(tmp_path, "b" * 32).locked():
            holder = holder_of(store, tmp_path, "zero,one", "f" * 32)
            assert holder is not None and holder.startswith("campaign cccccccc (net) since ")
            holder = holder_of(store, tmp_path, "two", "f" * 32)
            assert holder is not None and holder.startswith("run bbbbbbbb (resnet18.C5) since ")
            assert holder_of(store, tmp_path, "two", "b" * 32) is None, "nobody waits for itself"
            assert holder_of(store, tmp_path, "three", "f" * 32) is None
