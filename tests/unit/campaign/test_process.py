"""The campaign as a process: its whole budget, killed at any instant and resumed, paused, stopped, a layer skipped."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hilt.campaign import launch
from hilt.campaign.allocation import MINIMUM_TRIALS
from hilt.campaign.budget import Budget
from hilt.campaign.outputs import write_autotvm_log
from hilt.engine.board_health import MOST_IN_A_ROW
from hilt.engine.campaign_results import CampaignResult, load_result
from hilt.engine.client import EngineClient, NoEngineError
from hilt.engine.errors import RunBusyError, RunOverError, SettingsError
from hilt.engine.event_log import read_event_log
from hilt.engine.events import BoardChanged, EngineCommand, EngineHello, Finished, RunProgress, StateChanged
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.report.schedule_file import read_schedule
from hilt.schedule.onnx_model import Layer, Network
from hilt.store import RunState, Slice, Store, Trial, UnknownRunError, database_path
from hilt.store.campaigns import end_layer, slices
from hilt.store.labels import labels_of
from tests.unit.campaign.campaign_engine import FILES, HANGS
from tests.unit.cli.network_engine import NetworkBoards
from tests.unit.engine.test_process import Gate, at_root, gate, wait

pytestmark = pytest.mark.slow  # starts processes: engines or compilers

__all__ = ["at_root", "gate"]  # fixtures

ENGINE = (sys.executable, "-m", "tests.unit.campaign.campaign_engine")
SECONDS = 60.0
STOP_SECONDS = 10.0
SHAPES = (
    "ci=32,h=14,w=14,co=32,k=3x3,s=1x1,p=1x1",
    "ci=32,h=7,w=7,co=64,k=1x1,s=1x1,p=0x0",
    "ci=16,h=8,w=8,co=16,k=3x3,s=1x1,p=1x1",
)
NETWORK = Network(
    "three",
    tuple(
        Layer(f"conv2d:n=1,{shape}", nodes=[f"layer{place}.{copy}" for copy in range(count)])
        for place, (shape, count) in enumerate(zip(SHAPES, (1, 4, 2), strict=True))
    ),
    {"Relu": 7},
)
TRIALS = 40
BUDGET = Budget(trials=TRIALS)


@dataclass(frozen=True)
class Outcome:
    """The records of a campaign in the store."""

    state: RunState
    slices: list[Slice]
    trials: dict[str, list[Trial]]
    result: CampaignResult


def start(home: Path, budget: Budget = BUDGET, **changes: object) -> str:
    values = {"workload": "three", "board": "table:plain", "tuner": "random", "trials": 1, "seed": 3, "batch": 3}
    settings = RunSpec(**values | changes)  # type: ignore[arg-type]
    return launch.start(NETWORK, settings, budget, home, boards=NetworkBoards(), engine=ENGINE).uuid


def resume(home: Path, uuid: str, board: str | None = None) -> None:
    launch.resume(uuid, home, board=board, boards=NetworkBoards(), engine=ENGINE)


def outcome(home: Path, uuid: str) -> Outcome:
    with Store(database_path(home)) as store:
        campaign = store.campaign(uuid)
        assert campaign is not None
        result = load_result(store, campaign)
        trials = {each.layer.workload: store.trials(each.run.uuid) for each in result.layers if each.run}
        return Outcome(campaign.state, slices(store, uuid), trials, result)


def to_the_end(home: Path, uuid: str) -> Outcome:
    """Wait until the campaign's process has ended and return the outcome."""
    try:
        with EngineClient.attach(home, uuid) as client:
            for event in client.events(SECONDS):
                if isinstance(event, Finished):
                    break
    except NoEngineError:
        pass
    assert RunFiles(home, uuid).wait_until_free(SECONDS)
    return outcome(home, uuid)


