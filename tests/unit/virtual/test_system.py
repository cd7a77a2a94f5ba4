"""Process 1 of a virtual board: signals, words of its power switch, and restarts of its server."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt.virtual import system
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.processes import descendants

NAME, BOOT = "pynq", "boot-1"


class Machine:
    """Where process 1 runs: its power is a pipe, its signals come through a socket, and its servers are noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.did: list[Any] = []
        reading, self.power = os.pipe()
        self.stdin = os.fdopen(reading, "rb")
        hears, self._signals = socket.socketpair()
        monkeypatch.setattr(sys, "argv", ["system", NAME, BOOT])
        monkeypatch.setattr(sys, "stdin", self.stdin)
        monkeypatch.setattr(system, "_signal_wakeups", lambda: hears)
        monkeypatch.setattr(system, "adopt_orphans", lambda: self.did.append("adopt"))
        monkeypatch.setattr(system, "end_descendants", lambda: self.did.append("end"))
        monkeypatch.setattr(system, "_freeze", lambda: self.did.append("freeze"))
        monkeypatch.setattr(system, "_Server", self._serve)
        self.on_reap: Callable[[], None] = self.power_off
        self.on_kill: Callable[[], None] = self.power_off

    def _serve(self, command: list[str]) -> Any:
        self.did.append(("server", *command[1:]))
        return SimpleNamespace(reap=self._reap, kill=self._kill)

    def _reap(self) -> None:
        self.did.append("reap")
        self.on_reap()

    def _kill(self) -> None:
        self.did.append("kill")
        self.on_kill()

    def power_off(self) -> None:
        if self.power >= 0:
            os.close(self.power)
        self.power = -1

    def signal(self, *numbers: int) -> None:
        self._signals.send(bytes(numbers))

    def say(self, words: bytes) -> None:
        os.write(self.power, words)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    BoardDirectory(NAME).chaos.mkdir(parents=True)
    made = Machine(monkeypatch)
    yield made
    made.power_off()
    made.stdin.close()


SERVER = ("server", "-m", "hilt.virtual.ssh_server", NAME, BOOT)


def test_all_ends_when_power_goes(machine: Machine) -> None:
    machine.power_off()
    system.main()
    assert machine.did == ["adopt", SERVER, "end"]


def test_a_reboot_ends_it_with_its_own_code(machine: Machine) -> None:
    machine.signal(signal.SIGUSR1)
    with pytest.raises(SystemExit) as ended:
        system.main()
    assert ended.value.code == system.REBOOT == 64
    assert machine.did == ["adopt", SERVER, "end"]


@pytest.mark.parametrize(
    ("numbers", "did"),
    [([signal.SIGCHLD], ["reap"]), ([signal.SIGUSR2], ["freeze", "reap"]), ([17, 12], ["freeze", "reap"])],
)
def test_a_childs_end_is_collected_and_a_freeze_obeyed(machine: Machine, numbers: list[int], did: list[str]) -> None:
    machine.signal(*numbers)
    system.main()
    assert machine.did == ["adopt", SERVER, *did, "end"]


def test_the_power_switch_may_have_the_server_killed(machine: Machine) -> None:
    machine.on_kill = lambda: machine.signal(signal.SIGCHLD)
    machine.say(b"kill-ssh\n")
    system.main()
    assert machine.did == ["adopt", SERVER, "kill", "reap", "end"]


def test_other_words_are_not_obeyed(machine: Machine) -> None:
    machine.say(b"make coffee\n")
    machine.power_off()
    system.main()
    assert machine.did == ["adopt", SERVER, "end"]


def test_power_that_goes_during_a_slow_boot_leaves_no_server(machine: Machine) -> None:
    (BoardDirectory(NAME).chaos / "slow").write_text("50.0")
    machine.power_off()
    system.main()
    assert machine.did == ["adopt"]


