"""A worker as the daemon sees it: its start, answers with deadlines, signs of life, and the reason of its end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hilt_board import worker_process as module
from hilt_board.protocol import (
    Beat,
    Frame,
    FrameDecoder,
    Ready,
    Record,
    Reset,
    ResetDone,
    StopNetwork,
    encode_frame,
    from_frame,
    to_frame,
)
from hilt_board.worker_process import WorkerDiedError, WorkerError, WorkerProcess, WorkerSilentError

READY = Ready("Pynq-Z2", "3.8.2", "3.0.1", "1.21", 4.0)
DONE = ResetDone("soft", True, 0.5)
HERE = Path(module.__file__).resolve().parents[1]


def wire(*messages: Record, request: int = 0) -> bytes:
    return b"".join(encode_frame(to_frame(each, request)) for each in messages)


class Process:
    """A process of asyncio's, which ends when `end` is called."""

    def __init__(self) -> None:
        self.pid = 4711
        self.stderr = asyncio.StreamReader()
        self.returncode: int | None = None
        self._over = asyncio.Event()

    def end(self, code: int, last: bytes = b"") -> None:
        self.returncode = code
        self.stderr.feed_data(last)
        self.stderr.feed_eof()
        self._over.set()

    async def wait(self) -> int | None:
        await self._over.wait()
        return self.returncode


class Bench:
    """A worker, its process, and the other end of its socket."""

    def __init__(self) -> None:
        self.process = Process()
        ours, self.far = socket.socketpair()
        ours.setblocking(False)
        self.worker = WorkerProcess(self.process, ours)  # type: ignore[arg-type]
        self.killed: list[tuple[int, int]] = []

    def killpg(self, group: int, number: int) -> None:
        self.killed.append((group, number))
        self.process.end(-number)

    def ask(self, seconds: float = 60.0, silence: float = 60.0) -> Awaitable[Record]:
        return self.worker.request(Reset("soft"), seconds, silence)

    def asked(self) -> list[tuple[int, Record]]:
        return [from_frame(frame) for frame in FrameDecoder().feed(self.far.recv(1 << 16))]


Run = Callable[[Callable[[Bench], Awaitable[Any]]], Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setattr("hilt_board.leftovers.SOCKETS", tmp_path)

    def run(act: Callable[[Bench], Awaitable[Any]]) -> Any:
        async def within() -> Any:
            bench = Bench()
            monkeypatch.setattr(os, "killpg", bench.killpg)
            try:
                return await act(bench)
            finally:
                bench.worker._stderr.cancel()
                bench.far.close()

        return asyncio.run(within())

    return run


def test_requests_are_numbered_and_signs_of_life_are_no_answers(run: Run) -> None:
    async def act(bench: Bench) -> list[Any]:
        bench.far.sendall(wire(Beat(), Beat(), DONE) + wire(Beat(), DONE))
        answers = [await bench.ask(), await bench.ask()]
        return [*answers, bench.asked(), bench.worker.alive, bench.worker.pid, bench.killed]

    first, second, asked, alive, pid, killed = run(act)
    assert first == second == DONE
    assert asked == [(1, Reset("soft")), (2, Reset("soft"))]
    assert (alive, pid, killed) == (True, 4711, [])


def test_a_worker_works_from_its_first_sign_of_life_to_its_answer(run: Run) -> None:
    async def act(bench: Bench) -> list[bool]:
        asking = asyncio.ensure_future(bench.ask())
        states = []
        for data in (b"", wire(Beat()), wire(DONE)):
            bench.far.sendall(data)
            for _ in range(50):
                await asyncio.sleep(0)
            states.append(bench.worker.working)
        assert await asking == DONE
        return states

    assert run(act) == [False, True, False]


@pytest.mark.parametrize("began", [False, True])
@pytest.mark.parametrize(
    ("seconds", "silence", "text"),
    [
        (0.01, 60.0, "no answer in time from the worker; it was killed"),
        (60.0, 0.01, "no sign of life for 0.01 s from the worker; it was killed"),
    ],
)
def test_a_worker_that_is_late_is_killed(run: Run, seconds: float, silence: float, text: str, began: bool) -> None:
    async def act(bench: Bench) -> None:
        bench.far.sendall(wire(*[Beat()] * began))
        with pytest.raises(WorkerSilentError) as caught:
            await bench.ask(seconds, silence)
        assert str(caught.value) == text and caught.value.taken is began
        assert bench.killed == [(4711, signal.SIGKILL)]
        assert not bench.worker.alive and not bench.worker.working and bench.worker._connection.fileno() == -1

    run(act)


def test_signs_of_life_do_not_lengthen_the_whole(run: Run) -> None:
    async def act(bench: Bench) -> None:
        async def beat() -> None:
            while True:
                bench.far.sendall(wire(Beat()))
                await asyncio.sleep(0.002)

        beating = asyncio.ensure_future(beat())
        with pytest.raises(WorkerSilentError, match="no answer in time"):
            await bench.ask(seconds=0.03, silence=60.0)
        beating.cancel()

    run(act)


def test_a_worker_that_takes_no_request_is_killed(run: Run) -> None:
    async def act(bench: Bench) -> None:
        with pytest.raises(BlockingIOError):
            while True:
                bench.worker._connection.send(bytes(1 << 16))
        with pytest.raises(WorkerSilentError, match=r"worker took no request for 0\.01 s"):
            await bench.ask(seconds=0.01)
        assert bench.killed == [(4711, signal.SIGKILL)]

    run(act)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (7, "worker ended with exit code 7: ImportError: no pynq"),
        (0, "worker ended with exit code 0: ImportError: no pynq"),
        (-11, "worker was ended by signal 11 (SIGSEGV)"),
    ],
)
@pytest.mark.parametrize("sending", [False, True])
def test_its_end_is_told_with_its_last_line(run: Run, code: int, text: str, sending: bool) -> None:
    async def act(bench: Bench) -> None:
        if sending:
            bench.far.close()  # no request reaches it
        else:
            bench.far.shutdown(socket.SHUT_WR)
        bench.process.end(code, b"Traceback\nImportError: no pynq\n")
        for _ in range(9):
            await asyncio.sleep(0)
        with pytest.raises(WorkerDiedError) as caught:
            await bench.ask()
        assert str(caught.value) == text and not caught.value.taken
        assert bench.killed == [], "it has ended by itself"

    run(act)


