"""`hilt campaign` on the RTL over SSH, as its users run it; killed on the way, it ends the same."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import onnx
import pytest

from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as command
from hilt.engine.client import EngineClient
from hilt.engine.events import EngineHello, RunProgress
from hilt.engine.run_files import RunFiles
from hilt.store import Store, Trial, database_path
from tests.e2e.test_first_light import hilt
from tests.unit.schedule.onnx_models import toy

BUDGET = 16
OPTIONS = ("--board", "virtual:pynq", "--budget", str(BUDGET), "--tuner", "random", "--orders", "1", "--seed", "2")
SECONDS = 120.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "toy.onnx"
    onnx.save(toy(), str(path))
    return path


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("output") / "made" / "here"


@pytest.fixture(scope="module")
def done(shared_home: Path, model: Path, output: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(hilt("campaign", str(model), *OPTIONS, "--json", "--output", str(output)).stdout)
    return said


def trials(home: Path, uuid: str) -> dict[str, list[Trial]]:
    with Store(database_path(home)) as store:
        return {run.workload: store.trials(run.uuid) for run in store.runs_of(uuid)}


def test_the_gain_over_the_fallback_is_measured(shared_home: Path, done: dict[str, Any]) -> None:
    assert done["state"] == "finished" and done["trials"] == BUDGET
    assert [layer["count"] for layer in done["layers"]] == [1, 2]
    recorded = trials(shared_home, done["campaign"])
    for layer in done["layers"]:
        of_layer = recorded[layer["workload"]]
        assert len(of_layer) == layer["trials"] >= 4
        fallback, best = layer["fallback"], layer["best"]
        assert fallback["verified"] and best["verified"]
        assert fallback["ordinal"] == 0 and set(fallback["knobs"].values()) == {1}, "TVM's"
        assert best["cycles"] == min(each.cycles for each in of_layer if each.verified and each.cycles is not None)
        assert layer["gain"] == pytest.approx(fallback["cycles"] / best["cycles"])
    for which, total in (("fallback", "fallback_microseconds"), ("best", "microseconds")):
        assert done[total] == pytest.approx(sum(each["count"] * each[which]["microseconds"] for each in done["layers"]))


def test_schedule_log_and_report(done: dict[str, Any], output: Path) -> None:
    schedule = json.loads((output / "schedule.json").read_text())
    assert [each["schedule"]["index"] for each in schedule["layers"]] == [
        each["best"]["index"] for each in done["layers"]
    ]
    assert schedule["board"]["name"] == "virtual:pynq" and len(schedule["board"]["bitstream"]) == 64
    assert (output / "autotvm.log").read_text().count('"conv2d_packed.vta"') > 0
    page = (output / "report.html").read_text()
    assert all(f"{each['best']['microseconds']:,.1f}" in page for each in done["layers"])
    assert "toy on virtual:pynq" in page and "hilt campaign toy.onnx --board virtual:pynq --budget 16" in page


def test_killed_and_resumed_it_ends_the_same(shared_home: Path, model: Path, done: dict[str, Any]) -> None:
    words = hilt("campaign", str(model), *OPTIONS, "--detach").stdout
    with Store(database_path(shared_home)) as store:
        uuid = store.campaigns()[0].uuid
    assert uuid[:8] in words and uuid != done["campaign"]
    with EngineClient.attach(shared_home, uuid) as client:
        hello = next(client.events(SECONDS))
        assert isinstance(hello, EngineHello)
        for event in client.events(SECONDS):
            if isinstance(event, RunProgress) and event.trials >= BUDGET // 2:
                break
        os.kill(hello.pid, signal.SIGKILL)
    assert RunFiles(shared_home, uuid).wait_until_free(SECONDS)
    resumed = json.loads(hilt("resume", uuid[:8], "--json").stdout)
    assert resumed["state"] == "finished"
    assert trials(shared_home, uuid) == trials(shared_home, done["campaign"])


def test_its_commands_when_it_is_over(
    shared_home: Path, done: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(shared_home))
    uuid = done["campaign"]
    assert command(["campaigns"]) == Exit.OK
    assert f"{done['gain']:.2f}" in capsys.readouterr().out
    assert command(["resume", uuid, "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == done, "to attach to a finished campaign shows it"
    for arguments, words in (
        (("pause", uuid), "is not running"),
        (("stop", uuid), "is not running"),
        (("skip", uuid, "resnet18.C2"), "has no layer 'resnet18.C2'"),
        (("campaign", "resnet18", "--budget", "90", "--board", "desk", "--chaos", "rate=0.1"), "is for virtual boards"),
    ):
        assert command(list(arguments)) == Exit.BAD_INPUT
        said = capsys.readouterr().err.splitlines()
        assert words in said[-1] and said[-1].startswith("hilt: "), said
