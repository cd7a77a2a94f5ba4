from __future__ import annotations

from pathlib import Path

import pytest

from hilt.cli.main import run as hilt
from hilt.engine.history import history_of
from hilt.schedule import load_workload
from hilt.store import Store, Trial, database_path
from hilt.trial import Outcome
from hilt.tune.history import History
from tests.unit.store.examples import run, trial

C5 = load_workload("resnet18.C5")


def test_trials_of_runs_become_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    first = run("a" * 32, workload_spec=C5.to_dict(), macs=C5.macs, clock_hz=50_000_000)
    with Store(database_path(tmp_path)) as store:
        store.create_run(first)
        store.create_run(run("b" * 32, workload_spec=C5.to_dict()))  # nothing was tried
        store.record(
            first.uuid,
            [
                trial(0, 7, 9_000.0),
                Trial(1, 8, {"tile_h": 4, "tile_w": 7}, Outcome.REJECTED, "inp_overflow"),
            ],
        )
        (part,) = history_of(store, store.runs()).parts
    assert part.workload == C5
    assert part.accelerator.parameters.name == first.parameters
    assert part.accelerator.clock_hz == 50_000_000
    assert {name: column.tolist() for name, column in part.columns.items()} == {"tile_h": [2, 4], "tile_w": [7, 7]}
    assert part.throughput.tolist() == [C5.macs / 9_000.0, 0.0]

    file = tmp_path / "history.json"
    assert hilt(["log", "history", str(file), "aa", "bb"]) == 0
    assert capsys.readouterr().out == f"2 trials of 1 runs, to {file}\n"
    assert History.load(file).parts[0].throughput.tolist() == part.throughput.tolist()
