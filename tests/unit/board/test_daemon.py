"""The daemon between its clients and its board: one lease, requests in order, the journal before every answer."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt_board import daemon as module
from hilt_board.daemon import Daemon
from hilt_board.home import open_home
from hilt_board.protocol import (
    MAX_PENDING,
    Acknowledge,
    AgentFailure,
    AgentHello,
    AgentStatus,
    BlobStored,
    HasBlobs,
    Measure,
    Measured,
    MissingBlobs,
    Record,
    Reset,
    Results,
    ResultsReport,
    Shutdown,
    ShuttingDown,
    StatusReport,
    TrialRequest,
    UploadBlob,
    Welcome,
)

from .examples import CODE, TRIAL

DATA = bytes(64)
BLOB = hashlib.sha256(DATA).hexdigest()


class FakeBoard:
    """A board that answers every trial at once, or by `reply`."""

    state = "ready"
    program = None
    worker_pid = 7
    worker_restarts = 0
    trials = 0

    def __init__(self) -> None:
        self.measured: list[str] = []
        self.reply: Record | None = None
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def ready(self) -> Any:
        return SimpleNamespace(device="d", python="3.8", pynq="2.7.0", numpy="1", time_scale=1.0)

    async def measure(self, message: Measure) -> Record:
        await self.gate.wait()
        self.measured.append(message.trial.key)
        if self.error is not None:
            raise self.error
        return self.reply or Measured(message.trial.key, "ok", cycles=(5.0,), microseconds=(0.05,))

    async def reset(self, message: Reset) -> Record:
        return AgentFailure("not_programmed", "nothing to reset")

    async def close(self) -> None:
        pass


class Client:
    """A session that keeps the messages that the daemon sends to it."""

    def __init__(self) -> None:
        self.client: str | None = None
        self.closed = False
        self.heard = float("inf")
        self.sent: dict[int, Record] = {}
        self.answered = asyncio.Condition()

    def expect(self) -> None:
        pass

    async def send(self, request: int, reply: Record) -> None:
        async with self.answered:
            self.sent[request] = reply
            self.answered.notify_all()

    answer = send

    async def close(self) -> None:
        self.closed = True

    async def reply(self, request: int) -> Record:
        async with self.answered:
            await asyncio.wait_for(self.answered.wait_for(lambda: request in self.sent), 20)
        return self.sent[request]


class Bench:
    def __init__(self, home: Path) -> None:
        self.board = FakeBoard()
        self.daemon = Daemon(open_home(), "hash", 10.0)
        self.daemon._board = self.board  # type: ignore[assignment]
        self.client = Client()
        self._device = asyncio.ensure_future(self.daemon._serve_device())

    async def ask(self, message: Record, number: int = 1, client: Client | None = None) -> Record:
        session = client or self.client
        await self.daemon._handle(session, number, message)  # type: ignore[arg-type]
        return await session.reply(number)

    async def close(self) -> None:
        self._device.cancel()
        self.daemon._journal.close()


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setenv("HILT_AGENT_HOME", str(tmp_path / "agent"))
    made = Bench(tmp_path)
    yield made
    await made.close()


async def leased(bench: Bench, client: str = "me") -> None:
    assert isinstance(await bench.ask(AgentHello(client), 100), Welcome)


def trial(number: int = 1) -> Measure:
    inputs = tuple(replace(each, sha256=BLOB) for each in TRIAL.inputs)
    made: TrialRequest = replace(
        TRIAL, key=f"run/{number}/0", inputs=inputs, output=replace(TRIAL.output, expected=BLOB)
    )
    return Measure(made, CODE)


async def stored(bench: Bench) -> None:
    assert await bench.ask(UploadBlob(BLOB, len(DATA), 0, DATA), 101) == BlobStored(BLOB, len(DATA), True)


async def test_nothing_but_the_state_is_told_without_the_lease(bench: Bench) -> None:
    assert isinstance(await bench.ask(AgentStatus(), 1), StatusReport)
    for number, message in enumerate((HasBlobs((BLOB,)), trial(), Reset("soft"), Shutdown(), Results(0)), 2):
        refused = await bench.ask(message, number)
        assert isinstance(refused, AgentFailure) and refused.code == "hello_needed", message
    assert not bench.daemon._stopping.is_set() and bench.board.measured == []


async def test_the_board_has_one_holder_whose_name_is_told(bench: Bench) -> None:
    await leased(bench, "ann")
    other = Client()
    refused = await bench.ask(AgentHello("bob"), 1, other)
    assert isinstance(refused, AgentFailure) and refused.code == "board_busy" and "in use by ann" in refused.message
    assert other.closed and not bench.client.closed
    assert (await bench.ask(AgentStatus(), 2)).holder == "ann"  # type: ignore[attr-defined]


async def test_a_new_session_of_the_same_client_replaces_its_old_one(bench: Bench) -> None:
    await leased(bench, "ann")
    again = Client()
    assert isinstance(await bench.ask(AgentHello("ann"), 1, again), Welcome)
    assert bench.client.closed
    refused = await bench.ask(HasBlobs((BLOB,)), 2)
    assert isinstance(refused, AgentFailure) and refused.code == "hello_needed"


async def test_the_lease_of_a_silent_holder_passes_on(bench: Bench) -> None:
    await leased(bench, "ann")
    bench.client.heard = -1e9
    other = Client()
    assert isinstance(await bench.ask(AgentHello("bob"), 1, other), Welcome)
    assert bench.client.closed and bench.daemon._holder is other  # type: ignore[comparison-overlap]


async def test_a_trial_is_run_once_and_answered_from_the_journal_afterwards(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    first = await bench.ask(trial(), 1)
    assert isinstance(first, Measured) and first.sequence == 1
    assert await bench.ask(trial(), 2) == first
    assert bench.board.measured == ["run/1/0"]
    report = await bench.ask(Results(0), 3)
    assert isinstance(report, ResultsReport) and report.results == (first,) and not report.more
    await bench.ask(Acknowledge(1), 4)
    assert len(bench.daemon._journal) == 0


async def test_a_trial_whose_tensors_are_not_there_is_not_run(bench: Bench) -> None:
    await leased(bench)
    refused = await bench.ask(trial(), 1)
    assert isinstance(refused, AgentFailure) and refused.code == "blob_missing" and BLOB in refused.message
    assert bench.board.measured == []
    assert await bench.ask(HasBlobs((BLOB,)), 2) == MissingBlobs((BLOB,))


async def test_a_refusal_is_no_result(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.reply = AgentFailure("out_of_memory", "no memory")
    assert await bench.ask(trial(), 1) == bench.board.reply
    assert len(bench.daemon._journal) == 0
    bench.board.reply = None
    assert isinstance(await bench.ask(trial(), 2), Measured)


async def test_a_tensor_that_could_not_be_used_is_read_again(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.reply = AgentFailure("blob_missing", "has another size")
    await bench.ask(trial(), 1)
    (open_home().blobs / BLOB).write_bytes(b"damaged")
    assert await bench.ask(HasBlobs((BLOB,)), 2) == MissingBlobs((BLOB,))


async def test_an_error_of_one_request_leaves_the_next_one_served(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.error = RuntimeError("a bug")
    failed = await bench.ask(trial(), 1)
    assert isinstance(failed, AgentFailure) and failed.code == "internal" and "a bug" in failed.message
    bench.board.error = None
    assert isinstance(await bench.ask(trial(2), 2), Measured)


async def test_so_many_requests_wait_and_no_more(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.gate.clear()
    for number in range(MAX_PENDING + 1):  # one is on the board
        await bench.daemon._handle(bench.client, number, trial(number))  # type: ignore[arg-type]
        await asyncio.sleep(0)
    refused = await bench.ask(trial(MAX_PENDING + 1), MAX_PENDING + 1)
    assert isinstance(refused, AgentFailure) and refused.code == "queue_full"
    bench.board.gate.set()
    assert isinstance(await bench.client.reply(MAX_PENDING), Measured)
    assert bench.board.measured == [f"run/{number}/0" for number in range(MAX_PENDING + 1)]
    assert bench.daemon._queued_bytes == 0


async def test_requests_wait_for_so_many_bytes_but_one_always_may(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await leased(bench)
    await stored(bench)
    monkeypatch.setattr(module, "_MAX_QUEUED_BYTES", 2 * len(CODE))
    bench.board.gate.clear()
    for number in range(3):
        await bench.daemon._handle(bench.client, number, trial(number))  # type: ignore[arg-type]
        await asyncio.sleep(0)
    refused = await bench.ask(trial(3), 3)
    assert isinstance(refused, AgentFailure) and refused.code == "queue_full"
    bench.board.gate.set()
    assert isinstance(await bench.client.reply(2), Measured)


async def test_a_client_that_is_gone_has_nothing_run(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.gate.clear()
    for number in (1, 2):
        await bench.daemon._handle(bench.client, number, trial(number))  # type: ignore[arg-type]
        await asyncio.sleep(0)
    bench.client.closed = True
    bench.board.gate.set()
    await asyncio.wait_for(bench.daemon._queue.join(), 20)
    assert bench.board.measured == ["run/1/0"]


async def test_a_daemon_that_ends_runs_nothing_more(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    assert await bench.ask(Shutdown(), 1) == ShuttingDown()
    refused = await bench.ask(trial(), 2)
    assert isinstance(refused, AgentFailure) and refused.code == "shutting_down"


async def test_a_reply_is_no_request(bench: Bench) -> None:
    await leased(bench)
    refused = await bench.ask(ShuttingDown(), 1)
    assert isinstance(refused, AgentFailure) and refused.code == "bad_message"


def test_the_end_of_a_log_is_as_long_as_asked_for(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"0123456789")
    assert module.tail(tmp_path / "log", 4) == b"6789"
    assert module.tail(tmp_path / "log", 10) == module.tail(tmp_path / "log", 99) == b"0123456789"
