"""The power switch of a virtual board in one process: its leases, its words, a system that dies, and who holds it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilt import paths
from hilt.virtual import power, supervisor, supervisor_control
from hilt.virtual.board_model import BOARD_MODELS
from hilt.virtual.directory import CONTROL_SOCKET, BoardDirectory
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.supervisor import Supervisor
from hilt.virtual.supervisor_control import SupervisorControl, SupervisorStatus

MODEL = BOARD_MODELS["pynq"]
SECONDS = 30.0


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoardDirectory:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    made = BoardDirectory("pynq")
    made.create()
    return made


class System:
    """A board that is on from the start, unless it is told that it does not boot."""

    made: list[System]
    boots = True

    def __init__(self, name: str, boot_id: str, computer: str) -> None:
        System.made.append(self)
        self.name, self.boot_id, self.computer = name, boot_id, computer
        self.ssh = {"port": 2200 + len(System.made), "pid": 17}
        self.reboots = False
        self.killed = 0
        self.waited: list[float] = []
        self.ended = asyncio.Event()

    async def accepting(self, seconds: float) -> None:
        self.waited.append(seconds)
        if not self.boots:
            raise VirtualBoardError("its first process ended")

    def kill_ssh(self) -> None:
        self.killed += 1

    async def off(self) -> None:
        self.ended.set()


@pytest.fixture
def systems(monkeypatch: pytest.MonkeyPatch) -> list[System]:
    made: list[System] = []
    monkeypatch.setattr(System, "made", made, raising=False)
    monkeypatch.setattr(supervisor, "PoweredSystem", System)
    monkeypatch.setattr(supervisor, "end_descendants", lambda: None)
    return made


def supervised(
    directory: BoardDirectory, act: Callable[[], Any], idle_seconds: float = SECONDS, computer: str = ""
) -> Any:
    """Return what `act` says in a thread beside a supervisor, which then ends; stop it if it does not by itself."""

    async def run() -> Any:
        listens = asyncio.Event()
        serving = asyncio.create_task(Supervisor(directory, idle_seconds, computer).run(listens.set))
        await listens.wait()
        done = await asyncio.to_thread(act)
        if not serving.done():
            found = await asyncio.to_thread(SupervisorControl.find, directory)
            if found is not None:
                await asyncio.to_thread(found.stop)
        await asyncio.wait_for(serving, SECONDS)
        return done

    return asyncio.run(run())


def held(directory: BoardDirectory) -> SupervisorControl:
    control = SupervisorControl.find(directory)
    assert control is not None
    return control


def test_a_board_is_switched_and_tells_where_it_is(directory: BoardDirectory, systems: list[System]) -> None:
    def act() -> list[SupervisorStatus]:
        with held(directory) as control:
            return [
                *(control.status(), control.power_on(), control.power_on(), control.kill_ssh_server()),
                *(control.power_cycle(), control.power_off(), control.kill_ssh_server(), control.switch_on()),
            ]

    off, on, again, killed, cycled, dark, _, switched = supervised(directory, act)
    assert (off.power, off.boot_id, off.port, off.ssh_pid) == ("off", None, None, None)
    assert (off.supervisor_pid, off.python, off.leases) == (os.getpid(), str(paths.board_python()), 1)
    assert (on.power, on.port, on.ssh_pid) == ("on", 2201, 17) and on == again == killed
    assert cycled.boot_id not in (None, on.boot_id) and cycled.port == 2202
    assert dark.power == "off" and switched.power == "on" and len(systems) == 3
    assert [system.killed for system in systems] == [1, 0, 0]
    assert [system.name for system in systems] == ["pynq"] * 3
    assert systems[0].waited == [60.0, 60.0] and systems[2].waited == [60.0], "its boot is waited for"
    assert all(system.ended.is_set() for system in systems), "it is dark when its supervisor ends"


def test_an_emulated_boards_server_is_not_killed_from_here(directory: BoardDirectory, systems: list[System]) -> None:
    def act() -> str:
        with held(directory) as control:
            control.power_on()
            with pytest.raises(VirtualBoardError) as refused:
                control.kill_ssh_server()
            return str(refused.value)

    assert "on the board itself" in supervised(directory, act, computer="armhf")
    assert systems[0].waited == [600.0] and systems[0].computer == "armhf" and systems[0].killed == 0


def test_a_board_that_does_not_boot_is_off_and_says_where_to_look(
    directory: BoardDirectory, systems: list[System], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(System, "boots", False)

    def act() -> str:
        with held(directory) as control:
            with pytest.raises(VirtualBoardError) as refused:
                control.power_on()
            assert control.status().power == "off"
            return str(refused.value)

    expected = f"virtual board pynq does not boot: its first process ended; see {directory.log}"
    assert supervised(directory, act) == expected


@pytest.mark.parametrize("reboots", [True, False])
def test_a_board_whose_first_process_ends_is_off_or_boots_again(
    directory: BoardDirectory, systems: list[System], reboots: bool
) -> None:
    async def run() -> Any:
        made = Supervisor(directory, SECONDS)
        await made._answer(b'{"command": "on"}')
        systems[0].reboots = reboots
        systems[0].ended.set()
        await asyncio.wait_for(asyncio.gather(*list(made._watching)[:1]), SECONDS)
        status = await made._answer(b'{"command": "status"}')
        await made._power_off()
        return status

    status = asyncio.run(run())
    assert (status["power"], status["port"]) == (("on", 2202) if reboots else ("off", None))


@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=40), st.just(b"[" * 4000), st.sampled_from([b'{"command": []}', b"{}", b"7"])))
def test_any_line_is_answered(line: bytes) -> None:
    async def run() -> dict[str, Any]:
        return await Supervisor(SimpleNamespace(name="pynq"), SECONDS)._answer(line)  # type: ignore[arg-type]

    error = asyncio.run(run())["error"]
    assert error == "not a command" or error.startswith("unknown command ")


def test_its_socket_is_its_owners_and_goes_with_it(directory: BoardDirectory, systems: list[System]) -> None:
    place = directory.root / CONTROL_SOCKET
    place.write_text("left over")

    def act() -> int:
        with held(directory):
            return place.stat().st_mode

    mode = supervised(directory, act)
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    assert not place.exists() and SupervisorControl.find(directory) is None


@pytest.mark.parametrize("end", ["idle", "term"])
def test_it_ends_when_nobody_holds_it_or_it_is_told(
    directory: BoardDirectory, systems: list[System], monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(supervisor, "_FIRST_LEASE_SECONDS", 0.01 if end == "idle" else SECONDS)

    async def run() -> None:
        listens = asyncio.Event()
        serving = asyncio.create_task(Supervisor(directory, 0.01 if end == "idle" else SECONDS).run(listens.set))
        await listens.wait()
        if end == "term":
            signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(serving, SECONDS)

    asyncio.run(run())
    assert SupervisorControl.find(directory) is None


def test_a_lease_keeps_it_until_the_last_is_given_up(directory: BoardDirectory, systems: list[System]) -> None:
    def act() -> list[int]:
        with held(directory) as first:
            with held(directory) as second:
                counts = [second.status().leases, first.status().leases]  # the second is known once it is answered
            while first.status().leases > 1:
                pass
            return counts

    assert supervised(directory, act, idle_seconds=0.0) == [2, 2]


class Answering:
    """A supervisor that says these lines, whatever it is asked."""

    def __init__(self, directory: BoardDirectory, *lines: bytes) -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(b"".join(lines))
        theirs.shutdown(socket.SHUT_WR)
        self.control = SupervisorControl(directory, ours)
        self.theirs = theirs

    def close(self) -> None:
        self.control.close()
        self.theirs.close()


STATUS = {"power": "on", "boot_id": "b", "port": 1, "ssh_pid": 2, "supervisor_pid": 3}


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"7\n", b"[]\n", b"{}\n", b'{"power": "on"}\n', b"[" * 100_000 + b"\n", b"\xff\n"],
    ids=["end", "torn", "number", "list", "empty", "part", "deep", "bytes"],
)
def test_a_supervisor_that_says_nonsense_is_one_clear_error(directory: BoardDirectory, line: bytes) -> None:
    answering = Answering(directory, line)
    with pytest.raises(VirtualBoardError, match="virtual board pynq"):
        answering.control.status()
    answering.close()


def test_another_versions_supervisor_is_understood(directory: BoardDirectory) -> None:
    answering = Answering(directory, json.dumps({**STATUS, "novelty": [1]}).encode() + b"\n")
    assert answering.control.status() == SupervisorStatus(**STATUS)  # type: ignore[arg-type]
    answering.close()


class Starts:
    """The starts of supervisors, each of which is a thread's socket that says one status."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: Any) -> None:
        self.found = list(found)
        self.started: list[float] = []
        monkeypatch.setattr(supervisor_control, "_connect", lambda directory: self.found.pop(0))
        monkeypatch.setattr(supervisor_control, "_start", lambda *given: self.started.append(given[2]))


