"""A run or a campaign that is over or is left alone: its output and the exit code."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.campaign.outputs import keep_folder
from hilt.cli import attending_campaign
from hilt.cli.attending import attend_run
from hilt.cli.attending_campaign import attend_campaign
from hilt.cli.exit_codes import Exit
from hilt.engine.events import EngineCommand, EngineHello, FailureCause
from hilt.engine.run_files import RunFiles
from hilt.engine.server import EngineServer
from hilt.store import Campaign, Run, RunState, Store, Trial, UnknownRunError, database_path
from hilt.store.campaigns import set_campaign_state
from hilt.trial import Outcome
from tests.unit.report import campaign_store
from tests.unit.report.campaign_store import make
from tests.unit.store.examples import run, trial

UUID = "ab12cd34" + "0" * 24
LATE = Trial(0, 3, {}, Outcome.TIMEOUT, "no FINISH")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "500")
    return tmp_path


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Campaign, Run]:
    """A home with a campaign, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    return folder, *make(folder)


@pytest.fixture
def made(home: Path, template: tuple[Path, Campaign, Run]) -> tuple[Campaign, Run]:
    """A campaign in this test's home, and its first layer's run."""
    folder, campaign, run = template
    shutil.copytree(folder, home, dirs_exist_ok=True)
    return campaign, run


@contextmanager
def engine(home: Path, uuid: str) -> Iterator[list[EngineCommand]]:
    """An engine that obeys nothing but notes its commands."""
    told: list[EngineCommand] = []
    files = RunFiles(home, uuid)
    with files.locked(), EngineServer(files, EngineHello(uuid, os.getpid()), told.append):
        yield told


def recorded(home: Path, trials: list[Trial], state: RunState, detail: str = "", failure: str = "", **of: Any) -> Run:
    with Store(database_path(home)) as store:
        store.create_run(run(UUID, **of))
        store.record(UUID, trials)
        store.set_state(UUID, state, detail, failure)
        return store.run(UUID)


def attend(home: Path, found: Run, **options: Any) -> Exit:
    return attend_run(home, lambda: found, **{"detach": False, "as_json": False, **options})


@pytest.mark.parametrize(
    ("board", "compared"), [("virtual:pynq", "its whole output is"), ("dataset:some", "nothing is")]
)
def test_a_run_says_what_is_compared_and_how_long_a_program_may_take(
    home: Path, capsys: Captured, board: str, compared: str
) -> None:
    found = recorded(home, [trial(0, 7, 9000.0)], RunState.FINISHED, board=board, limit_seconds=1.5)
    assert attend(home, found) is Exit.OK
    said = capsys.readouterr()
    line = f"a program may run for 1,500 ms by the board's clock; {compared} compared with the reference"
    assert said.out.splitlines()[0] == line and said.err == ""
    assert said.out.splitlines()[-1] == "run ab12cd34, finished: `hilt show ab12cd34` shows it"


def test_json_has_standard_output_for_itself(home: Path, capsys: Captured) -> None:
    found = recorded(home, [trial(0, 7, 9000.0)], RunState.FINISHED)
    assert attend(home, found, as_json=True) is Exit.OK
    said = capsys.readouterr()
    value = json.loads(said.out)
    assert (value["kind"], value["run"], value["state"], value["valid"]) == ("run", UUID, "finished", 1)
    assert "a program may run for 500 ms" in said.err and "every valid trial's" not in said.err


@pytest.mark.parametrize(
    ("board", "trials"), [("virtual:pynq", [LATE]), ("dataset:some", [LATE]), ("virtual:pynq", [])]
)
def test_a_run_without_a_right_trial_verified_nothing(home: Path, board: str, trials: list[Trial]) -> None:
    found = recorded(home, trials, RunState.FINISHED, board=board)
    assert attend(home, found) is Exit.NOTHING_VERIFIED


def test_a_right_answer_of_a_dataset_is_a_success_though_nothing_was_verified(home: Path) -> None:
    answer = replace(trial(0, 7, 9000.0), verification=None)
    assert attend(home, recorded(home, [answer], RunState.FINISHED, board="dataset:some")) is Exit.OK
    with Store(database_path(home)) as store:
        assert store.best(UUID) is None


