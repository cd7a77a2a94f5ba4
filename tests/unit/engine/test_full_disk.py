"""An engine whose log is on a full disk still says why it ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hilt.campaign.job import open_campaign
from hilt.engine.process import OpenJob, main, open_run
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec, make_run
from hilt.store import RunState, Store, StoreWriteError, database_path

from .table import WORKLOAD, TableBoards


@pytest.mark.parametrize("open_job", [open_run, open_campaign])
def test_a_log_that_cannot_be_written_silences_no_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_job: OpenJob
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    reading, writing = os.pipe()
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", full)
    assert main(["e" * 32, "--home", str(tmp_path), "--ready-fd", str(writing)], open_job=open_job) == 1
    with os.fdopen(reading) as ready:
        said = json.loads(ready.readline())
    assert said["failure"] == "input" and "eeeeeeee" in said["message"]


def test_the_end_of_a_run_on_a_full_disk_is_recorded_in_the_room_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full from the first trial on, until the reserve is given back."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    settings = RunSpec(workload=WORKLOAD, board="table:plain", tuner="random", trials=8, seed=3, batch=4)
    run = make_run(settings, TableBoards().describe_board("table:plain"))
    with Store(database_path(tmp_path)) as store:
        store.create_run(run)
    reserve = RunFiles(tmp_path, run.uuid).directory / "reserve"
    seen: list[int] = []

    def full(self: Store, *arguments: object) -> None:
        if reserve.exists():
            seen.append(reserve.stat().st_blocks * 512)
            raise StoreWriteError("database: the disk is full; free some space and resume")
        set_state(self, *arguments)  # type: ignore[arg-type]

    set_state, record = Store.set_state, Store.record

    def fails(self: Store, uuid: str, trials: object) -> None:
        monkeypatch.setattr(Store, "set_state", full)
        raise StoreWriteError("database: the disk is full; free some space and resume")

    monkeypatch.setattr(Store, "record", fails)
    assert main([run.uuid, "--home", str(tmp_path)], TableBoards()) == 1
    monkeypatch.setattr(Store, "record", record)
    with Store(database_path(tmp_path)) as store:
        ended = store.run(run.uuid)
    assert (ended.state, ended.failure) == (RunState.FAILED, "store")
    assert "the disk is full" in ended.detail
    assert seen and min(seen) >= 256 << 10
    assert not reserve.exists()
