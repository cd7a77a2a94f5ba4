"""First light: `hilt tune` on the RTL over SSH, the commands on its records, and a kill of each process on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hilt.engine.client import EngineClient, NoEngineError
from hilt.engine.events import EngineHello, Finished, TrialRecorded
from hilt.engine.run_files import RunFiles
from hilt.store import RunState, Store, Trial, database_path
from hilt.trial import Outcome
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.processes import descendants
from hilt.virtual.supervisor_control import SupervisorControl

WORKLOAD = "conv2d:n=1,ci=32,h=28,w=28,co=32,k=3x3,s=1x1,p=1x1"
ELEMENTS = 32 * 28 * 28
TRIALS = 30
"""Enough trials that a slow test kills its process before the run is over."""
TUNER = ("--tuner", "autotvm", "--tuner-option", "plan_size=6", "--seed", "5")
TUNE = ("tune", WORKLOAD, "--board", "virtual:pynq", *TUNER)
SECONDS = 120.0


def hilt(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command, as its users run it."""
    done = subprocess.run(
        [sys.executable, "-c", "from hilt.cli.main import main; main()", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == code, done.stderr
    return done


def trials_of(home: Path, uuid: str) -> list[Trial]:
    with Store(database_path(home)) as store:
        return store.trials(uuid)


@pytest.fixture(scope="module")
def tuned(shared_home: Path) -> dict[str, Any]:
    """Return the output of `tune --json` for the undisturbed run."""
    done = hilt(*TUNE, "--trials", str(TRIALS), "--batch", "4", "--json")
    assert done.stdout.count("\n") == 1, "one JSON object and nothing else"
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.fixture(scope="module")
def undisturbed(shared_home: Path, tuned: dict[str, Any]) -> list[Trial]:
    return trials_of(shared_home, tuned["run"])


def test_tune_ends_with_a_verified_best(tuned: dict[str, Any], undisturbed: list[Trial]) -> None:
    assert (tuned["workload"], tuned["board"], tuned["state"]) == (WORKLOAD, "virtual:pynq", "finished")
    assert tuned["trials"] == len(undisturbed) == TRIALS
    outcomes = [str(each.outcome) for each in undisturbed]
    assert tuned["outcomes"] == {outcome: outcomes.count(outcome) for outcome in set(outcomes)}
    valid = [each for each in undisturbed if each.outcome is Outcome.OK]
    assert len(valid) >= 4
    for each in valid:
        assert each.verification is not None
        assert (each.verification.compared, each.verification.mismatched) == (ELEMENTS, 0)
        assert each.cycles is not None and each.microseconds == pytest.approx(each.cycles / 100)
    best = min(valid, key=lambda each: (each.microseconds, each.ordinal))
    said = tuned["best"]
    assert (said["knobs"], said["index"]) == (best.knobs, best.index)
    assert (said["cycles"], said["microseconds"], said["verified"]) == (best.cycles, best.microseconds, True)
    assert 5 < said["percent_of_bound"] <= 100


def test_the_commands_agree_about_it(shared_home: Path, tuned: dict[str, Any]) -> None:
    shown = json.loads(hilt("show", tuned["run"][:6], "--json").stdout)
    assert {name: shown[name] for name in tuned} == tuned
    assert shown["isa"] == "A" and shown["output_elements"] == ELEMENTS
    runs = json.loads(hilt("runs", "--json").stdout)["items"]
    assert {name: tuned[name] for name in tuned if name not in ("schema", "kind")} in runs
    (best,) = json.loads(hilt("best", WORKLOAD, "--json").stdout)["items"]
    assert best["best"] == tuned["best"]
    text = hilt("show", tuned["run"]).stdout
    assert f"{tuned['best']['cycles']:,} cycles" in text
    again = hilt("resume", tuned["run"][:8], code=2)
    assert again.stderr == f"hilt: run {tuned['run'][:8]} has finished; `hilt show {tuned['run'][:8]}` shows it\n"


def test_plain_words_at_the_end(shared_home: Path) -> None:
    text = hilt("tune", WORKLOAD, "--tuner", "random", "--trials", "6", "--batch", "3", "--seed", "2").stdout
    assert "6 of 6 trials" in text
    assert f"compared in full with the reference ({ELEMENTS:,} elements each)" in text
    for words in ("cycles = ", " at 100 MHz, ", " GOP/s, ", "% of the roofline bound", "hilt show "):
        assert words in text


def supervisor() -> SupervisorControl:
    control = SupervisorControl.find(BoardDirectory("pynq"))
    assert control is not None
    return control


def daemon_pid() -> int:
    return int(json.loads((BoardDirectory("pynq").home / ".hilt" / "agent.pid").read_text())["pid"])


def kill_worker(engine: int) -> None:
    for pid in descendants(daemon_pid()):
        os.kill(pid, signal.SIGKILL)


def kill_daemon(engine: int) -> None:
    os.kill(daemon_pid(), signal.SIGKILL)


def kill_ssh_server(engine: int) -> None:
    with supervisor() as control:
        control.kill_ssh_server()


def kill_engine(engine: int) -> None:
    os.kill(engine, signal.SIGKILL)


def kill_engine_and_daemon(engine: int) -> None:
    kill_engine(engine)
    kill_daemon(engine)


def kill_supervisor(engine: int) -> None:
    with supervisor() as control:
        os.kill(control.status().supervisor_pid, signal.SIGKILL)


def measured_events(client: EngineClient) -> Iterator[int | Finished]:
    """The engine's process id at each trial that came from the board; the end last."""
    engine = 0
    for event in client.events(SECONDS):
        if isinstance(event, EngineHello):
            engine = event.pid
        elif isinstance(event, Finished):
            yield event
        elif isinstance(event, TrialRecorded) and event.trial.outcome is not Outcome.REJECTED:
            yield engine


def go_on(home: Path, uuid: str, kills: list[Callable[[int], None]]) -> None:
    """Follow the run, kill one process after a measured trial, and resume the run whenever its engine is gone."""
    while True:
        try:
            with EngineClient.attach(home, uuid) as client:
                for seen in measured_events(client):
                    if isinstance(seen, Finished):
                        assert (seen.state, seen.detail) == (RunState.FINISHED, "")
                        return
                    if kills:
                        kills.pop(0)(seen)
        except NoEngineError:
            if RunFiles(home, uuid).wait_until_free(SECONDS):
                with Store(database_path(home)) as store:
                    if store.run(uuid).state is RunState.FINISHED:
                        return
        hilt("resume", uuid, "--detach")


@pytest.mark.parametrize(
    "kills",
    [
        [kill_worker, kill_daemon, kill_ssh_server, kill_engine],
        [kill_engine_and_daemon, kill_supervisor],
    ],
    ids=["worker_daemon_ssh_engine", "engine_with_daemon_then_supervisor"],
)
def test_any_kill_leaves_the_same_records(
    shared_home: Path, undisturbed: list[Trial], kills: list[Callable[[int], None]]
) -> None:
    hilt(*TUNE, "--trials", str(TRIALS), "--batch", "4", "--detach")
    with Store(database_path(shared_home)) as store:
        uuid = store.run("last").uuid
    left = list(kills)
    go_on(shared_home, uuid, left)
    assert not left, "the run was over before all was killed"
    assert trials_of(shared_home, uuid) == undisturbed
