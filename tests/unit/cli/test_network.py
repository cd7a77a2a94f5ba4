"""`hilt tune model.onnx` on boards that are tables: a run for each different layer, and their sum."""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from hilt.cli.exit_codes import Exit
from hilt.cli.files import named_in_text
from hilt.cli.main import run as hilt
from hilt.cli.network import _launch, listing, tune_campaign, tune_network
from hilt.engine import launch
from hilt.engine.campaigns import open_campaign, spec_of, unfinished
from hilt.engine.run_spec import RunSpec, make_run
from hilt.schedule.onnx_model import read_network
from hilt.store import Run, RunState, Store, database_path
from tests.unit.cli.network_engine import NetworkBoards
from tests.unit.engine.test_process import at_root
from tests.unit.schedule.onnx_models import Graph, resnet18, toy

__all__ = ["at_root"]  # a fixture

ENGINE = (sys.executable, "-m", "tests.unit.cli.network_engine")


class Tables:
    """Starts engines whose boards are tables; `broken` is the workload whose engine does not start."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken
        self.started: list[str] = []

    def start(self, settings: RunSpec, home: Path, *, campaign: str | None = None) -> Run:
        if settings.workload == self.broken:
            raise KeyboardInterrupt
        self.started.append(settings.workload)
        return launch.start(settings, home, campaign=campaign, boards=NetworkBoards(), engine=ENGINE)

    def resume(self, identifier: str, home: Path, *, board: str | None = None) -> Run:
        return launch.resume(identifier, home, board=board, boards=NetworkBoards(), engine=ENGINE)


def tune(
    model: Any, home: Path, capsys: pytest.CaptureFixture[str], trials: int, board: str = "table:plain"
) -> tuple[Exit, dict[str, Any], str]:
    path = home / "net.onnx"
    onnx.save(model, str(path))
    settings = RunSpec(workload=str(path), board=board, tuner="random", trials=trials, seed=4)
    ending = tune_network(read_network(path), settings, home, Tables(), as_json=True)
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    return ending, json.loads(said.out), said.err


def test_resnet18(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At 32 x 32: the layers of the real one, with smaller images."""
    ending, said, words = tune(resnet18(size=32), tmp_path, capsys, trials=12)
    layers = said["layers"]
    assert sum(layer["count"] for layer in layers) == 21 and len(layers) == 12
    assert ending is Exit.OK
    with Store(database_path(tmp_path)) as store:
        for layer in layers:
            best = store.best(layer["run"])
            assert best is not None and best.verified
            assert store.summary(layer["run"]).trials == 12
            assert layer["microseconds"] == layer["count"] * best.microseconds
    assert said["microseconds"] == pytest.approx(sum(layer["microseconds"] for layer in layers))
    assert sum(layer["share"] for layer in layers) == pytest.approx(1.0)
    assert "21 convolutions and dense layers for VTA, 12 different" in words
    assert "left to the processor: Relu 17" in words


def test_nothing_verified_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ending, said, _ = tune(toy(), tmp_path, capsys, trials=4, board="table:wrong")
    assert ending is Exit.NOTHING_VERIFIED
    assert said["microseconds"] == 0
    assert [layer["share"] for layer in said["layers"]] == [None, None]


def test_a_board_that_is_away_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ending, said, words = tune(toy(), tmp_path, capsys, trials=4, board="table:plain@away")
    assert ending is Exit.BOARD
    assert len(said["layers"]) == 1 and "is not reachable" in words