def test_a_run_that_was_stopped_can_go_on(home: Path, capsys: Captured) -> None:
    assert attend(home, recorded(home, [trial(0, 7, 9000.0)], RunState.STOPPED)) is Exit.INTERRUPTED
    assert "`hilt resume ab12cd34` goes on" in capsys.readouterr().out


@pytest.mark.parametrize(("wake", "removed"), [(False, True), (True, False)])
def test_a_new_run_that_failed_before_its_first_trial_leaves_nothing(
    home: Path, capsys: Captured, wake: bool, removed: bool
) -> None:
    found = recorded(home, [], RunState.FAILED, "no board answers", FailureCause.BOARD)
    assert attend(home, found, wake=wake) is Exit.BOARD
    said = capsys.readouterr()
    assert "no board answers" in said.err and ("no trial was made" in said.out) is not removed
    with Store(database_path(home)) as store:
        if removed:
            with pytest.raises(UnknownRunError):
                store.run(UUID)
        else:
            assert store.run(UUID).state is RunState.FAILED


def test_a_run_that_failed_after_a_trial_is_kept(home: Path, capsys: Captured) -> None:
    found = recorded(home, [trial(0, 7, 9000.0)], RunState.FAILED, "unknown board", FailureCause.INPUT)
    assert attend(home, found) is Exit.BAD_INPUT
    said = capsys.readouterr()
    assert "hilt: run ab12cd34 failed: unknown board" in said.err and "best: configuration 7" in said.out


@pytest.mark.parametrize("wake", [False, True])
def test_a_run_that_is_left_alone_says_how_to_come_back(home: Path, capsys: Captured, wake: bool) -> None:
    found = recorded(home, [], RunState.RUNNING)
    with engine(home, UUID) as told:
        assert attend(home, found, detach=True, wake=wake) is Exit.OK
    assert told == [EngineCommand.RESUME] * wake, "a paused run goes on"
    assert capsys.readouterr().out == (
        "run ab12cd34 goes on by itself; `hilt tui ab12cd34` or `hilt resume ab12cd34` attaches to it\n"
    )
    assert attend(home, found, detach=True, wake=wake) is Exit.OK, "it was over before we came"


def test_a_run_that_is_left_alone_prints_its_state_as_json(home: Path, capsys: Captured) -> None:
    found = recorded(home, [], RunState.RUNNING)
    with engine(home, UUID):
        assert attend(home, found, detach=True, as_json=True) is Exit.OK
    said = capsys.readouterr()
    assert json.loads(said.out)["state"] == "running" and "goes on by itself" in said.err


