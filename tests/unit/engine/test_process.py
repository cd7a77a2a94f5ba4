"""The engine as a process: started, attached to, paused, stopped, killed at any instant, resumed, refused."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from hilt.engine import launch
from hilt.engine import run_files as files_module
from hilt.engine.client import EngineClient, NoEngineError
from hilt.engine.errors import EngineStartError, RunBusyError, RunMismatchError, RunOverError
from hilt.engine.events import (
    EngineCommand,
    EngineHello,
    Event,
    FailureCause,
    Finished,
    Logged,
    RunProgress,
    StateChanged,
    TrialRecorded,
)
from hilt.engine.run_files import RunFiles
from hilt.engine.run_spec import RunSpec
from hilt.engine.server import MAX_UNSENT_BYTES, EngineServer
from hilt.store import Run, RunState, Store, Trial, database_path
from hilt.store.labels import labels_of
from hilt.trial import Outcome

from .table import FREE, GATE, WORKLOAD, TableBoards

pytestmark = pytest.mark.slow  # starts processes: engines or compilers

ROOT = Path(__file__).parents[3]
ENGINE = (sys.executable, "-m", "tests.unit.engine.table_engine")
SECONDS = 60.0


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where `tests` can be imported by the engine's process


def settings(**changes: object) -> RunSpec:
    values = {"workload": WORKLOAD, "board": "table:plain", "tuner": "random", "trials": 40, "seed": 3, "batch": 5}
    return RunSpec(**values | changes)  # type: ignore[arg-type]


def start(home: Path, **changes: object) -> Run:
    return launch.start(settings(**changes), home, boards=TableBoards(), engine=ENGINE)


def resume(home: Path, uuid: str, board: str | None = None) -> Run:
    return launch.resume(uuid, home, board=board, boards=TableBoards(), engine=ENGINE)


def to_the_end(home: Path, run: Run) -> tuple[Run, list[Trial]]:
    """Return the run and its trials after its engine has let go of it; the engine may be over or dead already."""
    with suppress(NoEngineError), EngineClient.attach(home, run.uuid) as client:
        for _ in client.events(SECONDS):
            pass
    with RunFiles(home, run.uuid)._open_lock() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    with Store(database_path(home)) as store:
        return store.run(run.uuid), store.trials(run.uuid)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    home = tmp_path_factory.mktemp("quiet")
    directory = Path.cwd()
    os.chdir(ROOT)
    try:
        run, trials = to_the_end(home, start(home))
    finally:
        os.chdir(directory)
    assert run.state is RunState.FINISHED
    assert len(trials) == 40
    return trials


class Gate:
    """Holds up the boards of the engines that are started while it exists; open at first. Who starts an engine and is
    to find it at work shuts it before: an engine may be done before its starter goes on."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = path.open("w")
        self._monkeypatch = monkeypatch
        monkeypatch.setenv(GATE, str(path))

    def shut(self, after: int = 0) -> None:
        """`after`: so many programs of each engine that is started from now on run all the same."""
        self._monkeypatch.setenv(FREE, str(after))
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(tmp_path / "gate", monkeypatch)


def test_a_client_sees_the_whole_run(tmp_path: Path, gate: Gate, undisturbed: list[Trial]) -> None:
    gate.shut()
    run = start(tmp_path, trials=40)
    with EngineClient.attach(tmp_path, run.uuid) as client:
        gate.open()
        events = list(client.events(SECONDS))
    assert isinstance(events[0], EngineHello) and events[0].run == run.uuid
    assert isinstance(events[-1], Finished) and events[-1].state is RunState.FINISHED
    progress = [event for event in events if isinstance(event, RunProgress)][-1]
    assert progress.trials == 40 and progress.valid == sum(each.verified for each in undisturbed)
    _, trials = to_the_end(tmp_path, run)
    assert trials == undisturbed
    with pytest.raises(NoEngineError, match="hilt resume"):
        EngineClient.attach(tmp_path, run.uuid)