def test_its_end_and_its_last_line_may_come_after_that_of_its_connection(run: Run) -> None:
    async def act(bench: Bench) -> None:
        bench.far.shutdown(socket.SHUT_WR)
        asyncio.get_running_loop().call_later(0.005, bench.process.end, 7, b"ImportError: no pynq\n")
        with pytest.raises(WorkerDiedError, match=r"^worker ended with exit code 7: ImportError: no pynq$"):
            await bench.ask()
        assert bench.killed == []

    run(act)


def test_a_worker_that_closes_its_connection_alone_is_killed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.01)

    async def act(bench: Bench) -> None:
        bench.far.shutdown(socket.SHUT_WR)
        with pytest.raises(WorkerDiedError, match=r"^worker closed its connection; it was killed$"):
            await bench.ask()
        assert bench.killed == [(4711, signal.SIGKILL)]

    run(act)


def test_a_worker_whose_bytes_are_no_frames_has_died(run: Run) -> None:
    async def act(bench: Bench) -> None:
        bench.far.sendall(b"no frame at all, but a line of text")
        bench.process.end(3, b"a library printed this\n")
        for _ in range(9):
            await asyncio.sleep(0)
        with pytest.raises(WorkerDiedError, match=r"^worker ended with exit code 3: a library printed this \(.+\)$"):
            await bench.ask()

    run(act)


def test_a_worker_that_says_what_no_worker_says_is_gone_before_it_is_replaced(run: Run) -> None:
    """Its next words would be taken for the answer to the next request, and a second worker would get the device."""

    async def act(bench: Bench) -> None:
        bench.far.sendall(encode_frame(Frame({"id": 1, "type": "boat"})) + wire(DONE))
        with pytest.raises(WorkerDiedError, match=r"^worker spoke nonsense: .*boat.*; it was killed$"):
            await bench.ask()
        assert bench.killed == [(4711, signal.SIGKILL)] and not bench.worker.alive

    run(act)


def test_it_is_told_without_a_number_and_without_an_answer(run: Run) -> None:
    async def act(bench: Bench) -> None:
        bench.worker.tell(StopNetwork())
        assert bench.asked() == [(0, StopNetwork())]
        bench.far.close()
        bench.worker.tell(StopNetwork())  # it is ending: nobody hears

    run(act)


def test_a_kill_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    async def act(bench: Bench) -> None:
        (tmp_path / "pynq.x.4711.socket").touch()
        (tmp_path / "pynq.x.4712.socket").touch()
        await bench.worker.kill()
        assert [path.name for path in tmp_path.iterdir()] == ["pynq.x.4712.socket"], "another process has that"
        assert bench.worker._stderr.done() and bench.worker._connection.fileno() == -1
        bench.worker.end()
        assert len(bench.killed) == 1, "an ended process is not killed again"

    run(act)


