"""The daemon between its clients and its board: one lease, requests in order, the journal before every answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hilt_board import daemon as module
from hilt_board.blobs import BlobError
from hilt_board.daemon import Daemon
from hilt_board.home import open_home
from hilt_board.journal import DiskFullError, JournalFullError
from hilt_board.protocol import (
    MAX_PENDING,
    Acknowledge,
    AgentFailure,
    AgentHello,
    AgentStatus,
    BitstreamLoaded,
    BlobStored,
    HasBlobs,
    LoadBitstream,
    Measure,
    Measured,
    MissingBlobs,
    NetworkRan,
    Record,
    Reset,
    Results,
    ResultsReport,
    RunNetwork,
    Shutdown,
    ShuttingDown,
    StatusReport,
    TrialRequest,
    UploadBlob,
    Welcome,
)
from hilt_board.worker_process import WorkerError

from .examples import CODE, MANIFEST, TRIAL

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

    async def load(self, message: LoadBitstream) -> Record:
        return BitstreamLoaded(message.bitstream, message.manifest.clock_hz, 0.5)

    async def run_network(self, message: RunNetwork, gone: asyncio.Event) -> Record:
        return NetworkRan("ok", "", None, message.inputs)

    async def reset(self, message: Reset) -> Record:
        return AgentFailure("not_programmed", "nothing to reset")

    async def close(self) -> None:
        pass


class Client:
    """A session that keeps the messages that the daemon sends to it."""

    def __init__(self) -> None:
        self.client: str | None = None
        self.closed = False
        self.gone = asyncio.Event()
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


@pytest.mark.parametrize(
    ("error", "code"), [(JournalFullError("too many"), "journal_full"), (DiskFullError("no room"), "disk_full")]
)
async def test_a_trial_whose_result_has_no_room_is_not_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    await leased(bench)
    await stored(bench)

    def no_room(key: str) -> None:
        raise error

    monkeypatch.setattr(bench.daemon._journal, "check_room", no_room)
    assert await bench.ask(trial(), 1) == AgentFailure(code, str(error))
    assert bench.board.measured == []


async def test_a_result_that_the_disk_does_not_take_is_refused_and_runs_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await leased(bench)
    await stored(bench)

    def full(*_: object) -> None:
        raise DiskFullError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(bench.daemon._journal, "append", full)
        assert await bench.ask(trial(), 1) == AgentFailure("disk_full", "no room")
    with monkeypatch.context() as broken:
        broken.setattr(bench.daemon._journal, "acknowledge", full)
        assert await bench.ask(Acknowledge(0), 2) == AgentFailure("disk_full", "no room")
    assert isinstance(await bench.ask(trial(), 3), Measured)
    assert bench.board.measured == ["run/1/0", "run/1/0"]


async def test_an_error_of_any_length_fits_a_message(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.error = RuntimeError("x" * 5000)
    failed = await bench.ask(trial(), 1)
    assert isinstance(failed, AgentFailure) and len(failed.message) == 4096
    bench.board.ready = _no_worker  # type: ignore[method-assign]
    refused = await bench.ask(AgentHello("me"), 2)
    assert isinstance(refused, AgentFailure) and refused.code == "internal"
    assert refused.message.startswith("no worker: xxx") and len(refused.message) == 4096


async def _no_worker() -> Any:
    raise WorkerError("x" * 5000)


async def test_a_load_and_a_network_need_their_blobs(bench: Bench) -> None:
    await leased(bench)
    other = "ab" * 32
    canary = replace(
        TRIAL, inputs=(replace(TRIAL.inputs[0], sha256=other),), output=replace(TRIAL.output, expected=BLOB)
    )
    refused = await bench.ask(LoadBitstream("cd" * 32, MANIFEST, canary, CODE), 1)
    names = ", ".join(["cd" * 32, other, BLOB])
    assert refused == AgentFailure("blob_missing", f"not on the board: {names}: put them first")
    refused = await bench.ask(RunNetwork(BLOB, "net.hilt", 1.0, 1, 1, False, b"arrays"), 2)
    assert refused == AgentFailure("blob_missing", f"not on the board: {BLOB}: put them first")
    assert await bench.ask(Reset("soft"), 3) == AgentFailure("not_programmed", "nothing to reset")
    await stored(bench)
    assert await bench.ask(LoadBitstream(BLOB, MANIFEST), 4) == BitstreamLoaded(BLOB, MANIFEST.clock_hz, 0.5)
    ran = await bench.ask(RunNetwork(BLOB, "net.hilt", 1.0, 1, 1, False, b"arrays"), 5)
    assert ran == NetworkRan("ok", "", None, b"arrays")


async def test_the_code_of_a_load_and_the_inputs_of_a_network_count_as_queued(bench: Bench) -> None:
    await leased(bench)
    await stored(bench)
    bench.board.gate.clear()
    await bench.daemon._handle(bench.client, 1, trial())  # type: ignore[arg-type]
    await asyncio.sleep(0)  # it is on the board
    sizes = []
    for number, message in enumerate(
        (
            LoadBitstream(BLOB, MANIFEST, TRIAL, CODE),
            RunNetwork(BLOB, "n.hilt", 1.0, 1, 1, False, b"12345"),
            Reset("soft"),
        ),
        2,
    ):
        await bench.daemon._handle(bench.client, number, message)  # type: ignore[arg-type]
        sizes.append(bench.daemon._queued_bytes)
    assert sizes == [len(CODE), len(CODE) + 5, len(CODE) + 5]
    bench.board.gate.set()
    await bench.client.reply(4)
    assert bench.daemon._queued_bytes == 0


async def test_a_frame_of_requests_beyond_the_limit_of_bytes_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first that waits may have any size; with it, the others have the rest of the limit and not a byte more."""
    assert module._MAX_QUEUED_BYTES == 2 * 64 * 1024 * 1024
    await leased(bench)
    await stored(bench)
    monkeypatch.setattr(module, "_MAX_QUEUED_BYTES", len(CODE) - 1)
    bench.board.gate.clear()
    for number in (1, 2):  # on the board, and waiting
        await bench.daemon._handle(bench.client, number, trial(number))  # type: ignore[arg-type]
        await asyncio.sleep(0)
    assert bench.client.sent.keys() == {100, 101}
    refused = await bench.ask(trial(3), 3)
    assert isinstance(refused, AgentFailure) and refused.code == "queue_full"
    assert bench.daemon._queued_bytes == len(CODE)
    bench.board.gate.set()
    assert isinstance(await bench.client.reply(2), Measured)


