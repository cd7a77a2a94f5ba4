"""The delivery of a client's requests.

They arrive also from a client that leaves at once or never began to follow.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hilt.cli.following import follow, stopped_by_ctrl_c
from hilt.engine.client import CrowdedEngineError, EngineClient, NoEngineError
from hilt.engine.errors import failure_of
from hilt.engine.events import EngineCommand, EngineHello, FailureCause, StateChanged
from hilt.engine.launch import is_served, spawn
from hilt.engine.run_files import RunFiles
from hilt.engine.server import MAX_CLIENTS, EngineServer
from hilt.store import RunState
from tests.unit.store.examples import run

UUID = "e" * 32


@contextmanager
def serving(home: Path, obeyed: list[EngineCommand], busy: threading.Event | None = None) -> Iterator[EngineServer]:
    """An engine's server. The first command keeps it until `busy` is set."""

    def obey(command: EngineCommand) -> None:
        if busy is not None and not obeyed:
            busy.wait()
        obeyed.append(command)

    with EngineServer(RunFiles(home, UUID), EngineHello(UUID, os.getpid()), obey) as server:
        try:
            yield server
        finally:
            if busy is not None:
                busy.set()


def test_a_command_of_who_leaves_at_once_is_obeyed(tmp_path: Path) -> None:
    """A command of a client that leaves at once is obeyed.

    The server is busy, and has an event for its clients before it reads their messages.
    """
    obeyed: list[EngineCommand] = []
    busy = threading.Event()
    with serving(tmp_path, obeyed, busy) as server:
        client = EngineClient.attach(tmp_path, UUID)
        server.obey(EngineCommand.PAUSE)
        server.publish(StateChanged(RunState.RUNNING, "x" * 1000))
        client.send(EngineCommand.STOP)
        left = threading.Thread(target=client.leave)
        left.start()
        busy.set()
        left.join()
    assert obeyed == [EngineCommand.PAUSE, EngineCommand.STOP]


def test_an_engine_that_ends_before_it_has_served_anybody_closes_well(tmp_path: Path) -> None:
    for _ in range(20):
        with serving(tmp_path, []) as server:
            pass
        assert server._loop.is_closed()


def test_who_leaves_an_engine_that_does_not_answer_is_told(tmp_path: Path) -> None:
    busy = threading.Event()
    with serving(tmp_path, [], busy) as server:
        client = EngineClient.attach(tmp_path, UUID)
        server.obey(EngineCommand.PAUSE)
        client.send(EngineCommand.STOP)
        with pytest.raises(NoEngineError, match="does not take commands"):
            client.leave(timeout=0.1)


def test_who_leaves_an_engine_that_died_unheard_is_told_that_it_is_gone() -> None:
    ours, engines = socket.socketpair()
    client = EngineClient(ours)
    client.send(EngineCommand.STOP)
    engines.close()  # with the command unread
    with pytest.raises(NoEngineError, match="the engine is gone"):
        client.leave()


def test_one_client_too_many_is_told_that_and_not_that_the_run_ended(tmp_path: Path) -> None:
    with serving(tmp_path, []), ExitStack() as stack, RunFiles(tmp_path, UUID).locked():
        for _ in range(MAX_CLIENTS):
            stack.enter_context(EngineClient.attach(tmp_path, UUID))
        with pytest.raises(CrowdedEngineError, match="^32 are attached to the engine, .* close one of them$") as error:
            follow(tmp_path, run(UUID), Console(file=io.StringIO()))
        assert failure_of(error.value) is FailureCause.BOARD
        assert is_served(tmp_path, UUID), "nobody starts another"


def test_ctrl_c_before_a_run_is_followed_stops_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    obeyed: list[EngineCommand] = []
    with serving(tmp_path, obeyed), pytest.raises(KeyboardInterrupt), stopped_by_ctrl_c(tmp_path, UUID):
        raise KeyboardInterrupt
    assert obeyed == [EngineCommand.STOP]
    assert capsys.readouterr().err == "hilt: eeeeeeee stops when the board is done; `hilt resume eeeeeeee` goes on\n"
    with pytest.raises(KeyboardInterrupt), stopped_by_ctrl_c(tmp_path, UUID):  # it has ended
        raise KeyboardInterrupt


def test_ctrl_c_before_the_engine_has_a_name_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            spawn(UUID, tmp_path, (sys.executable, "-c", "import time; time.sleep(100)"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert started[0].returncode == -signal.SIGKILL


def test_ctrl_c_while_an_engine_starts_ends_it(tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    engine = f"import os, time; open({str(fifo)!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    found: list[int] = []

    def press() -> None:
        found.append(int(fifo.read_text()))
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        pressing.start()
        with pytest.raises(KeyboardInterrupt):
            spawn(UUID, tmp_path, (sys.executable, "-c", engine))
    finally:
        signal.signal(signal.SIGINT, before)
    pressing.join()
    with pytest.raises(ProcessLookupError):
        os.kill(found[0], 0)