def test_a_worker_that_the_kernel_holds_is_given_up(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.01)

    async def act(bench: Bench) -> None:
        monkeypatch.setattr(os, "killpg", lambda *_: None)
        await bench.worker.kill()
        await asyncio.sleep(0)
        assert bench.worker._stderr.cancelled() and bench.worker._connection.fileno() == -1

    run(act)
    assert "worker 4711 does not end" in caplog.text


def test_a_group_that_has_just_gone_is_no_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(bench: Bench) -> None:
        def gone(*_: int) -> None:
            raise ProcessLookupError

        monkeypatch.setattr(os, "killpg", gone)
        bench.worker.end()

    run(act)


def test_an_agent_runs_from_its_archive_or_from_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert module.agent_archive() is None
    assert module.agent_command("worker", "9") == [sys.executable, "-m", "hilt_board", "worker", "9"]
    assert module.agent_environment() == {**os.environ, "PYTHONPATH": f"{HERE}:/elsewhere"}
    monkeypatch.delenv("PYTHONPATH")
    assert module.agent_environment()["PYTHONPATH"] == str(HERE)
    archive = tmp_path / "agent.pyz"
    archive.touch()
    monkeypatch.setattr(module, "_ROOT", archive)
    assert module.agent_archive() == archive
    assert module.agent_command("worker", "9") == [sys.executable, str(archive), "worker", "9"]
    assert module.agent_environment() == dict(os.environ)


START = """
import os, sys
print("to nobody")
print("group", os.getsid(0) == os.getpid(), "input", os.read(0, 9), file=sys.stderr, flush=True)
os.write(int(sys.argv[2]), bytes.fromhex({frames!r}))
os.read(int(sys.argv[2]), 9)
"""


def started(monkeypatch: pytest.MonkeyPatch, frames: bytes, words: list[str] | None = None) -> Any:
    """Start a process that says `frames`, and end it; return its first words, or the error."""
    program = words or [sys.executable, "-ISc", START.format(frames=frames.hex())]
    monkeypatch.setattr(module, "agent_command", lambda *given: [*program, *given])

    async def within() -> Any:
        worker = await WorkerProcess.start()
        assert worker.alive and not worker.working
        await worker.kill()
        assert not worker.alive
        return worker.ready

    ends: list[socket.socket] = []
    make = socket.socketpair

    def socketpair(*given: Any) -> tuple[socket.socket, socket.socket]:
        pair = make(*given)
        ends.extend(pair)
        return pair

    monkeypatch.setattr(socket, "socketpair", socketpair)
    try:
        return asyncio.run(within())
    except (WorkerError, OSError) as error:
        return error
    finally:
        assert len(ends) >= 2 and {each.fileno() for each in ends} == {-1}


def test_a_start_ends_when_the_worker_has_the_device(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    assert started(monkeypatch, wire(READY)) == READY
    assert caplog.messages == ["group True input b''"] and capfd.readouterr() == ("", "")


def test_a_worker_that_begins_with_anything_else_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    error = started(monkeypatch, wire(DONE))
    assert isinstance(error, WorkerDiedError) and str(error) == "worker began with ResetDone"


def test_a_worker_that_does_not_come_up_is_named_with_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    error = started(monkeypatch, b"", ["/bin/sh", "-c", "echo no device >&2; exit 5"])
    assert isinstance(error, WorkerDiedError) and str(error) == "worker ended with exit code 5: no device"


def test_a_program_that_is_not_there_is_an_error_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(started(monkeypatch, b"", ["/no/such/program"]), OSError)
    assert not WorkerError().taken, "it has begun with nothing"


def test_a_worker_whose_start_is_cancelled_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon stops while its first worker still imports pynq: nobody else would end it."""
    monkeypatch.setattr(module, "agent_command", lambda *given: ["/bin/sh", "-c", "echo here >&2; exec sleep 600"])
    begun: list[int] = []

    async def within() -> None:
        waits = asyncio.Event()

        async def answer(worker: WorkerProcess, *limits: float) -> Record:
            begun.append(worker.pid)
            waits.set()
            return await wait_for_answer(worker, *limits)

        wait_for_answer = WorkerProcess._answer
        monkeypatch.setattr(WorkerProcess, "_answer", answer)
        task = asyncio.ensure_future(WorkerProcess.start())
        await waits.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(within())
    with pytest.raises(ProcessLookupError):
        os.kill(begun[0], 0)
