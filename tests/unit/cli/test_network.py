"""`hilt tune model.onnx` and the verbs of campaigns, on boards that are tables."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

import onnx
import pytest

from hilt.campaign import launch
from hilt.cli.main import run as hilt
from hilt.cli.network_text import listing
from hilt.schedule.onnx_model import read_network
from hilt.store import RunState, Store, database_path
from tests.unit.campaign.campaign_engine import GatedBoards
from tests.unit.engine.table import description
from tests.unit.engine.test_process import Gate, at_root, gate
from tests.unit.schedule.onnx_models import Graph, toy

__all__ = ["at_root", "gate"]  # fixtures

ENGINE = (sys.executable, "-m", "tests.unit.campaign.campaign_engine")
OPTIONS = ("--board", "table:plain", "--tuner", "random", "--seed", "4")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose campaigns run on tables."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    for name in ("start", "resume"):
        monkeypatch.setattr(launch, name, partial(getattr(launch, name), boards=GatedBoards(), engine=ENGINE))
    monkeypatch.setattr("hilt.cli.campaign.describe_board", description)
    monkeypatch.setattr("hilt.cli.host_keys.confirm_host_key", lambda boards: None)
    monkeypatch.setattr("hilt.cli.attending_campaign.write_outputs", lambda *_: type("Written", (), {"notes": []}))
    return tmp_path


def model(folder: Path, name: str = "toy.onnx") -> str:
    path = folder / name
    onnx.save(toy(), str(path))
    return str(path)


@pytest.mark.slow
def test_a_model_becomes_a_campaign_with_trials_for_each_layer(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["tune", model(home), *OPTIONS, "--trials", "8", "--json"]) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert (result["state"], result["budget"], result["trials"]) == ("finished", {"trials": 16}, 16)
    assert [layer["count"] for layer in result["layers"]] == [1, 2]
    assert "3 convolutions and dense layers for VTA, 2 different" in said.err
    with Store(database_path(home)) as store:
        for layer in result["layers"]:
            best = store.best(layer["run"])
            assert best is not None and best.microseconds == layer["best"]["microseconds"]
    assert hilt(["show", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == result
    assert hilt(["show", "last"]) == 0
    assert "in all its layers on the board" in capsys.readouterr().out
    assert hilt(["campaigns", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["items"]
    assert listed == [{name: value for name, value in result.items() if name not in ("schema", "kind")}]


@pytest.mark.slow
def test_the_engine_itself_writes_to_the_folder_of_output(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal may be closed: here the command writes nothing (`home`)."""
    monkeypatch.setenv("HILT_TEST_FILES", "1")
    output = home / "results"
    assert hilt(["campaign", model(home), "--budget", "16", *OPTIONS, "--output", str(output)]) == 0
    assert {"schedule.json", "report.html"} <= {path.name for path in output.iterdir()}


@pytest.mark.slow
def test_nothing_verified_has_its_exit_code(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["tune", model(home), "--board", "table:wrong", "--tuner", "random", "--trials", "8"]) == 1
    assert "nothing verified was found" in capsys.readouterr().out


@pytest.mark.slow
def test_verbs_take_the_id_of_a_campaign(home: Path, gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    gate.shut()
    assert hilt(["campaign", model(home), "--budget", "16", *OPTIONS, "--detach"]) == 0
    assert "goes on by itself" in capsys.readouterr().out
    with Store(database_path(home)) as store:
        uuid = store.campaigns()[0].uuid
        runs = store.runs_of(uuid)
    name = uuid[:8]
    assert hilt(["pause", "last"]) == 0
    assert f"campaign {name} pauses when the board is done" in capsys.readouterr().out
    assert hilt(["skip", name, runs[1].workload]) == 0
    assert "Conv_1 gets no more trials" in capsys.readouterr().out
    assert hilt(["skip", name, "C99"]) == 2
    assert "has no layer 'C99'; it has" in capsys.readouterr().err
    assert hilt(["stop", runs[0].uuid]) == 2
    assert f"is a layer of campaign {name}; `hilt stop {name}` stops the campaign" in capsys.readouterr().err
    assert hilt(["stop", name]) == 0
    assert f"campaign {name} stops" in capsys.readouterr().out
    gate.open()
    assert hilt(["resume", name, "--json"]) in (1, 130)  # it may stop before it is attached to, or go on
    capsys.readouterr()
    hilt(["resume", name, "--json"])
    capsys.readouterr()
    with Store(database_path(home)) as store:
        campaign, skipped = store.campaign(uuid), store.run(runs[1].uuid)
    assert campaign is not None and campaign.state is RunState.FINISHED
    assert (skipped.state, skipped.detail) == (RunState.FINISHED, "skipped")
    assert hilt(["pause", name]) == 2
    assert f"campaign {name} is not running; `hilt show {name}`" in capsys.readouterr().err


def test_layers_that_cannot_run_are_listed(tmp_path: Path) -> None:
    graph = Graph()
    data = graph.conv("data", 32, 32, 3)
    data = graph.conv(data, 32, 32, 3, pads=[1, 1])
    onnx.save(graph.model(graph.add("Relu", data), 1, 32, 8, 8, rank=4), str(tmp_path / "net.onnx"))
    words = listing(read_network(tmp_path / "net.onnx"))
    assert "not for VTA:\n    1 x Conv: its pads are [1, 1]" in words and "Conv_1" in words


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["tune", "gone.onnx"], "cannot read gone.onnx"),
        (["tune", "bad.onnx"], "no ONNX model"),
        (["tune", "resnet18", "--trials", "3"], "budget of 30 trials is too small"),
        (["campaign", "resnet19", "--budget", "90"], "no network named 'resnet19'"),
        (["campaign", "resnet18"], "--budget"),
        (["campaign", "resnet18", "--budget", "soon"], "neither a number of trials"),
        (["campaign", "resnet18", "--budget", "12"], "budget of 12 trials is too small"),
    ],
)
def test_bad_input_gets_one_line(
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(home)
    Path("bad.onnx").write_text("shopping list")
    assert hilt(command) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("hilt: ")]
    assert len(lines) == 1 and words in lines[0]


@pytest.mark.slow
def test_a_models_name_that_is_no_text(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = model(home, os.fsdecode(b"caf\xe9.onnx"))
    assert hilt(["tune", path, *OPTIONS, "--trials", "4", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["network"] == "caf\ufffd"
