"""The agent's commands in one process: the start of a daemon, its end, its status, its log, and the bridge to it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hilt_board import commands, inspection, service, unix_socket, worker_process
from hilt_board.commands import CommandError, InUseError
from hilt_board.home import Home, open_home
from hilt_board.protocol import (
    PROTOCOL_VERSION,
    AgentStatus,
    BlobStored,
    FrameDecoder,
    Record,
    StatusReport,
    encode_frame,
    from_frame,
    to_frame,
)

OWN = "a" * 64
REPORT = StatusReport("ready", None, None, None, 0, 7, 0, OWN, 1 << 30, 12.5)
NOTHING = SimpleNamespace()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.delenv("HILT_VERILATED", raising=False)
    monkeypatch.setattr(inspection, "complete_environment", lambda: None)
    monkeypatch.setattr(commands, "_agent_hash", lambda: OWN)
    monkeypatch.setattr(commands, "_require_packages", lambda: None)
    umask = os.umask(0o022)
    yield open_home()
    os.umask(umask)


class RunningDaemon:
    """A daemon that is a thread: it holds the lock, answers requests in turn, and ends when it gets a signal."""

    def __init__(self, home: Home, answers: list[Any]) -> None:
        self.signals: list[int] = []
        self.asked: list[Record] = []
        self.obeys = {signal.SIGTERM, signal.SIGKILL}
        self._answers = answers
        self._lock = os.open(str(home.process), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, json.dumps({"pid": 4711}).encode())
        self._listening = unix_socket.listen(home)
        self._listening.setblocking(True)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._listening.accept()
            with connection:
                (frame,) = FrameDecoder().feed(connection.recv(1 << 16))
                self.asked.append(from_frame(frame)[1])
                if answer is not None:
                    connection.sendall(encode_frame(to_frame(answer, 1), PROTOCOL_VERSION))

    def kill(self, pid: int, number: int) -> None:
        assert pid == 4711
        self.signals.append(number)
        if number in self.obeys:
            os.close(self._lock)

    def close(self) -> None:
        if not set(self.signals) & self.obeys:
            os.close(self._lock)
        self._listening.close()


@pytest.fixture
def daemon(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., RunningDaemon]]:
    made: list[RunningDaemon] = []

    def start(*answers: Any) -> RunningDaemon:
        made.append(RunningDaemon(home, list(answers)))
        monkeypatch.setattr(commands, "os", SimpleNamespace(**{**vars(os), "kill": made[-1].kill}))
        return made[-1]

    yield start
    for each in made:
        each.close()


def runs(monkeypatch: pytest.MonkeyPatch, script: str) -> list[tuple[str, ...]]:
    """Let the agent's command be a script of the shell, in which $1 and so on are its words; return those."""
    asked: list[tuple[str, ...]] = []

    def agent_command(*words: str) -> list[str]:
        asked.append(words)
        return ["/bin/sh", "-c", script, "sh", *words]

    monkeypatch.setattr(worker_process, "agent_command", agent_command)
    return asked


def test_a_start_waits_until_the_daemon_is_ready(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = runs(monkeypatch, 'echo "log of $PWD"; echo also >&2; printf ready >/proc/self/fd/$3')
    assert commands.main(["start", "--silence", "2.5"]) == 0
    ((command, ready, _, silence, seconds),) = asked
    assert (command, ready, silence, seconds) == ("daemon", "--ready", "--silence", "2.5")
    assert home.log.read_text() == f"log of {home.root}\nalso\n"
    assert home.log.stat().st_mode & 0o777 == 0o600
    assert commands.main(["start"]) == 0 and asked[1][4] == "10.0"
    assert home.log.read_text().count("also") == 2, "the log goes on"
    assert os.umask(0o022) == 0o077, "what the agent makes is its user's alone"


@pytest.mark.parametrize("script", ["exit 7", "printf rea >/proc/self/fd/$3; exit 7"])
def test_a_daemon_that_ends_at_once_is_named_with_its_log(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], script: str
) -> None:
    runs(monkeypatch, script)
    assert commands.main(["start"]) == 1
    assert capsys.readouterr().err == f"hilt agent: daemon ended with 7; see {home.log}\n"


