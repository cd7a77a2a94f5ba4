"""`hilt pause`, `stop`, `skip` and `resume`: the engines that hear a command, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hilt.campaign import launch as campaign_launch
from hilt.cli import attending, attending_campaign, host_keys
from hilt.cli.exit_codes import Exit
from hilt.cli.main import run as hilt
from hilt.engine import launch
from hilt.engine.events import EngineCommand
from hilt.store import Campaign, Run, RunState, Store, database_path
from hilt.store.campaigns import set_campaign_state
from tests.unit.store.examples import run

from .test_attending import engine, made, template

__all__ = ["made", "template"]  # fixtures

ALONE = "e" * 32
Captured = pytest.CaptureFixture[str]
Made = tuple[Campaign, Run]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "500")
    return tmp_path


def alone(home: Path, state: RunState = RunState.RUNNING) -> str:
    """A run by itself."""
    with Store(database_path(home)) as store:
        store.create_run(run(ALONE))
        store.set_state(ALONE, state)
    return ALONE


@pytest.mark.parametrize(
    ("word", "command", "verb"), [("pause", EngineCommand.PAUSE, "pauses"), ("stop", EngineCommand.STOP, "stops")]
)
def test_a_run_is_told_and_the_user_hears_how_it_goes_on(
    home: Path, capsys: Captured, word: str, command: EngineCommand, verb: str
) -> None:
    uuid = alone(home)
    with engine(home, uuid) as told:
        assert hilt([word, "last"]) == Exit.OK
    assert told == [command]
    assert capsys.readouterr().out == f"run eeeeeeee {verb} when the board is done; `hilt resume eeeeeeee` goes on\n"


def test_a_layer_pauses_with_its_campaign_and_is_not_stopped_by_itself(
    home: Path, made: Made, capsys: Captured
) -> None:
    campaign, layer = made
    name = campaign.uuid[:8]
    with engine(home, campaign.uuid) as told:
        assert hilt(["pause", layer.uuid]) == Exit.OK
        assert capsys.readouterr().out.startswith(f"campaign {name} pauses when")
        assert hilt(["stop", layer.uuid]) == Exit.BAD_INPUT
        said = capsys.readouterr().err
        assert hilt(["stop", campaign.uuid]) == Exit.OK
    assert told == [EngineCommand.PAUSE, EngineCommand.STOP]
    assert f"run {layer.uuid[:8]} is a layer of campaign {name}; `hilt stop {name}` stops the campaign" in said
    assert f"`hilt skip {name} resnet18.C5` skips the layer" in said


@pytest.mark.parametrize("layer", ["resnet18.C5", "C5", "body.0", "body.2"])
def test_a_layer_is_skipped_by_any_of_its_names(home: Path, made: Made, capsys: Captured, layer: str) -> None:
    campaign, run = made
    with engine(home, run.uuid) as told, engine(home, campaign.uuid) as campaigns:
        assert hilt(["skip", campaign.uuid, layer]) == Exit.OK
    assert (told, campaigns) == ([EngineCommand.STOP], [])
    assert capsys.readouterr().out == "resnet18.C5 gets no more trials\n"


def test_what_is_no_layer_is_not_skipped(home: Path, made: Made, capsys: Captured) -> None:
    campaign, _ = made
    uuid = alone(home)
    assert hilt(["skip", uuid, "C5"]) == Exit.BAD_INPUT
    assert "run eeeeeeee has no layers; `hilt campaigns` lists the campaigns" in capsys.readouterr().err
    for name in ("C4", "odd"):
        assert hilt(["skip", campaign.uuid, name]) == Exit.BAD_INPUT
        words = f"campaign {campaign.uuid[:8]} has no layer '{name}'; it has resnet18.C5, resnet18.C10"
        assert words in capsys.readouterr().err
    assert hilt(["skip", campaign.uuid, "C10"]) == Exit.BAD_INPUT
    assert f"campaign {campaign.uuid[:8]} is not running" in capsys.readouterr().err


class Doors:
    """The ways into the engine: each call is noted as (door, id, board, wait or options)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.went: list[Any] = []
        self.asked: list[str] = []
        for module, kind in ((launch, "run"), (campaign_launch, "campaign")):
            for name in ("resume", "begin_anew"):
                monkeypatch.setattr(module, name, self._begin(f"{name} {kind}"))
        monkeypatch.setattr(host_keys, "confirm_host_key", self.asked.append)
        monkeypatch.setattr(attending, "attend_run", self._attend_run)
        monkeypatch.setattr(attending_campaign, "attend_campaign", self._attend_campaign)

    def _begin(self, door: str) -> Any:
        def begin(uuid: str, home: Path, *, board: str | None, wait: bool) -> str:
            self.went.append((door, uuid, board, wait))
            return "begun"

        return begin

    def _attend_run(self, home: Path, begin: Any, **options: Any) -> Exit:
        self.went.append((begin(), options))
        return Exit.NOTHING_VERIFIED

    def _attend_campaign(self, home: Path, record: Run | Campaign | str, **options: Any) -> Exit:
        self.went.append((record if isinstance(record, str) else "as it was", options))
        return Exit.NOTHING_VERIFIED