def test_what_was_interrupted_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After the first layer, the same command goes on with the second; when all is done it begins anew."""
    path = tmp_path / "toy.onnx"
    onnx.save(toy(), str(path))
    network = read_network(path)
    first, second = (layer.workload for layer in network.supported)
    settings = RunSpec(workload=str(path), board="table:plain", tuner="random", trials=8, seed=4)
    interrupted = Tables(broken=second)
    with pytest.raises(KeyboardInterrupt):
        tune_network(network, settings, tmp_path, interrupted, as_json=True)
    assert interrupted.started == [first]
    with Store(database_path(tmp_path)) as store:
        (campaign,) = store.campaigns()
        assert [layer.workload for layer in unfinished(store, campaign)] == [second]
    capsys.readouterr()

    other = Tables()
    tune_network(network, replace(settings, seed=5), tmp_path, other, as_json=True)
    assert other.started == [first, second]  # another seed is another campaign
    capsys.readouterr()

    moved = tmp_path / "elsewhere" / "toy.onnx"
    moved.parent.mkdir()
    onnx.save(toy(), str(moved))
    again = Tables()
    assert tune_network(read_network(moved), replace(settings, workload=str(moved)), tmp_path, again, as_json=True) == 0
    said = capsys.readouterr()
    assert again.started == [second] and "1 of 2 layers are done" in said.err
    result = json.loads(said.out)
    assert result["campaign"] == campaign.uuid and result["unfinished"] == []
    assert [layer["workload"] for layer in result["layers"]] == [first, second]
    with Store(database_path(tmp_path)) as store:
        runs = store.runs_of(campaign.uuid)
        assert [run.workload for run in runs] == [first, second]
        assert len(store.campaigns()) == 2

    anew = Tables()
    tune_network(network, settings, tmp_path, anew, as_json=True)
    assert anew.started == [first, second]


def test_a_stopped_layer_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "toy.onnx"
    onnx.save(toy(), str(path))
    network = read_network(path)
    settings = RunSpec(workload=str(path), board="table:plain", tuner="random", trials=8, seed=4)
    with Store(database_path(tmp_path)) as store:
        campaign = open_campaign(store, network, settings)
        layer = network.supported[0]
        run = make_run(spec_of(campaign, layer), NetworkBoards().describe_board("table:plain"), campaign.uuid)
        store.create_run(run)
        store.set_state(run.uuid, RunState.STOPPED)
        assert open_campaign(store, network, settings) == campaign
        assert store.campaign(campaign.uuid[:6]) == campaign and store.campaign("") is None
    tables = Tables()
    assert tune_campaign(campaign, tmp_path, tables, as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    assert tables.started == [network.supported[1].workload]
    assert said["layers"][0]["run"] == run.uuid


def test_the_table_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "toy.onnx"
    onnx.save(toy(), str(path))
    settings = RunSpec(workload=str(path), board="table:plain", tuner="random", trials=16, seed=4)
    assert tune_network(read_network(path), settings, tmp_path, Tables(), as_json=False) is Exit.OK
    out = capsys.readouterr().out
    table = [line.split() for line in out[out.index("layer  ") :].splitlines()[1:]]
    assert [row[1] for row in table[:2]] == ["1", "2"]
    shares = [float(row[4].rstrip("%")) for row in table[:2]]
    assert sum(shares) == pytest.approx(100, abs=0.11)
    best, both = (float(text.replace(",", "")) for text in table[1][2:4])
    assert both == pytest.approx(2 * best, abs=0.11)
    assert "in all its layers on the board" in out


def test_what_cannot_run_is_listed(tmp_path: Path) -> None:
    graph = Graph()
    data = graph.conv("data", 32, 32, 3)
    data = graph.conv(data, 32, 32, 3, dilations=[2, 2], pads=[2, 2, 2, 2])
    onnx.save(graph.model(graph.add("Relu", data), 1, 32, 8, 8, rank=4), str(tmp_path / "net.onnx"))
    words = listing(read_network(tmp_path / "net.onnx"))
    assert "not for VTA:\n    1 x Conv: dilation 2x2" in words and "Conv_1" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["gone.onnx"], "cannot read gone.onnx"), (["bad.onnx"], "no ONNX model"), (["net.onnx", "--detach"], "--detach")],
)
def test_bad_input_gets_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.onnx").write_text("shopping list")
    onnx.save(toy(), "net.onnx")
    assert hilt(["tune", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and words in said.err


def test_two_commands_that_come_to_a_layer_together_tune_it_once(tmp_path: Path) -> None:
    """As two that followed the layer before do when it ends."""
    path = tmp_path / "toy.onnx"
    onnx.save(toy(), str(path))
    settings = RunSpec(workload=str(path), board="table:plain", tuner="random", trials=8, seed=4)
    with Store(database_path(tmp_path)) as store:
        campaign = open_campaign(store, read_network(path), settings)
    layer = read_network(path).supported[0]
    calls: list[str] = []
    second = threading.Event()

    class Slow:
        """A launcher whose engines take a moment to start; they are none."""

        def start(self, settings: RunSpec, home: Path, *, campaign: str | None = None) -> Run:
            calls.append("start")
            run = make_run(settings, NetworkBoards().describe_board("table:plain"), campaign)
            with Store(database_path(home)) as store:
                store.create_run(run)
            if len(calls) > 1:
                second.set()
            second.wait(0.5)
            return run

        def resume(self, identifier: str, home: Path, *, board: str | None = None) -> Run:
            calls.append("resume")
            with Store(database_path(home)) as store:
                return store.run(identifier)

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(_launch, campaign, layer, tmp_path, Slow(), None) for _ in range(2)]
        runs = [each.result() for each in both]
    assert calls == ["start", "resume"]
    assert runs[0].uuid == runs[1].uuid
    with Store(database_path(tmp_path)) as store:
        store.set_state(runs[0].uuid, RunState.FINISHED)
        assert _launch(campaign, layer, tmp_path, Slow(), None).state is RunState.FINISHED
    assert len(calls) == 2, "what has finished in the meantime is neither begun nor resumed"


def test_a_models_name_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.onnx")
    path.write_bytes(toy().SerializeToString())
    network = named_in_text(read_network(path))
    settings = RunSpec(workload=str(path), board="table:plain", tuner="random", trials=2, seed=4)
    assert tune_network(network, settings, tmp_path, Tables(), as_json=True) in (Exit.OK, Exit.NOTHING_VERIFIED)
    assert json.loads(capsys.readouterr().out)["model"] == "caf\ufffd"
