"""Following a run: the lines shown, and Ctrl-C.

The first Ctrl-C stops the run, and the second ends the wait for that.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hilt.cli.exit_codes import Exit
from hilt.cli.following import Ending, exit_after, follow, name_of, wake
from hilt.cli.progress import live_campaign_view, live_run_view, run_view
from hilt.engine.client import EngineClient
from hilt.engine.events import (
    BoardChanged,
    EngineCommand,
    EngineHello,
    Event,
    FailureCause,
    Finished,
    Logged,
    NetworkUpdated,
    RunProgress,
    StateChanged,
)
from hilt.engine.run_files import RunFiles
from hilt.engine.server import EngineServer
from hilt.store import Campaign, Run, RunState, Store, database_path
from tests.unit.engine.test_client import serving
from tests.unit.engine.test_process import Gate, at_root, gate, start, to_the_end, wait
from tests.unit.store.examples import run as example_run

__all__ = ["at_root", "gate"]  # fixtures

EVENTS = [
    StateChanged(RunState.RUNNING, "opening board virtual:pynq"),
    BoardChanged("virtual:pynq", "connecting", "preparing its bitstream", 0.0),
    RunProgress(0, 40, {}, 0, 0.0),
    RunProgress(1, 40, {"ok": 1}, 1, 1.0, 1.0, 39.0, 0, 7, 1000, 10.0, 5.0, 50.0),
    RunProgress(2, 40, {"ok": 1, "timeout": 1}, 1, 2.0, 1.0, 38.0, 0, 7, 1000, 10.0, 5.0, 50.0),
    BoardChanged("virtual:pynq", "running", "2 trials", 0.0),
    Logged("warning", "board virtual:pynq was lost with trial 3 [link gone]; the trial is tried again", 0.0),
]


def test_plain_lines_say_each_thing_once() -> None:
    console = Console(file=io.StringIO(), width=60)
    with run_view(example_run("a" * 32), console) as view:
        for event in EVENTS:
            view.show(event)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "resnet18.C5 on virtual:pynq, tuner random, seed 1, run aaaaaaaa",
        "running: opening board virtual:pynq",
        "board virtual:pynq connecting: preparing its bitstream",
        "0/40 trials, 0 valid; best none verified yet",
        "1/40 trials, 1 valid (100%), 1.0 trials/s, 39 s left; "
        "best 10.0 µs, 5.0 GOP/s, 50.0% of the roofline bound (trial 0)",
        "warning: board virtual:pynq was lost with trial 3 [link gone]; the trial is tried again",
    ]


def test_trials_that_a_dataset_answers_are_not_said_to_be_invalid() -> None:
    console = Console(file=io.StringIO(), width=100)
    with run_view(replace(example_run("a" * 32), board="dataset:some"), console) as view:
        view.show(RunProgress(4, 40, {"ok": 3, "rejected": 1}, 0, 1.0))
    (line,) = console.file.getvalue().splitlines()[1:]  # type: ignore[attr-defined]
    assert line == "4/40 trials, 3 valid on record (75%); best on record at the end"


def test_the_live_panel_fits_a_terminal_of_80_columns() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    view = live_run_view(example_run("a" * 32), console)
    for event in EVENTS[:-1]:
        view.show(event)
    console.print(view._render())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert all(len(line) <= 80 for line in lines)
    assert [line.split()[0] for line in lines[2:]] == ["progress", "best", "outcomes", "board", "run"]
    text = "\n".join(lines)
    for words in ("2/40 trials, 1 valid (50%)", "38 s left", "best", "10.0 µs", "ok 1, timeout 1", "running: 2 trials"):
        assert words in text


@pytest.mark.parametrize("name", ["resnet18", "a-model-of-a-long-name" * 4])
def test_no_label_and_no_id_of_a_campaigns_live_panel_is_cut_at_80_columns(name: str) -> None:
    settings = {"board": "virtual:pynq,virtual:pynq_paced", "tuner": "hilt"}
    campaign = Campaign("c" * 32, name, {}, settings, 1.0, {"trials": 60})
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    view = live_campaign_view(campaign, console)
    view.show(NetworkUpdated("resnet18.C8", 4574.7, 1_858_960.0, 1_109_780.0, 7, 10, 1.0))
    view.show(BoardChanged("virtual:pynq", "running", "a long detail " * 9, 0.0))
    console.print(view._render())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert all(len(line) <= 80 for line in lines)
    assert [line.split()[0] for line in lines] == ["campaign", "progress", "network", "layer", "now", "board"]
    assert "cccccccc" in lines[0]
    assert "about 1,858.96 ms (7 of 10 layers measured" in lines[2] and "resnet18.C8 4,574.7 µs" in lines[3]


def test_a_long_workload_does_not_cut_the_id_of_a_run() -> None:
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    workload = "conv2d:n=1,ci=256,h=14,w=14,co=256,k=3x3,s=1x1,p=1x1,shift=8,clip=0:127"
    console.print(live_run_view(replace(example_run("a" * 32), workload=workload), console)._render())
    assert "run aaaaaaaa" in console.file.getvalue().splitlines()[0]  # type: ignore[attr-defined]


def attached(home: Path, run: Run, *options: str) -> subprocess.Popen[str]:
    """`hilt resume` in a process of its own, once it shows the run."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from hilt.cli.main import main; main()", "resume", run.uuid, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"HILT_HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )
    read_until(process, f"run {run.uuid[:8]}", bool(options))
    return process