def saying(*answers: dict[str, Any]) -> socket.socket:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in answers))
    theirs.shutdown(socket.SHUT_WR)
    threading.Thread(target=theirs.makefile("rb").read, daemon=True).start()
    return ours


def test_a_supervisor_is_started_where_none_runs(directory: BoardDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch, None, saying())
    SupervisorControl.hold(directory, MODEL, 5.0).close()
    assert starts.started == [5.0]
    assert json.loads(directory.board_model.read_text())["name"] == "virtual:pynq"
    Starts(monkeypatch, None, None)
    with pytest.raises(VirtualBoardError, match=f"pynq went away at once; see {directory.log}"):
        SupervisorControl.hold(directory, MODEL)


def test_a_supervisor_of_another_python_is_replaced_unless_it_is_in_use(
    directory: BoardDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {**STATUS, "python": str(paths.board_python()), "leases": 5}
    starts = Starts(monkeypatch, saying(own))
    SupervisorControl.hold(directory, MODEL).close()
    assert starts.started == []
    other = {**STATUS, "python": "/usr/bin/other", "leases": 1}
    starts = Starts(monkeypatch, saying(other, other), saying())
    SupervisorControl.hold(directory, MODEL).close()
    assert starts.started == [60.0] and starts.found == []
    Starts(monkeypatch, saying({**other, "leases": 2}))
    with pytest.raises(VirtualBoardError, match="is in use with the interpreter /usr/bin/other, not .*pynq@other"):
        SupervisorControl.hold(directory, MODEL)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (subprocess.CalledProcessError(3, "x", stderr="first\nlast\n"), "virtual board pynq does not start: last"),
        (subprocess.CalledProcessError(3, "x", stderr=" \n"), "virtual board pynq does not start: exit code 3"),
        (subprocess.TimeoutExpired("x", 1), "virtual board pynq did not start within 60 s; see .*supervisor.log"),
    ],
)
def test_a_start_that_fails_says_why(
    directory: BoardDirectory, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **options: Any) -> None:
        asked.append(command)
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(VirtualBoardError, match=words):
        supervisor_control._start(directory, MODEL, 7.0)
    assert asked[0][1:] == ["-m", "hilt.virtual", "pynq@pynq", "--detach", "--idle-seconds", "7.0"]


