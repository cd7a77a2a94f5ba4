"""A network's latency is one figure: list, text, JSON, report and terminal UI have the same record."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hilt.cli.main import run as hilt
from hilt.engine.campaign_results import RunNames, load_result
from hilt.engine.run_files import RunFiles
from hilt.network.latency import Latency, scaled
from hilt.report.campaign_inference import INFERENCE, load_inference
from hilt.report.facts import facts_of_campaign
from hilt.report.html import render
from hilt.store import Campaign, Store, database_path
from hilt.tui.campaign_view import CampaignView
from hilt.tui.run_list import read_rows

from .campaign_store import make

LATENCY = Latency(683.9, 300.0, 120.5, 87.25, 2, "assumed of a Cortex-A9", 3, 1191.0, 1200.0, 2000.0)


def keep(home: Path, campaign: Campaign) -> None:
    profile = {"latency": LATENCY.to_dict(), "layers": [], "steps": [], "timeline": [], "utilisation": 0.8}
    before = {"latency": replace(LATENCY, vta=3_000.0).to_dict()}
    values = {
        "board": "virtual:pynq",
        "before": before,
        "after": profile,
        "chosen": "schedules chosen together",
        "verified": {"tensors": 9, "elements": 99},
    }
    (RunFiles(home, campaign.uuid).directory / INFERENCE).write_text(json.dumps(values), encoding="utf-8")


@pytest.mark.slow
def test_every_face_has_the_same_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    campaign, _ = make(tmp_path)
    keep(tmp_path, campaign)
    whole = LATENCY.total
    text = scaled(whole)
    with Store(database_path(tmp_path)) as store:
        inference = load_inference(store, campaign.uuid)
        assert inference is not None and inference.after == LATENCY
        view = CampaignView.load(store, tmp_path, campaign)
        rows = [row for row in read_rows(store, tmp_path) if row.is_campaign]
        page = render(facts_of_campaign(store, load_result(store, campaign)), static=True)
    assert view.figure.microseconds == whole and view.figure.text.startswith(f"{text} an inference")
    assert [row.latency for row in rows] == [whole]
    assert f"<b>≈{text}</b>" in page and page.count(text) >= 2
    assert not re.search(r"14\.45\s*ms", page), "the sum of layers is another figure"
    assert hilt(["campaigns"]) == 0
    assert f"≈{whole / 1e3:,.2f}" in capsys.readouterr().out
    assert hilt(["show", campaign.uuid[:8]]) == 0
    shown = capsys.readouterr().out
    assert view.figure.text in " ".join(shown.split()) and "14.45 ms" not in shown
    assert hilt(["show", campaign.uuid[:8], "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["inference"] == LATENCY.to_dict() and said["microseconds"] == whole
    assert (said["fallback_microseconds"], said["gain"]) == (view.figure.fallback, view.figure.gain)


def test_a_record_of_an_older_version_is_read_with_the_boards_processor(tmp_path: Path) -> None:
    campaign, _ = make(tmp_path)
    step = {"kind": "pack", "name": "pack x", "microseconds": 10.0}
    old = {"vta": 683.9, "start": 30.0, "processor": 25.0, "total": 738.9, "starts": 2, "steps": [step]}
    values = {"board": "virtual:pynq", "before": old, "after": old, "verified": {"tensors": 9, "elements": 99}}
    path = RunFiles(tmp_path, campaign.uuid).directory / INFERENCE
    path.write_text(json.dumps(values), encoding="utf-8")
    with Store(database_path(tmp_path)) as store:
        inference = load_inference(store, campaign.uuid)
        path.write_text("{", encoding="utf-8")
        assert load_inference(store, campaign.uuid) is None
    assert inference is not None
    after = inference.after
    assert (after.vta, after.start, after.crossings, after.processor) == (683.9, 300.0, 200.0, 300.0)
    assert after.assumed


def test_a_layers_run_has_the_layers_name(tmp_path: Path) -> None:
    campaign, run = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        names = RunNames(store)
        assert names(run) == "resnet18.C5"
        assert names(replace(run, campaign=None, workload="x")) == "x"
        assert [row.cells["workload"] for row in read_rows(store, tmp_path)[0].layers] == [
            layer.layer.name for layer in load_result(store, campaign).layers
        ]