def read_until(process: subprocess.Popen[str], words: str, errors: bool = False) -> None:
    stream = process.stderr if errors else process.stdout
    assert stream is not None
    for line in stream:
        if words in line:
            return
    raise AssertionError(f"{words!r} was not said; {process.communicate(timeout=60)}")


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_stops_the_run_and_says_the_best_so_far(tmp_path: Path, gate: Gate, as_json: bool) -> None:
    gate.shut(after=6)
    run = start(tmp_path)
    process = attached(tmp_path, run, *(["--json"] if as_json else []))
    read_until(process, "/40 trials", as_json)
    process.send_signal(signal.SIGINT)
    read_until(process, "stopping after the trials on the board", as_json)
    gate.open()
    out, err = process.communicate(timeout=60)
    stopped, trials = to_the_end(tmp_path, run)
    assert (process.returncode, stopped.state) == (130, RunState.STOPPED), err
    if as_json:
        said = json.loads(out)
        assert out.count("\n") == 1
        assert (said["run"], said["state"], said["trials"]) == (run.uuid, str(stopped.state), len(trials))
    else:
        assert f"{len(trials)} of 40 trials" in out and "best" in out
        assert f"`hilt show {run.uuid[:8]}` shows it" in out


@pytest.mark.slow
def test_a_second_ctrl_c_lets_go_of_the_run(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    run = start(tmp_path)
    process = attached(tmp_path, run)
    read_until(process, "/40 trials")
    with EngineClient.attach(tmp_path, run.uuid) as client:  # now: a stop ends an engine within seconds
        process.send_signal(signal.SIGINT)
        read_until(process, "stopping")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert f"left run {run.uuid[:8]}, which stops when the board is done" in out
        gate.open()
        assert isinstance(list(client.events(60))[-1], Finished)


@pytest.mark.parametrize(
    ("finished", "pressed", "verified", "code"),
    [
        (Finished(RunState.FINISHED), False, True, Exit.OK),
        (Finished(RunState.FINISHED), False, False, Exit.NOTHING_VERIFIED),
        (Finished(RunState.FINISHED), True, True, Exit.INTERRUPTED),
        (Finished(RunState.STOPPED), False, True, Exit.INTERRUPTED),  # by another terminal, or a signal to its engine
        (Finished(RunState.FAILED, "cable", FailureCause.BOARD), True, True, Exit.BOARD),
    ],
)
def test_exit_codes(finished: Finished, pressed: bool, verified: bool, code: Exit) -> None:
    assert exit_after(example_run("a" * 32), Ending(finished, pressed), verified) is code


@pytest.mark.slow
def test_closing_the_command_line_stops_nothing(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    run = start(tmp_path)
    process = attached(tmp_path, run)
    process.kill()
    process.communicate(timeout=60)
    with EngineClient.attach(tmp_path, run.uuid) as client:
        gate.open()
        wait(client, lambda event: isinstance(event, Finished) and event.state is RunState.FINISHED)
    finished, trials = to_the_end(tmp_path, run)
    assert (finished.state, len(trials)) == (RunState.FINISHED, 40)


@pytest.mark.slow
def test_resumed_in_the_background_a_paused_run_goes_on(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    run = start(tmp_path)
    with EngineClient.attach(tmp_path, run.uuid) as client:
        client.send(EngineCommand.PAUSE)
        wait(client, lambda event: isinstance(event, StateChanged) and "pausing" in event.detail)
        gate.open()
        wait(client, lambda event: isinstance(event, StateChanged) and event.state is RunState.PAUSED)
        environment = {
            "HILT_HOME": str(tmp_path),
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        command = [sys.executable, "-c", "from hilt.cli.main import main; main()", "resume", run.uuid, "--detach"]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
        assert "goes on by itself" in said
        wait(client, lambda event: isinstance(event, Finished) and event.state is RunState.FINISHED)


class Shown:
    """A view that keeps its events, and acts at the first event of a kind."""

    def __init__(self, act: Callable[[], None] = lambda: None, at: type[Event] = Finished) -> None:
        self.events: list[Event] = []
        self.notes: list[str] = []
        self._act, self._at = act, at

    def __enter__(self) -> Shown:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, self._at):
            self._act()
            self._act = lambda: None

    def note(self, text: str) -> None:
        self.notes.append(text)


FINISHED = Finished(RunState.STOPPED, "by hand")


def stored(home: Path, state: RunState, detail: str = "", failure: str = "") -> Run:
    record = example_run("e" * 32)
    with Store(database_path(home)) as store:
        store.create_run(record)
        store.set_state(record.uuid, state, detail, failure)
        return store.run(record.uuid)


@pytest.mark.parametrize("woken", [False, True])
def test_a_run_is_shown_to_its_last_event_and_woken_where_that_is_asked(tmp_path: Path, woken: bool) -> None:
    obeyed: list[EngineCommand] = []
    record = stored(tmp_path, RunState.RUNNING)
    server = EngineServer(RunFiles(tmp_path, record.uuid), EngineHello(record.uuid, os.getpid()), obeyed.append)
    closing = threading.Thread(target=server.close)
    server.publish(FINISHED)
    view = Shown(closing.start)
    ending = follow(tmp_path, record, view, wake=woken)
    closing.join()
    assert ending == Ending(FINISHED, False) and view.events[-1] == FINISHED and view.notes == []
    assert obeyed == [EngineCommand.RESUME] * woken


def test_the_first_ctrl_c_asks_the_engine_to_stop_and_the_second_lets_go(tmp_path: Path) -> None:
    obeyed: list[EngineCommand] = []
    record = stored(tmp_path, RunState.RUNNING)
    before = signal.getsignal(signal.SIGINT)
    with serving(tmp_path, obeyed) as server:

        def press() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            server.publish(StateChanged(RunState.STOPPED, "stopping"))

        view = Shown(press, EngineHello)
        last = Shown(lambda: os.kill(os.getpid(), signal.SIGINT), StateChanged)
        show = view.show
        view.show = lambda event: (show(event), last.show(event))[0]  # type: ignore[method-assign]
        assert follow(tmp_path, record, view) == Ending(None, True)
    assert obeyed == [EngineCommand.STOP]
    assert len(view.notes) == 1 and view.notes[0].startswith("Ctrl-C again does not wait for the board")
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize(
    ("state", "detail", "failure", "wanted"),
    [
        (RunState.FINISHED, "", "", Finished(RunState.FINISHED)),
        (RunState.STOPPED, "by hand", "", Finished(RunState.STOPPED, "by hand")),
        (RunState.FAILED, "cable", "board", Finished(RunState.FAILED, "cable", FailureCause.BOARD)),
        (
            *(RunState.RUNNING, "", ""),
            Finished(
                RunState.FAILED,
                "the engine ended without a word; `hilt resume eeeeeeee` goes on from the record",
                FailureCause.INTERNAL,
            ),
        ),
    ],
)
def test_a_run_without_an_engine_ends_as_it_is_on_record(
    tmp_path: Path, state: RunState, detail: str, failure: str, wanted: Finished
) -> None:
    ending = follow(tmp_path, stored(tmp_path, state, detail, failure), Shown())
    assert not ending.interrupted and ending.finished is not None
    assert replace(ending.finished, at=0.0) == replace(wanted, at=0.0)
    wake(tmp_path, "e" * 32)  # nobody to wake


def test_a_paused_run_is_woken_alone(tmp_path: Path) -> None:
    obeyed: list[EngineCommand] = []
    with serving(tmp_path, obeyed):
        wake(tmp_path, "e" * 32)
    assert obeyed == [EngineCommand.RESUME]


def test_runs_and_campaigns_are_named_by_their_kind() -> None:
    campaign = Campaign("c" * 32, "net", {}, {}, 1.0, {})
    assert (name_of(example_run("a" * 32)), name_of(campaign)) == ("run aaaaaaaa", "campaign cccccccc")


def test_a_failure_is_said_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Finished(RunState.FAILED, "the cable", FailureCause.BOARD)
    assert exit_after(example_run("a" * 32), Ending(failed, False), True) is Exit.BOARD
    assert capsys.readouterr().err == "hilt: run aaaaaaaa failed: the cable\n"