@pytest.fixture
def first_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A script of the shell instead of the board's first process."""

    def put(script: str) -> None:
        program = tmp_path / "first"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        monkeypatch.setattr(power, "sys", SimpleNamespace(executable=str(program)))

    return put


def powered(act: Callable[[power.PoweredSystem], Any], computer: str = "") -> Any:
    async def run() -> Any:
        system = power.PoweredSystem("pynq", "boot-1", computer)
        try:
            return await act(system)
        finally:
            await asyncio.wait_for(system.off(), SECONDS)
            assert system.ended.is_set()

    return asyncio.run(run())


@pytest.mark.parametrize(("computer", "module"), [("", "hilt.virtual.system"), ("armhf", "hilt.virtual.linux.system")])
def test_a_system_that_is_on_says_where_its_server_is_each_time(
    tmp_path: Path, first_process: Callable[[str], None], computer: str, module: str
) -> None:
    """Its lines may come in parts."""
    first_process(
        f'echo "$@" > {tmp_path}/words; printf \'\\n{{"port": 1, \'; printf \'"pid": 2}}\\n\'; read line; '
        f'echo "{{\\"port\\": 3, \\"pid\\": \\"$line\\"}}"; read end; exit 0'
    )

    async def act(system: power.PoweredSystem) -> list[Any]:
        await system.accepting(SECONDS)
        seen: list[Any] = [system.ssh]
        system._accepts.clear()
        system.kill_ssh()
        await system.accepting(SECONDS)
        return [*seen, system.ssh, system.boot_id, system.reboots]

    said = powered(act, computer)
    assert said == [{"port": 1, "pid": 2}, {"port": 3, "pid": "kill-ssh"}, "boot-1", False]
    words = f"-m {module} pynq boot-1" + (" armhf" if computer else "")
    assert (tmp_path / "words").read_text() == words + "\n"


@pytest.mark.parametrize(("code", "reboots"), [(64, True), (1, False), (0, False)])
def test_a_first_process_that_ends_tells_whether_it_reboots(
    first_process: Callable[[str], None], code: int, reboots: bool
) -> None:
    first_process(f"exit {code}")

    async def act(system: power.PoweredSystem) -> bool:
        with pytest.raises(VirtualBoardError, match="its first process ended"):
            await system.accepting(SECONDS)
        system.kill_ssh()  # nothing is there to be told
        return system.reboots

    assert powered(act) is reboots


def test_a_server_that_never_accepts_is_waited_for_within_bounds(first_process: Callable[[str], None]) -> None:
    first_process("read end")

    async def act(system: power.PoweredSystem) -> None:
        with pytest.raises(VirtualBoardError, match="its SSH server did not accept within 0 s"):
            await system.accepting(0.02)

    powered(act)
