"""Every command that takes a run takes a campaign: by its id, the beginning of it, or `last`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.store import Campaign
from hilt.tune.history import History
from tests.unit.report.campaign_store import LATENCIES, make


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return make(tmp_path)[0]


@pytest.fixture(params=["uuid", "beginning", "last"])
def identifier(request: pytest.FixtureRequest, campaign: Campaign) -> str:
    return {"uuid": campaign.uuid, "beginning": campaign.uuid[:8], "last": "last"}[request.param]


def test_show_and_compare_take_it(campaign: Campaign, identifier: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["show", identifier, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["campaign"] == campaign.uuid
    assert hilt(["compare", identifier, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == len(LATENCIES)


@pytest.mark.slow
def test_report_and_resume_take_it(campaign: Campaign, identifier: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["report", identifier, "--csv", "trials.csv"]) == 0
    assert len(Path("trials.csv").read_text().splitlines()) == 1 + sum(map(len, LATENCIES))
    capsys.readouterr()
    assert hilt(["resume", identifier, "--json"]) == 0  # it has finished: its results are printed
    assert json.loads(capsys.readouterr().out)["campaign"] == campaign.uuid


def test_its_log_for_tvm_holds_all_layers(
    campaign: Campaign, identifier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hilt(["log", "export", identifier, "vta.log"]) == Exit.BAD_INPUT  # the board is a table
    assert "no TVM target for board table:plain" in capsys.readouterr().err and not Path("vta.log").exists()
    assert hilt(["log", "export", identifier, "vta.log", "--target", "pynq"]) == 0
    out = capsys.readouterr().out
    assert f"trials of campaign {campaign.uuid[:8]} for TVM's target pynq, to vta.log" in out
    kept = int(out.split()[0])
    left_out = sum(int(line.split()[0]) for line in out.splitlines() if " left out: " in line)
    assert len(Path("vta.log").read_text().splitlines()) == kept
    assert kept + left_out == sum(map(len, LATENCIES))


def test_a_history_holds_all_layers(campaign: Campaign, identifier: str) -> None:
    assert hilt(["log", "history", "history.npz", identifier]) == 0
    assert len(History.load(Path("history.npz")).parts) == len(LATENCIES)
