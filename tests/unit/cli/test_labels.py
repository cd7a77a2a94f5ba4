"""`hilt delete`, `tag`, `note` and `archive`, and the lists that follow them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hilt.cli.main import run as hilt
from hilt.engine.run_files import RunFiles
from hilt.store import Campaign, Run, Store, database_path
from tests.unit.report.campaign_store import make
from tests.unit.store.examples import run, trial

ALONE = "b" * 32


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run by itself, in a home of its own."""
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    with Store(database_path(tmp_path)) as store:
        store.create_run(run(ALONE))
        store.record(ALONE, [trial(0, 0, 7.0)])
    return tmp_path


@pytest.fixture
def campaign(home: Path) -> tuple[Campaign, Run]:
    return make(home)


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert hilt([*words, "--json"]) == 0
    return [each.get("run", each.get("campaign")) for each in json.loads(capsys.readouterr().out)["items"]]


def test_tags_and_notes_are_shown_and_listed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["tag", "last", "fan", "desk"]) == 0
    assert hilt(["note", ALONE[:8], "after\x1b[2J the fan"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert hilt(["show", "last"]) == 0
    assert "#desk #fan after" in capsys.readouterr().out
    assert listed(capsys, "runs", "--tag", "fan") == [ALONE] and listed(capsys, "runs", "--tag", "other") == []
    assert hilt(["tag", "last", "fan", "--remove"]) == 0 and listed(capsys, "runs", "--tag", "fan") == []
    assert hilt(["tag", "last", "two words"]) == 2
    assert "'two words' is no tag" in capsys.readouterr().err


def test_archived_runs_are_listed_with_all_only(
    home: Path, campaign: tuple[Campaign, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    uuid = campaign[0].uuid
    assert hilt(["archive", uuid, ALONE]) == 0
    assert listed(capsys, "campaigns") == listed(capsys, "runs") == [], "its layers go with the campaign"
    assert listed(capsys, "campaigns", "--all") == [uuid] and len(listed(capsys, "runs", "--all")) == 3
    assert hilt(["runs"]) == 0 and "--all lists those" in capsys.readouterr().out
    assert hilt(["archive", uuid, "--undo"]) == 0 and listed(capsys, "campaigns") == [uuid]


def test_a_campaign_is_deleted_with_its_layers_and_directories(
    home: Path, campaign: tuple[Campaign, Run], capsys: pytest.CaptureFixture[str]
) -> None:
    uuid, layer = campaign[0].uuid, campaign[1].uuid
    directory = RunFiles(home, layer).directory
    assert directory.is_dir()
    assert hilt(["delete", uuid, "--yes"]) == 0
    assert f"campaign {uuid[:8]} is deleted, with 9 trials" in capsys.readouterr().out
    assert not directory.exists() and not (home / "runs" / uuid).exists()
    assert listed(capsys, "campaigns", "--all") == [] and listed(capsys, "runs", "--all") == [ALONE]


def test_a_layer_alone_is_not_deleted(campaign: tuple[Campaign, Run], capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["delete", campaign[1].uuid, "--yes"]) == 2
    assert f"is a layer of campaign {campaign[0].uuid[:8]}" in capsys.readouterr().err
    assert len(listed(capsys, "runs", "--all")) == 3


def test_a_run_with_an_engine_is_not_deleted(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with RunFiles(home, ALONE).locked():
        assert hilt(["delete", ALONE, "--yes"]) == 2
    assert "is already running" in capsys.readouterr().err
    assert listed(capsys, "runs") == [ALONE]


def test_nothing_is_deleted_where_nobody_can_be_asked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["delete", ALONE]) == 2
    assert "--yes deletes without asking" in capsys.readouterr().err
    assert hilt(["delete", ALONE, "ffff", "--yes"]) == 2, "one that is unknown stops it before the first"
    assert listed(capsys, "runs") == [ALONE]
