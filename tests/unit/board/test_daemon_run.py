"""The daemon from its first connection to its end: clients on its socket, SIGTERM, and all that it must let go."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt_board import daemon as module
from hilt_board.daemon import Daemon
from hilt_board.home import open_home
from hilt_board.protocol import (
    AgentFailure,
    AgentHello,
    AgentStatus,
    FrameDecoder,
    Measured,
    Record,
    Shutdown,
    ShuttingDown,
    StatusReport,
    UploadBlob,
    Welcome,
    encode_frame,
    from_frame,
    to_frame,
)

from .test_daemon import BLOB, DATA, FakeBoard, trial


class RecordingBoard(FakeBoard):
    """A board that notes when its worker is asked for, and its end."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()
        self.closed = False
        self.worker: asyncio.Future[None] | None = None
        """Set: the worker is not there before this is."""

    async def ready(self) -> Any:
        self.started.set()
        if self.worker is not None:
            await self.worker
        return await super().ready()

    async def close(self) -> None:
        self.closed = True


class Connection:
    """One client's socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._decoder = FrameDecoder()
        self._replies: list[tuple[int, Record]] = []

    async def send(self, number: int, message: Record) -> None:
        self.writer.write(encode_frame(to_frame(message, number)))
        await self.writer.drain()

    async def reply(self) -> tuple[int, Record]:
        while not self._replies:
            data = await asyncio.wait_for(self.reader.read(1 << 16), 20)
            assert data, "the daemon has closed the connection"
            self._replies += [from_frame(frame) for frame in self._decoder.feed(data)]
        return self._replies.pop(0)

    async def ask(self, message: Record, number: int = 1) -> Record:
        await self.send(number, message)
        answered, reply = await self.reply()
        assert answered == number
        return reply

    async def ended(self) -> bool:
        return await asyncio.wait_for(self.reader.read(1), 20) == b""

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


class Running:
    """A daemon that serves on a socket."""

    def __init__(self) -> None:
        self.board = RecordingBoard()
        self.daemon = Daemon(open_home(), "hash", 10.0)
        self.daemon._board = self.board  # type: ignore[assignment]
        self.ready = asyncio.Event()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind("agent.sock")
        self._listening.listen()
        self.end = asyncio.ensure_future(self.daemon.run(self._listening, self.ready.set))

    async def connect(self) -> Connection:
        await asyncio.wait_for(self.ready.wait(), 20)
        return Connection(*await asyncio.open_unix_connection("agent.sock"))

    async def ended(self) -> None:
        await asyncio.wait_for(asyncio.shield(self.end), 20)


@pytest.fixture
async def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    made = Running()
    yield made
    made.end.cancel()
    await asyncio.gather(made.end, return_exceptions=True)


async def until(holds: Any) -> None:
    """Let the other tasks run until something holds."""
    for _ in range(10_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_shutdown_ends_everything(running: Running) -> None:
    client, other = await running.connect(), await running.connect()
    assert isinstance(await client.ask(AgentHello("me")), Welcome)
    assert isinstance(await other.ask(AgentStatus()), StatusReport)
    before = open_files()
    assert await client.ask(Shutdown(), 2) == ShuttingDown()
    await running.ended()
    assert await client.ended() and await other.ended()
    assert running.board.closed
    assert open_files() < before - 2, "two connections, the socket and the journal"
    with pytest.raises(OSError, match="Bad file descriptor"):
        running.daemon._journal.check_room()
    with pytest.raises(ConnectionRefusedError):
        await running.connect()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it(running: Running, number: signal.Signals) -> None:
    await running.connect()
    signal.raise_signal(number)
    await running.ended()
    assert running.board.closed


async def test_the_trial_on_the_board_is_answered_before_the_end_and_the_next_is_refused(running: Running) -> None:
    client = await running.connect()
    await client.ask(AgentHello("me"))
    await client.ask(UploadBlob(BLOB, len(DATA), 0, DATA))
    running.board.gate.clear()
    await client.send(1, trial(1))
    await client.send(2, trial(2))
    assert await client.ask(Shutdown(), 3) == ShuttingDown()
    assert not running.end.done()
    running.board.gate.set()
    number, measured = await client.reply()
    assert number == 1 and isinstance(measured, Measured)
    number, refused = await client.reply()
    assert number == 2 and isinstance(refused, AgentFailure) and refused.code == "shutting_down"
    await running.ended()
    assert running.board.measured == ["run/1/0"]


async def test_the_worker_is_started_before_a_client_comes_and_not_waited_for(running: Running) -> None:
    running.board.worker = asyncio.get_running_loop().create_future()
    await asyncio.wait_for(running.board.started.wait(), 20)
    client = await running.connect()
    assert isinstance(await client.ask(AgentStatus()), StatusReport)
    signal.raise_signal(signal.SIGTERM)
    await running.ended()
    await until(running.board.worker.cancelled)


async def test_the_ninth_connection_is_refused_until_one_of_eight_ends(running: Running) -> None:
    clients = [await running.connect() for _ in range(8)]
    for client in clients:
        await client.ask(AgentStatus())
    ninth = await running.connect()
    number, refused = await ninth.reply()
    assert number == 0 and isinstance(refused, AgentFailure)
    assert (refused.code, refused.message) == ("board_busy", "too many connections")
    assert await ninth.ended()
    await clients.pop().close()
    await until(lambda: len(running.daemon._sessions) == 7)
    assert isinstance(await (await running.connect()).ask(AgentStatus()), StatusReport)


async def test_the_lease_ends_with_its_holders_connection_and_no_other(running: Running) -> None:
    holder, guest, watcher = [await running.connect() for _ in range(3)]
    assert isinstance(await holder.ask(AgentHello("ann")), Welcome)
    await guest.ask(AgentStatus())
    await guest.close()
    await until(lambda: len(running.daemon._sessions) == 2)
    assert (await watcher.ask(AgentStatus())).holder == "ann"  # type: ignore[attr-defined]
    await holder.close()
    await until(lambda: len(running.daemon._sessions) == 1)
    assert (await watcher.ask(AgentStatus())).holder is None  # type: ignore[attr-defined]
    assert isinstance(await watcher.ask(AgentHello("bob")), Welcome)


async def test_a_client_that_closes_its_side_gets_its_answers(running: Running) -> None:
    client = await running.connect()
    await client.ask(AgentHello("me"))
    await client.ask(UploadBlob(BLOB, len(DATA), 0, DATA))
    running.board.gate.clear()
    await client.send(1, trial(1))
    client.writer.write_eof()
    running.board.gate.set()
    number, measured = await client.reply()
    assert number == 1 and isinstance(measured, Measured)
    assert await client.ended()


def test_the_clock_of_the_lease_and_of_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that was heard 30 s ago has the board; half a second later it is free."""
    now = SimpleNamespace(monotonic=lambda: now.seconds, seconds=1000.0)
    monkeypatch.setattr(module, "time", now)
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    monkeypatch.setattr("os.statvfs", lambda path: SimpleNamespace(f_bavail=3, f_frsize=4096))

    async def statuses() -> list[StatusReport]:
        daemon = Daemon(open_home(), "hash", 10.0)
        daemon._board = FakeBoard()  # type: ignore[assignment]
        daemon._holder = SimpleNamespace(client="ann", heard=1000.0)  # type: ignore[assignment]
        found = []
        for seconds in (1030.0, 1030.5):
            now.seconds = seconds
            found.append(daemon._status())
        daemon._journal.close()
        return found

    first, second = asyncio.run(statuses())
    assert (first.holder, second.holder) == ("ann", None)
    assert (first.uptime_seconds, second.uptime_seconds) == (30.0, 30.5)
    assert first.free_bytes == 3 * 4096