def test_a_slow_boot_takes_the_time_that_was_asked_for_once(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    waits: list[float] = []

    def wait(reading: list[Any], *lists: Any) -> tuple[list[Any], list[Any], list[Any]]:
        assert reading == [machine.stdin]
        waits.append(lists[-1])
        now[0] += 4.0
        if len(waits) == 1:
            machine.say(b"kill-ssh\n")  # there is no server yet
        return (reading if len(waits) == 1 else []), [], []

    monkeypatch.setattr(system, "select", SimpleNamespace(select=wait))
    monkeypatch.setattr(system, "time", SimpleNamespace(monotonic=lambda: now[0]))
    (BoardDirectory(NAME).chaos / "slow").write_text("10.0")
    assert system._boot(BoardDirectory(NAME))
    assert waits == [10.0, 6.0, 2.0]
    assert system._boot(BoardDirectory(NAME)) and len(waits) == 3


def test_a_freeze_stops_all_that_runs_on_the_board(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        sent.append((pid, number))
        if pid == 7:
            raise ProcessLookupError

    monkeypatch.setattr(system, "descendants", lambda ancestor: [7, 8] if ancestor == os.getpid() else [])
    monkeypatch.setattr(system, "os", SimpleNamespace(getpid=os.getpid, kill=kill))
    system._freeze()
    assert sent == [(7, signal.SIGSTOP), (8, signal.SIGSTOP)]


def test_signals_arrive_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        hears = system._signal_wakeups()
        with pytest.raises(BlockingIOError):
            hears.recv(1)
        for number in numbers:
            os.kill(os.getpid(), number)
        assert set(hears.recv(64)) >= {signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD}
    finally:
        os.close(signal.set_wakeup_fd(-1))
        for number, handler in before.items():
            signal.signal(number, handler)
    hears.close()


class Processes:
    """The processes of a server: each start has the next number, and ends when the test says so."""

    POSIX_SPAWN_OPEN, O_RDONLY, WNOHANG = os.POSIX_SPAWN_OPEN, os.O_RDONLY, os.WNOHANG
    environ = os.environ

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.started: list[int] = []
        self.killed: list[tuple[int, int]] = []
        self.ended: list[int] = []
        monkeypatch.setattr(system, "os", self)
        monkeypatch.setattr(system, "time", SimpleNamespace(monotonic=lambda: self.now))

    def posix_spawn(self, path: str, words: list[str], environ: Any, file_actions: Any, setpgroup: int) -> int:
        assert (path, words[1:], setpgroup) == ("/bin/ssh", ["-x"], 0)
        assert file_actions == [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
        self.started.append(100 + len(self.started))
        return self.started[-1]

    def kill(self, pid: int, number: int) -> None:
        self.killed.append((pid, number))
        if pid in self.ended:
            raise ProcessLookupError

    def waitpid(self, pid: int, options: int) -> tuple[int, int]:
        assert (pid, options) == (-1, os.WNOHANG)
        if not self.ended:
            raise ChildProcessError
        return self.ended.pop(0), 0

    def end(self, server: Any, *pids: int) -> None:
        self.ended += pids
        server.reap()


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    return Processes(monkeypatch)


def test_a_server_that_dies_is_started_again_and_orphans_are_not(processes: Processes) -> None:
    server = system._Server(["/bin/ssh", "-x"])
    processes.end(server, 7, 8)
    assert processes.started == [100]
    processes.end(server, 7, 100, 8)
    assert processes.started == [100, 101] and processes.ended == []
    processes.end(server, 100)
    assert processes.started == [100, 101], "it is not the server any more"
    processes.end(server, 0, 101)
    assert processes.ended == [101], "0: the others live"


def test_a_server_that_dies_at_its_start_again_and_again_is_given_up(processes: Processes) -> None:
    server = system._Server(["/bin/ssh", "-x"])
    for _ in range(5):
        processes.end(server, processes.started[-1])
    processes.now += 2.0
    processes.end(server, processes.started[-1])
    assert len(processes.started) == 7, "two seconds are no quick death: it is counted anew"
    for _ in range(5):
        processes.now += 1.9
        processes.end(server, processes.started[-1])
    with pytest.raises(SystemExit, match="the SSH server keeps dying at its start"):
        processes.end(server, processes.started[-1])


def test_a_server_that_was_killed_on_request_did_not_die_by_itself(processes: Processes) -> None:
    server = system._Server(["/bin/ssh", "-x"])
    for _ in range(9):
        server.kill()
        processes.end(server, processes.started[-1])
    assert [pid for pid, _ in processes.killed] == processes.started[:-1]
    assert {number for _, number in processes.killed} == {signal.SIGKILL}
    for _ in range(5):
        processes.end(server, processes.started[-1])
    processes.ended.append(processes.started[-1])
    server.kill()  # it has ended already
    server.reap()
    assert len(processes.started) == 16


def test_descendants_are_children_and_theirs() -> None:
    parent, child = os.getppid(), os.getpid()
    assert child in descendants(parent) and parent not in descendants(child)