async def test_the_blobs_of_the_loaded_program_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await leased(bench)
    canary = trial().trial
    bench.board.program = SimpleNamespace(bitstream="b" * 64, canary=canary, manifest=MANIFEST)  # type: ignore[assignment]
    kept: list[set[str]] = []

    def put(message: UploadBlob, keep: set[str]) -> Record:
        kept.append(keep)
        raise BlobError("blob_order", "out of order")

    monkeypatch.setattr(bench.daemon._blobs, "put", put)
    assert await bench.ask(UploadBlob(BLOB, 64, 0, DATA), 1) == AgentFailure("blob_order", "out of order")
    assert kept == [{"b" * 64, BLOB}]
    status = await bench.ask(AgentStatus(), 2)
    assert isinstance(status, StatusReport) and status.bitstream == "b" * 64
    welcome = await bench.ask(AgentHello("me"), 3)
    assert isinstance(welcome, Welcome) and (welcome.bitstream, welcome.clock_hz) == ("b" * 64, MANIFEST.clock_hz)


@pytest.mark.parametrize(("bytes_left", "fitting"), [(-1, 2), (0, 3), (10**6, 5)])
async def test_a_report_holds_as_many_results_as_fit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, bytes_left: int, fitting: int
) -> None:
    kept = [bench.daemon._journal.append(Measured(f"run/{number}/0", "ok")) for number in range(5)]
    size = len(json.dumps(kept[0].to_fields()))
    monkeypatch.setattr(module, "_REPORT_BYTES", 3 * size + bytes_left)
    await leased(bench)
    report = await bench.ask(Results(0), 1)
    assert report == ResultsReport(tuple(kept[:fitting]), more=fitting < 5)
    monkeypatch.setattr(module, "_REPORT_BYTES", size - 1)
    assert await bench.ask(Results(4), 2) == ResultsReport((kept[4],), more=False)


async def test_half_a_header_is_for_results(bench: Bench) -> None:
    assert module._REPORT_BYTES == 1 << 19


async def test_exactly_as_many_results_as_a_report_may_have_are_all(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RESULTS", 3)
    await leased(bench)
    for number in range(4):
        bench.daemon._journal.append(Measured(f"run/{number}/0", "ok"))
    reports = [await bench.ask(Results(since), 10 + since) for since in (0, 1)]
    assert [(len(each.results), each.more) for each in reports] == [(3, True), (3, False)]  # type: ignore[attr-defined]


def test_a_virtual_board_names_its_boot_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILT_BOOT_ID", "first")
    assert module.boot_id() == "first"
    monkeypatch.delenv("HILT_BOOT_ID")
    assert len(module.boot_id()) == 36
