"""The TUI at a real engine's process: paused and resumed by keys, killed, resumed, watched to its end."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest

from hilt.engine import client, launch
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.store import RunState, Store, database_path
from hilt.tui import feed
from hilt.tui.run_view import Link
from hilt.tui.widgets.trials_table import TrialsTable

from ..engine.table import GATE, WORKLOAD, TableBoards
from .live import app_of, run_screen, text_of, until

ENGINE = (sys.executable, "-m", "tests.unit.engine.table_engine")


async def test_a_run_is_paused_killed_resumed_and_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])  # where `tests` can be imported by the engine's process
    monkeypatch.setenv(GATE, str(tmp_path / "gate"))
    with (tmp_path / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # the board answers nothing until it is unlocked
        settings = RunSpec(workload=WORKLOAD, board="table:plain", tuner="random", trials=40, seed=3, batch=5)
        run = launch.start(settings, tmp_path, boards=TableBoards(), engine=ENGINE)
        with app_of(tmp_path) as app:
            async with app.run_test(size=(120, 40)) as pilot:
                await until(pilot, lambda: "RUNNING" in text_of(pilot) and "table:plain: ready" in text_of(pilot))
                await pilot.press("p")
                await until(pilot, lambda: "RUNNING: pausing after the trials" in text_of(pilot))
                fcntl.flock(gate, fcntl.LOCK_UN)
                await until(pilot, lambda: "PAUSED" in text_of(pilot))

                pid = int(RunFiles(tmp_path, run.uuid).lock_path.read_text())
                os.kill(pid, signal.SIGKILL)
                await until(pilot, lambda: "ENGINE GONE (was paused)" in text_of(pilot))

                launch.resume(run.uuid, tmp_path, boards=TableBoards(), engine=ENGINE)
                await until(pilot, lambda: "FINISHED" in text_of(pilot))
                await until(pilot, lambda: run_screen(pilot).view.link is Link.NONE)  # the engine is gone
                view = run_screen(pilot).view
                await until(pilot, lambda: view.progress.trials == 40 and view.curve)
                table = run_screen(pilot).query_one(TrialsTable)
                await until(pilot, lambda: table.row_count == 40)
    with Store(database_path(tmp_path)) as store:
        assert store.run(run.uuid).state is RunState.FINISHED
        assert view.curve == store.improvements(run.uuid)
        assert dict(view.progress.counts) == {str(name): count for name, count in store.counts(run.uuid).items()}


async def test_an_engine_that_is_stopped_while_it_is_watched_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    monkeypatch.setenv(GATE, str(tmp_path / "gate"))
    monkeypatch.setattr(feed, "_QUIET_SECONDS", 0.3)
    monkeypatch.setattr(client, "_HELLO_SECONDS", 1.0)
    with (tmp_path / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # a board that takes long, at which the engine is rightly silent
        asked = RunSpec(workload=WORKLOAD, board="table:plain", tuner="random", trials=40, seed=3, batch=5)
        run = launch.start(asked, tmp_path, boards=TableBoards(), engine=ENGINE)
        pid = int(RunFiles(tmp_path, run.uuid).lock_path.read_text())
        with app_of(tmp_path) as app:
            async with app.run_test(size=(120, 40)) as pilot:
                await until(pilot, lambda: "RUNNING" in text_of(pilot) and "table:plain: ready" in text_of(pilot))
                os.kill(pid, signal.SIGSTOP)
                try:
                    await until(pilot, lambda: "NOT ANSWERING (was running)" in text_of(pilot))
                    await until(pilot, lambda: "table:plain: last known: ready" in text_of(pilot))
                finally:
                    os.kill(pid, signal.SIGCONT)
                await until(pilot, lambda: "RUNNING" in text_of(pilot) and "table:plain: ready" in text_of(pilot))
                fcntl.flock(gate, fcntl.LOCK_UN)
                await until(pilot, lambda: "FINISHED" in text_of(pilot))