@pytest.fixture
def doors(home: Path, monkeypatch: pytest.MonkeyPatch) -> Doors:
    return Doors(monkeypatch)


@pytest.mark.parametrize(("anew", "door"), [(False, "resume run"), (True, "begin_anew run")])
def test_a_run_goes_on_or_begins_anew_and_is_woken(home: Path, doors: Doors, anew: bool, door: str) -> None:
    uuid = alone(home, RunState.STOPPED)
    more = ["--anew"] * anew
    assert hilt(["resume", uuid, *more]) == Exit.NOTHING_VERIFIED
    assert hilt(["resume", uuid, "--board", "desk", "--wait", "--detach", "--json", *more]) == Exit.NOTHING_VERIFIED
    assert doors.went == [
        *((door, uuid, None, False), ("begun", {"detach": False, "as_json": False, "wake": True})),
        *((door, uuid, "desk", True), ("begun", {"detach": True, "as_json": True, "wake": True})),
    ]
    assert doors.asked == ["virtual:pynq", "desk"], "an unknown board is asked for its key before the engine needs it"


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.RUNNING])
def test_no_key_is_asked_for_where_no_engine_will_be_started(home: Path, doors: Doors, state: RunState) -> None:
    uuid = alone(home, state)
    with engine(home, uuid):
        hilt(["resume", uuid])
    assert doors.asked == []


def test_a_finished_campaign_is_shown_and_any_other_goes_on(
    home: Path, made: Made, doors: Doors, tmp_path: Path
) -> None:
    campaign, layer = made
    folder = tmp_path / "files"
    assert hilt(["resume", campaign.uuid, "--output", str(folder)]) == Exit.NOTHING_VERIFIED
    assert folder.is_dir() and doors.asked == []
    assert hilt(["resume", layer.uuid, "--anew", "--board", "desk"]) == Exit.NOTHING_VERIFIED
    options = {"detach": False, "as_json": False, "output": None, "wake": True}
    assert doors.went == [
        ("as it was", options | {"output": folder}),
        *(("begin_anew campaign", campaign.uuid, "desk", False), ("begun", options)),
    ], "a layer's run stands for its campaign"


def test_a_campaign_that_was_stopped_goes_on(home: Path, made: Made, doors: Doors) -> None:
    campaign, _ = made
    with Store(database_path(home)) as store:
        set_campaign_state(store, campaign.uuid, RunState.STOPPED)
    assert hilt(["resume", campaign.uuid, "--wait"]) == Exit.NOTHING_VERIFIED
    assert doors.went[0] == ("resume campaign", campaign.uuid, None, True) and doors.asked == ["table:plain"]


def test_a_run_has_no_files_to_write(home: Path, doors: Doors, capsys: Captured, tmp_path: Path) -> None:
    assert hilt(["resume", alone(home), "--output", str(tmp_path / "files")]) == Exit.BAD_INPUT
    assert "--output is for campaigns; `hilt report eeeeeeee` writes of a run" in capsys.readouterr().err
    assert doors.went == [] and not (tmp_path / "files").exists()