def test_the_same_events_in_asyncio(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    uuid = start(tmp_path).uuid

    async def watch() -> list[Event]:
        client = EngineClient.attach(tmp_path, uuid)
        gate.open()
        return [event async for event in client.stream()]

    with EngineClient.attach(tmp_path, uuid) as other:
        streamed = asyncio.run(watch())
        events = list(other.events(SECONDS))
    assert isinstance(streamed[0], EngineHello) and isinstance(streamed[-1], Finished)
    assert len(measured(streamed)) > 20 and measured(streamed) == measured(events)


def measured(events: list[Event]) -> list[TrialRecorded]:
    """Return the events of the measured trials, which the gate held up: all clients are there by then."""
    return [
        event for event in events if isinstance(event, TrialRecorded) and event.trial.outcome is not Outcome.REJECTED
    ]


def test_two_clients_and_pause_resume_stop(tmp_path: Path, gate: Gate, undisturbed: list[Trial]) -> None:
    gate.shut()
    run = start(tmp_path)
    with EngineClient.attach(tmp_path, run.uuid) as one, EngineClient.attach(tmp_path, run.uuid) as two:
        one.send(EngineCommand.PAUSE)
        wait(one, lambda event: isinstance(event, StateChanged) and "pausing" in event.detail)
        gate.open()
        for client in (one, two):
            wait(client, lambda event: isinstance(event, StateChanged) and event.state is RunState.PAUSED)
        gate.shut()
        two.send(EngineCommand.RESUME)
        wait(one, lambda event: isinstance(event, StateChanged) and event.state is RunState.RUNNING)
        two.send(EngineCommand.STOP)
        wait(one, lambda event: isinstance(event, StateChanged) and "stopping" in event.detail)
        gate.open()
        for client in (one, two):
            assert list(client.events(SECONDS))[-1] == Finished(
                RunState.STOPPED, f"`hilt resume {run.uuid[:8]}` goes on", None
            )
    after, trials = to_the_end(tmp_path, run)
    assert after.state is RunState.STOPPED
    assert 0 < len(trials) < 40
    assert {each.ordinal: each for each in undisturbed}.items() >= {each.ordinal: each for each in trials}.items()


def wait(client: EngineClient, wanted: Callable[[Event], bool]) -> None:
    assert any(wanted(event) for event in client.events(SECONDS))


def stop(home: Path, run: Run, gate: Gate) -> None:
    """Open the gate only when the engine knows that it is to stop; its last event may come with that one."""
    with EngineClient.attach(home, run.uuid) as client:
        client.send(EngineCommand.STOP)
        event = None
        for event in client.events(SECONDS):
            if isinstance(event, StateChanged) and "stopping" in event.detail:
                gate.open()
        assert isinstance(event, Finished)


def test_one_engine_a_run(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    run = start(tmp_path)
    files = RunFiles(tmp_path, run.uuid)
    assert files.is_running()
    with pytest.raises(RunBusyError, match=r"already running in process \d+"), files.locked():
        pass
    with pytest.raises(EngineStartError, match="already running") as refused:
        launch.spawn(run.uuid, tmp_path, ENGINE)
    assert refused.value.failure is FailureCause.INPUT
    assert resume(tmp_path, run.uuid).uuid == run.uuid  # it is running: there is nothing to start
    stop(tmp_path, run, gate)


def test_of_two_commands_that_resume_a_run_at_once_one_attaches(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    run = start(tmp_path)
    stop(tmp_path, run, gate)
    gate.shut()
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(resume, tmp_path, run.uuid) for _ in range(2)]
        assert [each.result().uuid for each in both] == [run.uuid] * 2
    stop(tmp_path, run, gate)


def test_who_looks_whether_a_run_has_an_engine_keeps_none_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look holds the lock for an instant, as the terminal UI does again and again for every run."""
    files = RunFiles(tmp_path, "0" * 32)
    with files._open_lock() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        monkeypatch.setattr(files_module, "sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
        with files.locked():
            assert files.is_running()


_INTERRUPTED = """
import signal, sys, threading
from hilt.engine.event_log import EventLog
from hilt.engine.process import main
from tests.unit.engine.table import TableBoards

append = EventLog._append

def interrupted(self, line):
    if threading.current_thread() is threading.main_thread():
        with self._lock:
            signal.raise_signal(signal.SIGTERM)
    append(self, line)

EventLog._append = interrupted
sys.exit(main(boards=TableBoards()))
"""


def test_a_signal_that_comes_while_a_lock_is_held_stops_the_run(tmp_path: Path, gate: Gate) -> None:
    """A signal that comes while a lock is held stops the run.

    The interrupted code may hold the very locks that stopping needs.
    """
    gate.shut()
    run = launch.start(settings(), tmp_path, boards=TableBoards(), engine=(sys.executable, "-c", _INTERRUPTED))
    files = RunFiles(tmp_path, run.uuid)
    holder = files.lock_path.read_text().strip()
    try:
        with suppress(NoEngineError), EngineClient.attach(tmp_path, run.uuid) as client:  # it may have ended already
            wait(client, lambda event: isinstance(event, StateChanged) and "stopping" in event.detail)
        gate.open()
        assert files.wait_until_free(SECONDS), "the engine waits for itself"
    finally:
        if files.is_running():
            os.kill(int(holder), signal.SIGKILL)
    with Store(database_path(tmp_path)) as store:
        assert store.run(run.uuid).state is RunState.STOPPED


def test_socket_and_directory_are_for_the_owner_only(tmp_path: Path, gate: Gate) -> None:
    deep = tmp_path / ("long" * 25) / ("longer" * 20)  # past the 108 bytes that a Unix socket's path may have
    deep.mkdir(parents=True)
    gate.shut()
    run = start(deep)
    files = RunFiles(deep, run.uuid)
    assert stat.S_IMODE(files.socket_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.directory.stat().st_mode) == 0o700
    stop(deep, run, gate)
    to_the_end(deep, run)
    assert not files.socket_path.exists()


@pytest.mark.parametrize(
    "words",
    [b"not json\n", b"[1]\n", b'{"command": "format"}\n', b"x" * 5000],
    ids=["text", "list", "unknown", "endless"],
)
def test_bad_commands_are_refused_and_harm_nobody(tmp_path: Path, gate: Gate, words: bytes) -> None:
    gate.shut()
    run = start(tmp_path)
    rude = RunFiles(tmp_path, run.uuid).connect()
    rude.sendall(words)
    heard = [json.loads(line) for line in read_all(rude).splitlines()]
    assert heard[-1]["event"] == "log" and "command refused" in heard[-1]["text"]
    stop(tmp_path, run, gate)


def read_all(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_client_that_does_not_read_is_dropped_and_the_run_goes_on(tmp_path: Path) -> None:
    files = RunFiles(tmp_path, "a" * 32)
    with EngineServer(files, EngineHello("a" * 32, 1), lambda command: None) as server:
        slow = files.connect()
        slow.recv(1)  # it was let in
        with EngineClient.attach(tmp_path, "a" * 32) as quick:
            texts = 2 * MAX_UNSENT_BYTES // 4000
            for ordinal in range(texts):
                server.publish(Logged("info", f"{ordinal} ".ljust(4000), 0.0))
                if ordinal % 50 == 49:  # the quick one keeps up
                    seen = (event.text for event in quick.events(SECONDS) if isinstance(event, Logged))
                    assert any(text.startswith(f"{ordinal} ") for text in seen)
        received = 0
        try:
            while chunk := slow.recv(1 << 20):
                received += len(chunk)
        except ConnectionResetError:
            pass
        slow.close()
    assert received < texts * 4000


@pytest.mark.parametrize("instant", range(7))
def test_killed_at_any_instant_and_resumed_it_gives_the_same_records(
    tmp_path: Path, gate: Gate, undisturbed: list[Trial], instant: int
) -> None:
    """Two kills in each run, unless the engine is quicker than the second."""
    chance = random.Random(instant)
    gate.shut()
    run = start(tmp_path)
    for _ in range(2):
        with EngineClient.attach(tmp_path, run.uuid) as client:
            gate.open()
            after = chance.randrange(60)
            pid = 0
            for ordinal, event in enumerate(client.events(SECONDS)):
                pid = event.pid if isinstance(event, EngineHello) else pid
                if ordinal >= after or isinstance(event, Finished):
                    os.kill(pid, signal.SIGKILL)
                    break
            for _ in client.events(SECONDS):
                pass
        with Store(database_path(tmp_path)) as store:
            if store.run(run.uuid).state is RunState.FINISHED:
                break
        gate.shut()
        resume(tmp_path, run.uuid)
    gate.open()
    state, trials = to_the_end(tmp_path, run)
    assert state.state is RunState.FINISHED
    assert trials == undisturbed


def test_resume_is_refused_with_both_values(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    run = start(tmp_path, board="table:one")
    stop(tmp_path, run, gate)
    run, _ = to_the_end(tmp_path, run)
    with pytest.raises(RunMismatchError, match=f"bitstream: {'one' * 8} then, {'two' * 8} now"):
        resume(tmp_path, run.uuid, board="table:two")
    for column, then, now in (
        ("workload_spec", json.dumps({**run.workload_spec, "in_channels": 64}), "_channels': 64.* then, .*: 32.* now"),
        ("parameters", "4x8_i8w8a32_15_16_16_18", "4x8_i8w8a32_15_16_16_18 then, 1x16_i8w8a32_15_15_18_17 now"),
        ("isa", "B", "ISA: B then, A now"),
        ("bitstream", "0" * 64, f"bitstream: {'0' * 64} then, {'one' * 8} now"),
        ("clock_hz", 333, "clock: 333 Hz then, 100000000 Hz now"),
        ("space", "tile_b=1", "space: tile_b=1 then, tile_b=1 tile_h=1,2,7,14 .* now"),
        ("orders", 1, "space: .* h_nthread=1,2 loop_order=1,2,3,4 then, .* h_nthread=1,2 now"),
        ("orders", 3, "orders is 3; .* 1 or 4"),
        ("space_kind", "cube", "space 'cube' is none of autotvm, ml2"),
        ("checks", "lenient", "checks 'lenient' is none of .*tvm"),
    ):
        with Store(database_path(tmp_path)) as store:
            original = store._connection.execute(f"SELECT {column} FROM runs").fetchone()[0]
            store._connection.execute(f"UPDATE runs SET {column} = ?", (then,))
        with pytest.raises(EngineStartError, match=now) as refused:
            resume(tmp_path, run.uuid)
        assert refused.value.failure is FailureCause.INPUT
        assert "\n" not in str(refused.value)
        with Store(database_path(tmp_path)) as store:
            store._connection.execute(f"UPDATE runs SET {column} = ?", (original,))
    resume(tmp_path, run.uuid)
    finished, trials = to_the_end(tmp_path, run)
    assert (finished.state, len(trials)) == (RunState.FINISHED, 40)
    with pytest.raises(RunOverError, match="has finished"):
        resume(tmp_path, run.uuid)


def test_a_run_whose_board_has_changed_begins_anew(tmp_path: Path, gate: Gate) -> None:
    gate.shut()
    old = start(tmp_path, board="table:one")
    stop(tmp_path, old, gate)
    old, kept = to_the_end(tmp_path, old)
    with pytest.raises(RunMismatchError, match=f"begin it anew: `hilt resume {old.uuid[:8]} --anew`"):
        resume(tmp_path, old.uuid, board="table:two")
    new = launch.begin_anew(old.uuid, tmp_path, board="table:two", boards=TableBoards(), engine=ENGINE)
    new, trials = to_the_end(tmp_path, new)
    assert (new.state, len(trials), new.board, new.seed) == (RunState.FINISHED, 40, "table:two", old.seed)
    with Store(database_path(tmp_path)) as store:
        assert labels_of(store, new.uuid).note == f"began anew from {old.uuid[:8]}"
        assert (store.run(old.uuid), store.trials(old.uuid)) == (old, kept)


def test_a_run_may_move_to_another_board_of_the_same_kind(tmp_path: Path, gate: Gate, undisturbed: list[Trial]) -> None:
    gate.shut()
    run = start(tmp_path)
    stop(tmp_path, run, gate)
    to_the_end(tmp_path, run)
    resume(tmp_path, run.uuid, board="table:plain@second")
    run, trials = to_the_end(tmp_path, run)
    assert (run.board, run.state) == ("table:plain@second", RunState.FINISHED)
    assert trials == undisturbed


def test_a_board_that_cannot_be_opened_fails_the_run_which_can_be_resumed(
    tmp_path: Path, undisturbed: list[Trial]
) -> None:
    run = start(tmp_path, board="table:plain@away")
    failed, trials = to_the_end(tmp_path, run)
    assert (failed.state, failed.failure) == (RunState.FAILED, FailureCause.BOARD)
    assert failed.detail == "table:plain@away is not reachable; is it on?"
    assert trials == []
    resume(tmp_path, run.uuid, board="table:plain")
    finished, trials = to_the_end(tmp_path, run)
    assert (finished.state, finished.failure) == (RunState.FINISHED, "")
    assert trials == undisturbed


def test_an_engine_that_cannot_begin_says_why_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(EngineStartError, match="died at its start: .*no such thing") as died:
        launch.start(
            settings(),
            tmp_path,
            boards=TableBoards(),
            engine=(sys.executable, "-c", "raise SystemExit('no such thing')"),
        )
    assert died.value.failure is FailureCause.INTERNAL
    with Store(database_path(tmp_path)) as store:
        assert store.runs() == [], "it never began"


def test_a_full_disk_ends_the_run_with_its_reason(tmp_path: Path, gate: Gate, undisturbed: list[Trial]) -> None:
    """The limit on the size of a file stands for a full disk; the engine's log and lock are small enough."""
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000)); "
        "from hilt.engine.process import main; from tests.unit.engine.table import TableBoards; "
        "sys.exit(main(boards=TableBoards()))"
    )
    gate.shut()
    run = launch.start(settings(), tmp_path, boards=TableBoards(), engine=(sys.executable, "-c", limited))
    with EngineClient.attach(tmp_path, run.uuid) as client:
        gate.open()
        finished = list(client.events(SECONDS))[-1]
    assert isinstance(finished, Finished)
    assert (finished.state, finished.failure) == (RunState.FAILED, FailureCause.STORE)
    assert "disk" in finished.detail and "\n" not in finished.detail
    _, before = to_the_end(tmp_path, run)
    assert len(before) < 40
    resume(tmp_path, run.uuid)  # space was made
    after, trials = to_the_end(tmp_path, run)
    assert after.state is RunState.FINISHED
    assert trials == undisturbed


def test_a_dying_engine_is_not_taken_for_one_that_runs(tmp_path: Path, gate: Gate, undisturbed: list[Trial]) -> None:
    """Killed, it may for a moment still hold its lock and take connections; it says nothing any more."""
    gate.shut()
    run = start(tmp_path)
    with EngineClient.attach(tmp_path, run.uuid) as client:
        pid = next(event.pid for event in client.events(SECONDS) if isinstance(event, EngineHello))
        os.kill(pid, signal.SIGKILL)
        for _ in client.events(SECONDS):
            pass
    gate.open()
    files = RunFiles(tmp_path, run.uuid)
    assert files.wait_until_free(SECONDS)
    holds = threading.Event()

    def die_slowly() -> None:
        with files.locked(), files.listen() as listener:
            holds.set()
            listener.accept()[0].close()

    dying = threading.Thread(target=die_slowly)
    dying.start()
    assert holds.wait(SECONDS)
    resume(tmp_path, run.uuid)
    dying.join(SECONDS)
    state, trials = to_the_end(tmp_path, run)
    assert state.state is RunState.FINISHED
    assert trials == undisturbed
