"""Tuners on datasets of accelerators that hilt has no compiler of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilt.cli.main import run
from hilt.measure.dataset import Dataset, DatasetStore
from hilt.measure.dataset.recorded_space import RecordedSpace, SpaceRecord
from hilt.trial import Outcome
from hilt.tune import make_tuner
from hilt_experiments.contenders import Contender
from hilt_experiments.errors import ExperimentError
from hilt_experiments.recorded_problems import RecordedProblem, replays
from hilt_experiments.replay import Protocol, replay
from hilt_experiments.restricted import RestrictedTuner

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "datasets.md"
KNOBS = {"tile": [1, 2, 4, 8, 16, 32], "unroll": [1, 2, 4, 8], "layout": ["nchw", "nhwc"], "threads": [32, 64, 128]}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """A smooth valley, with a part that crashes and a part that the restrictions refuse."""
    records = []
    for place, tile in enumerate(KNOBS["tile"]):
        for unroll in KNOBS["unroll"]:
            for layout in KNOBS["layout"]:
                for threads in KNOBS["threads"]:
                    if unroll > tile:
                        continue
                    crash = tile == 32 and threads == 128
                    latency = 50 + 8 * abs(place - 3) + 5 * abs(unroll - 4) + threads / 16 + 20 * (layout == "nchw")
                    values = [tile, unroll, layout, threads]
                    outcome = Outcome.CRASH if crash else Outcome.OK
                    records.append(SpaceRecord(values, outcome, None if crash else latency))
    return RecordedSpace("valley", KNOBS, "an accelerator", "a kernel", "csv", records).dataset()


@pytest.mark.parametrize("name", ["random", "grid", "ga", "autotvm", "hw-aware"])
def test_tuners_that_go_by_knobs_run_on_any_dataset(name: str, dataset: Dataset) -> None:
    rows = replays(dataset, Contender.of(name), Protocol(trials=len(dataset)), 1)
    assert rows[0]["trials"] == len(dataset) and rows[0]["off"] == 0
    assert 0 < rows[0]["invalid"] == int((~dataset.valid).sum())


@pytest.mark.parametrize("name", ["hilt", "glimpse", "ml2tuner"])
def test_tuners_that_ask_a_compiler_say_so(name: str, dataset: Dataset) -> None:
    with pytest.raises(ExperimentError, match=r"asks for the \w+ of a VTA workload"):
        replays(dataset, Contender.of(name), Protocol(trials=len(dataset)), 1)


def test_restrictions_are_known_where_they_are_asked_for(dataset: Dataset) -> None:
    problem = RecordedProblem(dataset)
    absent = ~problem.compiles
    rejected = [dataset.outcome_of(index) is Outcome.REJECTED for index in range(len(dataset))]
    assert absent.tolist() == rejected and any(rejected)
    tuner = RestrictedTuner(make_tuner("random", problem, 0), problem.compiles)
    indices = replay(tuner, dataset, Protocol(trials=len(dataset))).indices
    assert sorted(indices.tolist()) == np.flatnonzero(problem.compiles).tolist()
    (row,) = replays(dataset, Contender.of("random"), Protocol(trials=40), 1, restricted=True)
    assert row["trials"] == 40


def test_a_csv_is_imported_and_replayed_from_the_command_line(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path / "home"))
    path = tmp_path / "valley.csv"
    path.write_text("tile,unroll,microseconds\n1,1,30\n2,1,20.5\n1,2,\n2,2,10\n4,1,11\n")
    assert run(["dataset", "import", str(path)]) == 0
    assert capsys.readouterr().out == "valley: 6 configurations, 4 valid, best 10.000 µs\n"
    assert run(["dataset", "replay", "valley", "--tuner", "random", "--tuner", "grid", "--seeds", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["items"]
    assert [(row["tuner"], row["off"]) for row in rows] == [("random", 0), ("random", 0), ("grid", 0), ("grid", 0)]
    assert rows[2]["to_1%"] == 5, "the first knob is the fastest"
    assert run(["dataset", "replay", "valley"]) == 0
    assert "best 10.000 µs of 4 valid configurations" in capsys.readouterr().out
    cache = tmp_path / "valley.json"
    assert run(["dataset", "export", "valley", str(cache), "--form", "kerneltuner"]) == 0
    assert json.loads(cache.read_text())["tune_params"] == {"tile": [1, 2, 4], "unroll": [1, 2]}
    assert run(["dataset", "list"]) == 0 and run(["dataset", "show", "valley"]) == 0
    capsys.readouterr()
    assert run(["dataset", "replay", "valley", "--tuner", "hilt"]) == 2
    assert "asks for the" in capsys.readouterr().err
    path.write_text("tile\n1\n")
    assert run(["dataset", "import", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_ten_lines_of_the_how_to_run(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    store = DatasetStore()
    named = Dataset({**dataset.metadata, "name": "gemm@a100"}, dataset.outcome, dataset.reason, dataset.cycles)
    named.write(store.path_of_imported("gemm@a100"))
    code = HOW_TO.read_text().partition("```python\n")[2].partition("```")[0]
    assert len(code.splitlines()) <= 10
    exec(compile(code, "datasets.md", "exec"), {})
    assert capsys.readouterr().out == "best found 52.0 us, best of all 52.0 us\n"