def test_a_daemon_that_is_never_ready_is_waited_for_within_bounds(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **options: process.append(popen(*words, **options)) or process[0]
    )
    monkeypatch.setattr(commands, "_START_SECONDS", 0.05)
    runs(monkeypatch, "exec sleep 60")
    before = signal.getsignal(signal.SIGALRM)
    assert commands.main(["start"]) == 1
    process[0].kill()
    process[0].wait()
    assert capsys.readouterr().err == "hilt agent: daemon did not become ready within 0.05 s\n"
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_agent_of_this_version_that_runs_stays(
    home: Home, daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = runs(monkeypatch, "exit 1")
    running = daemon(REPORT)
    assert commands.main(["start"]) == 0
    assert asked == [] and running.signals == []
    assert [type(each) for each in running.asked] == [AgentStatus]


@pytest.mark.parametrize(("answer", "number"), [(None, signal.SIGTERM), ("silence", signal.SIGKILL)])
def test_a_daemon_that_gives_no_status_is_ended_and_started_anew(
    home: Home,
    daemon: Callable[..., RunningDaemon],
    monkeypatch: pytest.MonkeyPatch,
    answer: str | None,
    number: signal.Signals,
) -> None:
    """One that closes is about to end; one that says nothing hangs."""
    monkeypatch.setattr(commands, "_STATUS_SECONDS", 0.05)
    asked = runs(monkeypatch, "printf ready >/proc/self/fd/$3")
    running = daemon(*([None] if answer is None else []))
    assert commands.main(["start"]) == 0
    assert len(asked) == 1 and running.signals == [number]


@pytest.mark.parametrize(("command", "number"), [("stop", signal.SIGTERM), ("kill", signal.SIGKILL)])
def test_stop_and_kill_wait_for_the_end(
    home: Home, daemon: Callable[..., RunningDaemon], command: str, number: signal.Signals
) -> None:
    assert commands.main([command]) == 0, "none runs"
    running = daemon()
    assert commands.main([command]) == 0
    assert running.signals == [number] and commands._running(home) is None


def test_a_daemon_that_does_not_end_is_killed(
    home: Home, daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_STOP_SECONDS", 0.05)
    running = daemon()
    running.obeys = {signal.SIGKILL}
    assert commands.main(["stop"]) == 0
    assert running.signals == [signal.SIGTERM, signal.SIGKILL]


def test_the_process_that_runs_is_the_one_that_holds_the_lock(home: Home, daemon: Callable[..., RunningDaemon]) -> None:
    home.process.write_text('{"pid": 17}')
    assert commands._running(home) is None, "its number alone says nothing"
    home.process.unlink()
    daemon()
    assert commands._running(home) == 4711
    home.process.write_text("")
    assert commands._running(home) is None, "it has just begun"


def test_a_status_is_a_line_of_json(
    home: Home, daemon: Callable[..., RunningDaemon], capsys: pytest.CaptureFixture[str]
) -> None:
    daemon(REPORT)
    assert commands.main(["status"]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and json.loads(said) == json.loads(json.dumps(REPORT.to_fields()))


@pytest.mark.parametrize("answer", [None, BlobStored(OWN, 1, True)])
def test_another_answer_is_no_status(
    home: Home, daemon: Callable[..., RunningDaemon], capsys: pytest.CaptureFixture[str], answer: Record | None
) -> None:
    daemon(answer)
    assert commands.main(["status"]) == 1
    assert capsys.readouterr().err == "hilt agent: daemon gave no status\n"


@pytest.mark.parametrize("command", ["status", "connect"])
def test_without_a_daemon_there_is_nobody_to_ask(home: Home, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert commands.main([command]) == 1
    assert capsys.readouterr().err == "hilt agent: no daemon runs: start it first\n"


def test_a_home_that_is_open_to_others_is_refused(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.root.chmod(0o755)
    assert commands.main(["stop"]) == 1
    assert capsys.readouterr().err == f"hilt agent: {home.root} is open to others: chmod 700 it\n"


def test_the_home_is_made_for_its_user_alone_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HILT_AGENT_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "far" / "away"))
    before = os.umask(0)
    try:
        made = open_home()
    finally:
        os.umask(before)
    assert made.root == tmp_path / "far" / "away" / ".hilt"
    folders = [made.root, made.blobs, made.incoming, made.bitstreams, made.models]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 5
    assert open_home().root == made.root


def test_a_home_that_is_a_link_or_someone_elses_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.root)
    for root, user in ((link, os.getuid()), (home.root, os.getuid() + 1)):
        monkeypatch.setenv("HILT_AGENT_HOME", str(root))
        monkeypatch.setattr(os, "getuid", lambda user=user: user)
        assert commands.main(["stop"]) == 1
        assert capsys.readouterr().err == (
            f"hilt agent: {root} is not a directory of this user: remove it or set HILT_AGENT_HOME\n"
        )


@pytest.mark.parametrize("words", [[], ["fly"], ["start", "--silence", "long"], ["worker"]])
def test_a_wrong_command_line_ends_with_2(home: Home, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        commands.main(words)
    assert ended.value.code == 2


def test_the_log_is_its_end_and_that_of_the_one_before(home: Home, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert commands.main(["log"]) == 0 and capfdbinary.readouterr().out == b""
    home.log.write_bytes(b"now\n")
    home.log.with_name(home.log.name + ".1").write_bytes(b"x" + b"\xff" * (1 << 16))
    assert commands.main(["log"]) == 0
    assert capfdbinary.readouterr().out == b"\xff" * (1 << 16) + b"now\n"


def test_an_inspection_is_json_alone_whatever_its_libraries_print(
    home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def inspect(root: Path) -> dict[str, Any]:
        os.write(1, b"XRT is here\n")
        return {"root": str(root)}

    monkeypatch.setattr(inspection, "inspect", inspect)
    assert commands.main(["inspect"]) == 0
    said = capfd.readouterr()
    assert json.loads(said.out) == {"root": str(home.root)} and said.err == "XRT is here\n"


@pytest.mark.parametrize(("command", "name"), [("install-service", "install"), ("remove-service", "remove")])
def test_a_service_is_told_or_its_fault(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    homes: list[Home] = []
    monkeypatch.setattr(service, name, lambda *given: homes.extend(given) or "done")
    assert commands.main([command]) == 0
    assert capsys.readouterr().out == "done\n"
    assert [each.root for each in homes] == ([home.root] if name == "install" else [])

    def fail(*_: Home) -> str:
        raise service.ServiceError("systemd does not run here")

    monkeypatch.setattr(service, name, fail)
    assert commands.main([command]) == 1
    assert capsys.readouterr() == ("", "hilt agent: systemd does not run here\n")


class Terminal:
    """The standard input and output of a bridge; a write takes a few bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, said: list[bytes]) -> None:
        self.heard = b""
        self._said = [*said, b""]
        monkeypatch.setattr(commands, "os", SimpleNamespace(read=self._read, write=self._write))

    def _read(self, descriptor: int, size: int) -> bytes:
        assert descriptor == 0 and size > 0
        return self._said.pop(0)

    def _write(self, descriptor: int, data: memoryview) -> int:
        assert descriptor == 1
        self.heard += bytes(data[:3])
        return len(data[:3])


def test_the_bridge_carries_all_that_both_sides_say(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers may still be on their way when the client has said all."""
    listening = unix_socket.listen(home)
    listening.setblocking(True)
    heard = b""

    def serve() -> None:
        nonlocal heard
        with listening, listening.accept()[0] as connection:
            while data := connection.recv(1 << 16):
                heard += data
            connection.sendall(b"all of the answer")

    serving = threading.Thread(target=serve)
    serving.start()
    terminal = Terminal(monkeypatch, [b"one ", b"request"])
    assert commands._connect(home, NOTHING) == 0  # type: ignore[arg-type]
    serving.join(30)
    assert (heard, terminal.heard) == (b"one request", b"all of the answer")


def test_a_client_may_speak_to_a_daemon_that_has_gone(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    Terminal(monkeypatch, [b"hello"])
    commands._copy_up(ours)
    ours.close()


class Serving:
    """The daemon's class as `daemon` uses it."""

    made: Any = None

    def __init__(self, *given: Any) -> None:
        Serving.made = given

    async def run(self, listening: socket.socket, ready: Callable[[], None]) -> None:
        assert listening.fileno() > 0
        listening.close()
        ready()


@pytest.fixture
def serving(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Home]]:
    logged: list[Home] = []
    opened: list[int] = []
    monkeypatch.setitem(sys.modules, "hilt_board.daemon", SimpleNamespace(Daemon=Serving))
    monkeypatch.setattr(commands, "_log_to", logged.append)

    def open_lock(*given: Any) -> int:
        opened.append(os.open(*given))
        return opened[-1]

    monkeypatch.setattr(commands, "os", SimpleNamespace(**{**vars(os), "open": open_lock}))
    yield logged
    for each in opened:
        os.close(each)


def test_a_daemon_holds_the_lock_with_its_number_and_says_when_it_is_ready(home: Home, serving: list[Home]) -> None:
    home.process.write_text("a much longer text of an older daemon's, which goes")
    reading, writing = os.pipe()
    assert commands.main(["daemon", "--silence", "3", "--ready", str(writing)]) == 0
    with os.fdopen(reading, "rb") as ready:
        assert ready.read() == b"ready", "and the descriptor is closed"
    assert json.loads(home.process.read_text()) == {"pid": os.getpid()}
    assert [each.root for each in serving] == [home.root]
    assert (Serving.made[0].root, *Serving.made[1:]) == (home.root, OWN, 3.0)
    with pytest.raises(InUseError, match="a daemon runs already"):
        commands._daemon(home, SimpleNamespace(silence=1.0, ready=None))  # type: ignore[arg-type]


def test_a_daemon_of_systemd_tells_nobody(home: Home, serving: list[Home]) -> None:
    assert commands.main(["daemon"]) == 0
    assert Serving.made[2] == 10.0


@pytest.mark.parametrize("virtual", [True, False])
def test_a_worker_is_that_of_its_board_and_dies_with_its_daemon(
    home: Home, monkeypatch: pytest.MonkeyPatch, virtual: bool
) -> None:
    did: list[Any] = []

    def run(*given: Any) -> int:
        did.append((given[0], given[1].root, *given[2:]))
        return 5

    worker: Any = ModuleType("worker")
    worker.die_with_parent, worker.run = lambda: did.append("dies"), run
    monkeypatch.setitem(sys.modules, "hilt_board.worker", worker)
    board = SimpleNamespace(register_device=lambda: did.append("device"), worker_class=lambda: "own")
    monkeypatch.setattr(commands, "virtual_board", lambda: board if virtual else None)
    assert commands.main(["worker", "9"]) == 5
    assert did == (["dies", "device", (9, home.root, "own")] if virtual else ["dies", (9, home.root)])


def test_the_hash_is_that_of_the_archive_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(b"the agent")
    monkeypatch.setattr(worker_process, "agent_archive", lambda: archive)
    assert commands._agent_hash() == hashlib.sha256(b"the agent").hexdigest()
    monkeypatch.setattr(worker_process, "agent_archive", lambda: None)
    assert commands._agent_hash() == ""


def test_an_alarm_that_does_not_ring_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(KeyError), commands._alarm(60, "late"):
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        raise KeyError
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert CommandError.code == 1 and InUseError.code == 3