def kill_after(home: Path, uuid: str, trials: int, gate: Gate | None = None) -> None:
    """Kill the engine's process once so many trials are recorded.

    Open the gate, if one is given, after attaching.
    """
    with EngineClient.attach(home, uuid) as client:
        if gate is not None:
            gate.open()
        hello = next(client.events(SECONDS))
        assert isinstance(hello, EngineHello) and hello.run == uuid
        for event in client.events(SECONDS):
            if isinstance(event, RunProgress) and event.trials >= trials:
                break
        os.kill(hello.pid, signal.SIGKILL)
    assert RunFiles(home, uuid).wait_until_free(SECONDS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Outcome]:
    home = tmp_path_factory.mktemp("quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[3])
        patch.setenv(FILES, "1")
        uuid = start(home)
        return home, uuid, to_the_end(home, uuid)


def test_a_stop_does_not_wait_for_a_tuner_that_hangs_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setenv(HANGS, str(fifo))
    uuid = start(tmp_path)
    assert fifo.read_text(encoding="ascii") == "begun\n"
    began = time.monotonic()
    with EngineClient.attach(tmp_path, uuid) as client:
        client.send(EngineCommand.STOP)
        assert RunFiles(tmp_path, uuid).wait_until_free(SECONDS)
    assert time.monotonic() - began < STOP_SECONDS
    assert outcome(tmp_path, uuid).state is RunState.STOPPED
    monkeypatch.delenv(HANGS)
    resume(tmp_path, uuid)
    assert sum(map(len, to_the_end(tmp_path, uuid).trials.values())) == TRIALS


def test_the_budget_is_spent_and_every_layer_served(undisturbed: tuple[Path, str, Outcome]) -> None:
    _, _, done = undisturbed
    assert done.state is RunState.FINISHED
    assert sum(map(len, done.trials.values())) == TRIALS == done.result.trials
    for each in done.result.layers:
        assert each.run is not None and each.run.state is RunState.FINISHED
        trials = done.trials[each.layer.workload]
        assert each.run.budget == len(trials) >= MINIMUM_TRIALS
        assert each.best is not None and each.best.verified and each.fallback is not None
        assert each.fallback == next(trial for trial in trials if trial.verified)
        assert each.fallback.index <= 7, "one of the first that compile"
        assert each.gain == each.fallback.microseconds / each.best.microseconds >= 1  # type: ignore[operator]
    best, fallback = (
        sum(each.layer.count * getattr(each, which).microseconds for each in done.result.layers)
        for which in ("best", "fallback")
    )
    assert (done.result.microseconds, done.result.fallback_microseconds) == pytest.approx((best, fallback))
    assert done.result.gain == pytest.approx(fallback / best)
    decided = [each for each in done.slices if each.expected_gain > 0]
    assert decided and len({each.workload for each in decided}) > 1
    assert [each.ordinal for each in done.slices] == list(range(len(done.slices)))


def test_the_same_again(tmp_path: Path, undisturbed: tuple[Path, str, Outcome]) -> None:
    again = to_the_end(tmp_path, start(tmp_path))
    assert (again.slices, again.trials) == (undisturbed[2].slices, undisturbed[2].trials)


def test_killed_at_any_instant_and_resumed(tmp_path: Path, gate: Gate, undisturbed: tuple[Path, str, Outcome]) -> None:
    instants = random.Random(5).sample(range(1, 30), 2)
    gate.shut()
    uuid = start(tmp_path)
    for instant in sorted(instants):
        kill_after(tmp_path, uuid, instant, gate)
        seen = outcome(tmp_path, uuid)
        if seen.state is RunState.FINISHED:
            break
        gate.shut()
        resume(tmp_path, uuid)
    gate.open()
    done = to_the_end(tmp_path, uuid)
    assert done.state is RunState.FINISHED
    assert done.slices == undisturbed[2].slices
    assert done.trials == undisturbed[2].trials


def test_a_campaign_begun_anew_takes_over_the_results_that_hold(
    tmp_path: Path, gate: Gate, undisturbed: tuple[Path, str, Outcome]
) -> None:
    gate.shut(after=8)
    old = start(tmp_path, board="table:one~twin")
    kill_after(tmp_path, old, 8)
    gate.open()
    before = outcome(tmp_path, old)
    new = launch.begin_anew(old, tmp_path, board="table:two~twin", boards=NetworkBoards(), engine=ENGINE).uuid
    done = to_the_end(tmp_path, new)
    assert (done.state, done.slices, done.trials) == (RunState.FINISHED, undisturbed[2].slices, undisturbed[2].trials)
    held = 0
    for workload, trials in before.trials.items():
        again = {trial.index: trial for trial in done.trials[workload]}
        for trial in trials:
            assert (again[trial.index].recorded_at == trial.recorded_at) is trial.verified
            held += trial.verified
    with Store(database_path(tmp_path)) as store:
        assert labels_of(store, new).note == f"began anew from {old[:8]}, with its {held} verified results"
    assert held and outcome(tmp_path, old) == before
    other = launch.begin_anew(new, tmp_path, board="table:two~twin", boards=NetworkBoards(), engine=ENGINE).uuid
    measured = {trial.recorded_at for trials in done.trials.values() for trial in trials}
    finished = to_the_end(tmp_path, other)
    assert finished.trials == done.trials, "a finished campaign is measured again"
    assert measured.isdisjoint(trial.recorded_at for trials in finished.trials.values() for trial in trials)


def test_recorded_trials_count_when_a_run_resumes(tmp_path: Path, gate: Gate) -> None:
    gate.shut(after=8)
    uuid = start(tmp_path)
    kill_after(tmp_path, uuid, 8)
    before = outcome(tmp_path, uuid).result
    gate.shut()  # the board answers nothing more
    resume(tmp_path, uuid)
    least = (before.trials, sum(each.valid for each in before.layers))
    with EngineClient.attach(tmp_path, uuid) as client:
        wait(client, lambda event: isinstance(event, RunProgress) and (event.trials, event.valid) >= least)
        client.send(EngineCommand.STOP)
        wait(client, lambda event: isinstance(event, StateChanged) and "stopping" in event.detail)
        gate.open()
    to_the_end(tmp_path, uuid)


def test_pause_resume_stop_and_resume(tmp_path: Path, gate: Gate, undisturbed: tuple[Path, str, Outcome]) -> None:
    gate.shut()
    uuid = start(tmp_path)
    layer = outcome(tmp_path, uuid).result.layers[1].run
    assert layer is not None
    with EngineClient.attach(tmp_path, uuid) as client:
        client.send(EngineCommand.PAUSE)
        wait(client, lambda event: isinstance(event, StateChanged) and "pausing" in event.detail)
        gate.open()
        wait(client, lambda event: isinstance(event, StateChanged) and event.state is RunState.PAUSED)
        assert outcome(tmp_path, uuid).state is RunState.PAUSED
        gate.shut()
        with EngineClient.attach(tmp_path, layer.uuid) as of_layer:  # to a layer's run it is the campaign's too
            of_layer.send(EngineCommand.RESUME)
            wait(client, lambda event: isinstance(event, StateChanged) and event.state is RunState.RUNNING)
        client.send(EngineCommand.STOP)
        wait(client, lambda event: isinstance(event, StateChanged) and "stopping" in event.detail)
        gate.open()
        wait(client, lambda event: isinstance(event, Finished) and event.state is RunState.STOPPED)
    stopped = to_the_end(tmp_path, uuid)
    assert stopped.state is RunState.STOPPED and stopped.result.trials < TRIALS
    said = read_event_log(RunFiles(tmp_path, layer.uuid).event_log_path)
    assert sum(isinstance(event, StateChanged | Finished) and event.state is RunState.STOPPED for event in said) == 1
    resume(tmp_path, uuid)
    done = to_the_end(tmp_path, uuid)
    assert (done.slices, done.trials) == (undisturbed[2].slices, undisturbed[2].trials)
    with pytest.raises(RunOverError, match="has finished"):
        resume(tmp_path, uuid)


def test_a_layers_clients_hear_of_its_board(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    uuid = start(tmp_path)
    layer = outcome(tmp_path, uuid).result.layers[1].run
    assert layer is not None
    with EngineClient.attach(tmp_path, layer.uuid) as of_layer:
        wait(of_layer, lambda event: isinstance(event, BoardChanged) and event.board == "table:plain")
        gate.open()
        wait(of_layer, lambda event: isinstance(event, Finished))
    to_the_end(tmp_path, uuid)


def test_a_layer_is_skipped_for_good(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    uuid = start(tmp_path)
    skipped = outcome(tmp_path, uuid).result.layers[2].run
    assert skipped is not None
    with EngineClient.attach(tmp_path, uuid) as client, EngineClient.attach(tmp_path, skipped.uuid) as of_layer:
        of_layer.send(EngineCommand.STOP)
        wait(client, lambda event: isinstance(event, StateChanged) and "skipped" in event.detail)
        client.send(EngineCommand.STOP)
        wait(client, lambda event: isinstance(event, StateChanged) and "stopping" in event.detail)
        gate.open()
    assert to_the_end(tmp_path, uuid).state is RunState.STOPPED
    resume(tmp_path, uuid)
    done = to_the_end(tmp_path, uuid)
    assert done.state is RunState.FINISHED
    of_skipped = done.result.layers[2]
    assert of_skipped.trials == 0 and of_skipped.run is not None and of_skipped.run.detail == "skipped"
    assert done.result.trials == TRIALS, "the others get its trials"
    assert done.result.unsolved == (of_skipped,)


def test_a_layer_that_is_skipped_late_keeps_its_trials_when_the_campaign_resumes(tmp_path: Path, gate: Gate) -> None:
    """Its fallback and its slices are asked for again as they were, and count against the budget as they did."""
    gate.shut(after=16)  # 23 trials, with those that are rejected
    uuid = start(tmp_path)
    kill_after(tmp_path, uuid, 22)
    gate.open()
    before = outcome(tmp_path, uuid)
    skipped = before.result.layers[1].run
    assert skipped is not None
    with Store(database_path(tmp_path)) as store:
        end_layer(store, skipped.uuid, "skipped")  # as its process does when it is told to
    resume(tmp_path, uuid)
    done = to_the_end(tmp_path, uuid)
    assert done.state is RunState.FINISHED and done.result.trials == TRIALS
    asked = 1 + sum(each.trials for each in before.slices if each.workload == skipped.workload)
    assert [trial.ordinal for trial in done.trials[skipped.workload]] == list(range(asked))
    assert done.slices[: len(before.slices)] == before.slices
    assert not any(each.workload == skipped.workload for each in done.slices[len(before.slices) :])


def test_layers_that_are_skipped_with_trials_on_the_board_finish_with_their_results(tmp_path: Path, gate: Gate) -> None:
    gate.shut(after=3 * MINIMUM_TRIALS)
    uuid = start(tmp_path)
    with EngineClient.attach(tmp_path, uuid) as client:
        wait(client, lambda event: isinstance(event, RunProgress) and event.trials >= 3 * MINIMUM_TRIALS)
        for each in outcome(tmp_path, uuid).result.layers:
            assert each.run is not None
            with EngineClient.attach(tmp_path, each.run.uuid) as of_layer:
                of_layer.send(EngineCommand.STOP)
                wait(client, lambda event: isinstance(event, StateChanged) and "skipped" in event.detail)
        client.send(EngineCommand.PAUSE)
        wait(client, lambda event: isinstance(event, StateChanged) and "pausing" in event.detail)
        gate.open()
        # Where it has trials left for the board it is paused now; else it ends.
        wait(client, lambda event: isinstance(event, Finished | StateChanged) and event.state is not RunState.RUNNING)
        with suppress(NoEngineError):
            client.send(EngineCommand.RESUME)
    done = to_the_end(tmp_path, uuid)
    assert done.state is RunState.FINISHED and done.result.trials < TRIALS
    for each in done.result.layers:
        assert each.run is not None
        assert (each.run.state, each.run.detail, each.run.budget) == (RunState.FINISHED, "skipped", each.trials)


def test_a_budget_of_time_ends_and_gives_each_its_minimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILES, "1")
    uuid = start(tmp_path, Budget(seconds=0.001))
    done = to_the_end(tmp_path, uuid)
    assert done.state is RunState.FINISHED
    assert [each.trials for each in done.result.layers] == [MINIMUM_TRIALS] * 3
    with Store(database_path(tmp_path)) as store:
        campaign = store.campaign(uuid)
        assert campaign is not None and campaign.spent_seconds > 0.001
    assert (RunFiles(tmp_path, uuid).directory / "report.html").stat().st_size > 10_000


def test_files_at_the_end(undisturbed: tuple[Path, str, Outcome], tmp_path: Path) -> None:
    home, uuid, done = undisturbed
    directory = RunFiles(home, uuid).directory
    schedule = json.loads((directory / "schedule.json").read_text())
    assert (schedule["format"], schedule["version"], schedule["network"]) == ("hilt-schedule", 2, "three")
    assert schedule["total"]["microseconds"] == done.result.microseconds and schedule["total"]["complete"]
    knobs = list(read_schedule(directory / "schedule.json").values())
    assert knobs == [dict(layer.best.knobs) for layer in done.result.layers if layer.best is not None]
    for written, found in zip(schedule["layers"], done.result.layers, strict=True):
        assert found.best is not None
        assert written["schedule"]["knobs"] == found.best.knobs and written["schedule"]["verified"]
        assert written["nodes"] == found.layer.nodes and written["count"] == len(written["nodes"])
        assert written["gain"] == found.gain
    assert "three on table:plain" in (directory / "report.html").read_text()
    assert not (directory / "autotvm.log").exists()  # TVM has no target for a table
    with Store(database_path(home)) as store:
        write_autotvm_log(store, done.result, tmp_path / "vta.log", "pynq")
    lines = [json.loads(line) for line in (tmp_path / "vta.log").read_text().splitlines()]
    assert lines and all(line["input"][1] == "conv2d_packed.vta" for line in lines)


def test_impossible_requests_are_refused(tmp_path: Path, undisturbed: tuple[Path, str, Outcome], gate: Gate) -> None:
    with pytest.raises(SettingsError, match="11 trials is too small.* 3 layers gets at least 4, which is 12"):
        start(tmp_path, Budget(trials=11))
    assert not database_path(tmp_path).exists()
    with pytest.raises(UnknownRunError, match="no campaign 'beef'"):
        resume(tmp_path, "beef")
    gate.shut()
    uuid = start(tmp_path)
    layer = outcome(tmp_path, uuid).result.layers[0].run
    assert layer is not None
    with pytest.raises(RunBusyError), RunFiles(tmp_path, layer.uuid).locked():
        pytest.fail("a layer's run belongs to its campaign")
    gate.open()
    to_the_end(tmp_path, uuid)


def test_a_board_that_is_away_fails_it(tmp_path: Path, undisturbed: tuple[Path, str, Outcome]) -> None:
    uuid = start(tmp_path, board="table:plain@away")
    failed = to_the_end(tmp_path, uuid)
    assert failed.state is RunState.FAILED and failed.result.trials == 0
    resume(tmp_path, uuid, board="table:plain")
    assert to_the_end(tmp_path, uuid).trials == undisturbed[2].trials


def test_a_campaign_whose_board_fails_for_every_trial_stops_of_itself(tmp_path: Path) -> None:
    uuid = start(tmp_path, board="table:plain@shaky")
    done = to_the_end(tmp_path, uuid)
    assert done.state is RunState.FAILED
    assert MOST_IN_A_ROW <= sum(map(len, done.trials.values())) < TRIALS
    with Store(database_path(tmp_path)) as store:
        campaign = store.campaign(uuid)
    assert campaign is not None
    assert campaign.detail.startswith("STOPPED: ")
    assert campaign.detail.endswith(f"then `hilt resume {uuid[:8]}`")
    resume(tmp_path, uuid, board="table:plain")
    assert to_the_end(tmp_path, uuid).state is RunState.FINISHED


def test_a_campaign_of_runs_in_a_row_goes_on(tmp_path: Path) -> None:
    """A campaign of runs in a row goes on.

    hilt with schema 7 left one layer done and the other after 6 of 12 trials. The expected indices are from that
    version.
    """
    with closing(sqlite3.connect(database_path(tmp_path))) as connection:
        connection.executescript((Path(__file__).parents[1] / "store" / "schema_7.sql").read_text())
    with Store(database_path(tmp_path)) as store:
        (campaign,) = store.campaigns()
    before = outcome(tmp_path, campaign.uuid)
    assert before.state is RunState.STOPPED and before.result.trials == 18
    resume(tmp_path, campaign.uuid)
    done = to_the_end(tmp_path, campaign.uuid)
    assert done.state is RunState.FINISHED and done.result.trials == 24 and not done.result.unsolved
    first, second = (done.trials[layer.layer.workload] for layer in done.result.layers)
    assert len(first) == 12 == len(second)
    assert [trial.index for trial in second] == [185, 241, 225, 130, 240, 249, 248, 20, 116, 155, 72, 96]
    assert [layer.fallback for layer in done.result.layers] == [None, None], "none was searched"