class Kept:
    """A campaign whose files are written as names alone: a report takes a second."""

    def __init__(self, home: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.campaign = campaign
        self.own = RunFiles(home, self.campaign.uuid).directory
        self.wrote: list[Path] = []
        monkeypatch.setattr(attending_campaign, "write_outputs", self._write)

    def _write(self, store: Store, uuid: str, folder: Path) -> Any:
        assert uuid == self.campaign.uuid
        self.wrote.append(folder)
        folder.mkdir(exist_ok=True)
        for name in ("schedule.json", "report.html"):
            (folder / name).touch()
        return SimpleNamespace(notes=["for TVM's users: a note"])

    def attend(self, state: RunState = RunState.FINISHED, detail: str = "", failure: str = "", **options: Any) -> Exit:
        with Store(database_path(self.home)) as store:
            set_campaign_state(store, self.campaign.uuid, state, detail, failure)
            found = store.campaign(self.campaign.uuid)
        assert found is not None
        settings = {**found.settings, **options.pop("settings", {})}
        return attend_campaign(
            self.home, replace(found, settings=settings), **{"detach": False, "as_json": False, **options}
        )


@pytest.fixture
def kept(home: Path, made: tuple[Campaign, Run], monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(home, made[0], monkeypatch)


def test_a_finished_campaign_whose_engine_wrote_no_files_gets_them(kept: Kept, capsys: Captured) -> None:
    assert kept.attend() is Exit.OK
    assert kept.wrote == [kept.own]
    said = capsys.readouterr().out
    assert "for TVM's users: a note" in said and "\nresnet18.C5 " in said
    files = f"schedules, AutoTVM's log and report: {kept.own / 'schedule.json'} {kept.own / 'report.html'}"
    assert files in said, "a log that was not written is not named"
    assert kept.attend() is Exit.OK and kept.wrote == [kept.own], "they are there now"


def test_another_folder_gets_the_files_in_any_case_and_notes_that_the_engine_told_are_not_told_again(
    kept: Kept, capsys: Captured, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    kept.attend(output=other)
    kept.attend(output=other)
    assert kept.wrote == [other, other] and capsys.readouterr().out.count("a note") == 2
    keep_folder(kept.home, kept.campaign.uuid, other)
    kept.attend(output=other)
    assert len(kept.wrote) == 3 and "a note" not in capsys.readouterr().out


def test_a_campaign_that_was_stopped_writes_no_files_by_itself(kept: Kept, capsys: Captured) -> None:
    assert kept.attend(RunState.STOPPED) is Exit.INTERRUPTED
    assert kept.wrote == [] and "AutoTVM's log and report" not in capsys.readouterr().out


def test_a_campaign_that_failed_after_trials_shows_its_layers_and_why(kept: Kept, capsys: Captured) -> None:
    assert kept.attend(RunState.FAILED, "the board is lost", FailureCause.BOARD) is Exit.BOARD
    said = capsys.readouterr()
    assert f"campaign {kept.campaign.uuid[:8]} failed: the board is lost" in said.err and "resnet18.C10" in said.out


def test_a_new_campaign_that_failed_before_its_first_trial_is_removed(home: Path, capsys: Captured) -> None:
    campaign = Campaign("c" * 32, "net", {}, {"board": "no", "tuner": "hilt"}, 1.0, {"trials": 8})
    with Store(database_path(home)) as store:
        store.create_campaign(campaign)
        set_campaign_state(store, campaign.uuid, RunState.FAILED, "unknown board", FailureCause.INPUT)
    assert attend_campaign(home, campaign, detach=False, as_json=False) is Exit.BAD_INPUT
    assert "hilt: unknown board" in capsys.readouterr().err
    with Store(database_path(home)) as store:
        assert store.campaign(campaign.uuid) is None


def test_json_of_a_campaign_has_standard_output_for_itself(kept: Kept, capsys: Captured) -> None:
    assert kept.attend(as_json=True) is Exit.OK
    said = capsys.readouterr()
    assert json.loads(said.out)["kind"] == "campaign" and said.out.count("\n") == 1
    assert "AutoTVM's log and report" in said.err


@pytest.mark.parametrize(("checks", "orders", "printed"), [("tvm", 1, True), ("tvm", 4, False), ("compiler", 1, False)])
def test_a_campaign_for_tvm_ends_with_the_schedules_that_tvm_gets(
    kept: Kept, capsys: Captured, checks: str, orders: int, printed: bool
) -> None:
    kept.attend(settings={"checks": checks, "orders": orders})
    assert ("TVM gets" in capsys.readouterr().out) is printed


def test_a_campaign_that_is_left_alone_says_how_to_come_back(kept: Kept, capsys: Captured) -> None:
    name = kept.campaign.uuid[:8]
    with engine(kept.home, kept.campaign.uuid) as told:
        assert kept.attend(RunState.RUNNING, detach=True, wake=True) is Exit.OK
    assert told == [EngineCommand.RESUME] and kept.wrote == []
    assert capsys.readouterr().out == (
        f"campaign {name} goes on by itself; `hilt tui {name}` or `hilt resume {name}` attaches to it\n"
    )


def test_a_layer_without_a_right_schedule_is_an_exit_code(
    home: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign_store, "LATENCIES", ([44_000.0, 5_000.0], [None, None]))
    assert Kept(home, make(home)[0], monkeypatch).attend() is Exit.NOTHING_VERIFIED
    assert "without resnet18.C10: nothing verified was found" in " ".join(capsys.readouterr().out.split())
