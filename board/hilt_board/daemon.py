"""The supervisor: a Unix socket, one lease, a queue to the device, and the journal before every answer.

It lives through the loss of its client and of its worker. It never touches the device itself.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional, Set, Tuple, Type

from .blobs import BlobError, BlobStore
from .board import Board
from .home import Home
from .inspection import temperature
from .journal import DiskFullError, Journal, JournalError, JournalFullError
from .protocol import (
    CHUNK_BYTES,
    MAX_BLOB_BYTES,
    MAX_BODY_BYTES,
    MAX_HEADER_BYTES,
    MAX_PENDING,
    MAX_RESULTS,
    Acknowledge,
    Acknowledged,
    AgentFailure,
    AgentHello,
    AgentStatus,
    HasBlobs,
    Limits,
    LoadBitstream,
    Log,
    LogText,
    Measure,
    Measured,
    MissingBlobs,
    ProtocolError,
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
from .session import HostSession
from .worker_process import WorkerError

_LOG = logging.getLogger("hilt.daemon")
_MAX_SESSIONS = 8
LEASE_SECONDS = 30.0
"""A client beats every few seconds. One that has been silent for so long may be gone: the next may have the board."""
_MAX_QUEUED_BYTES = 2 * MAX_BODY_BYTES
_REPORT_BYTES = MAX_HEADER_BYTES // 2


@dataclass(frozen=True)
class _Request:
    session: HostSession
    number: int
    message: Record


class Daemon:
    """One board's agent."""

    def __init__(self, home: Home, agent: str, silence_seconds: float) -> None:
        """`agent`: SHA-256 of the archive. `silence_seconds`: see Board. Needs a running event loop."""
        self._home = home
        self._agent = agent
        self._started = time.monotonic()
        self._journal = Journal(home.journal)
        if self._journal.damaged:
            _LOG.warning("journal had %d damaged lines; they are dropped", self._journal.damaged)
        self._blobs = BlobStore(home.blobs, home.incoming)
        self._board = Board(silence_seconds)
        self._queue: "asyncio.Queue[_Request]" = asyncio.Queue()
        self._queued_bytes = 0
        self._holder: Optional[HostSession] = None
        self._sessions: Set[HostSession] = set()
        self._stopping = asyncio.Event()
        self._handlers: Dict[Type[Record], Callable[[Record], Record]] = {
            HasBlobs: self._have,
            UploadBlob: self._put,
            Results: self._results,
            Acknowledge: self._acknowledge,
            Log: self._log,
        }

    async def run(self, listening: socket.socket, ready: Callable[[], None]) -> None:
        """Serve until Shutdown or SIGTERM. `ready` is called once connections are accepted."""
        loop = asyncio.get_event_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        server = await asyncio.start_unix_server(self._connected, sock=listening)
        device = asyncio.ensure_future(self._serve_device())
        ready()
        # The worker is wanted soon: importing pynq is slow on a board. A failure is reported to the next client.
        warm = asyncio.ensure_future(self._board.ready())
        warm.add_done_callback(lambda task: task.cancelled() or task.exception())
        await self._stopping.wait()
        _LOG.info("shutting down")
        server.close()
        await self._queue.join()
        device.cancel()
        warm.cancel()
        await asyncio.wait([device, warm])  # a worker that one of them starts ends with it
        for session in list(self._sessions):
            await session.close()
        await self._board.close()
        self._journal.close()

    # --- sessions ---

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = HostSession(reader, writer)
        if len(self._sessions) >= _MAX_SESSIONS:
            await session.send(0, AgentFailure(code="board_busy", message="too many connections"))
            await session.close()
            return
        self._sessions.add(session)
        try:
            await session.serve(self._handle)
        finally:
            self._sessions.discard(session)
            if self._holder is session:
                self._holder = None

    async def _handle(self, session: HostSession, number: int, message: Record) -> None:
        if isinstance(message, AgentStatus):
            await session.send(number, self._status())
        elif isinstance(message, AgentHello):
            await self._hello(session, number, message)
        elif self._holder is not session:
            text = "this session does not hold the board: say hello"
            await session.send(number, AgentFailure(code="hello_needed", message=text))
        elif isinstance(message, Shutdown):
            await session.send(number, ShuttingDown())
            self._stopping.set()
        elif isinstance(message, (LoadBitstream, Measure, Reset, RunNetwork)):
            await self._enqueue(session, number, message)
        elif type(message) in self._handlers:
            await session.send(number, self._handlers[type(message)](message))
        else:
            name = type(message).__name__
            await session.send(number, AgentFailure(code="bad_message", message="{} is not a request".format(name)))

    async def _hello(self, session: HostSession, number: int, message: AgentHello) -> None:
        holder = self._holder
        if holder is not None and holder is not session and not holder.closed:
            if holder.client != message.client and not _lease_expired(holder):
                text = "board is in use by {}: wait, or stop that session".format(holder.client)
                await session.send(number, AgentFailure(code="board_busy", message=text))
                await session.close()
                return
            _LOG.info("session of %s replaces that of %s", message.client, holder.client)
            await holder.close()
        self._holder = session
        session.client = message.client
        session.expect()
        await session.answer(number, await self._welcome())

    async def _welcome(self) -> Record:
        try:
            ready = await self._board.ready()
        except (WorkerError, OSError) as error:
            return AgentFailure(code="internal", message="no worker: {}".format(error)[:4096])
        program = self._board.program
        return Welcome(
            agent=self._agent,
            boot_id=boot_id(),
            device=ready.device,
            python=ready.python,
            pynq=ready.pynq,
            numpy=ready.numpy,
            bitstream=program.bitstream if program else None,
            clock_hz=program.manifest.clock_hz if program else None,
            time_scale=ready.time_scale,
            journal_next=self._journal.next,
            limits=Limits(blob_bytes=MAX_BLOB_BYTES, chunk_bytes=CHUNK_BYTES, pending=MAX_PENDING),
        )

    # --- requests that need the device, in order ---

    async def _enqueue(self, session: HostSession, number: int, message: Record) -> None:
        size = len(_code(message))
        too_large = self._queued_bytes > 0 and self._queued_bytes + size > _MAX_QUEUED_BYTES
        if self._queue.qsize() >= MAX_PENDING or too_large:
            text = "too many requests wait: send fewer at once"
            await session.send(number, AgentFailure(code="queue_full", message=text))
            return
        session.expect()
        self._queued_bytes += size
        self._queue.put_nowait(_Request(session, number, message))

    async def _serve_device(self) -> None:
        while True:
            request = await self._queue.get()
            self._queued_bytes -= len(_code(request.message))
            if not request.session.closed:
                reply = await self._device(request.message, request.session.gone)
                await self._answer(request, reply)
            self._queue.task_done()

    async def _answer(self, request: "_Request", reply: Record) -> None:
        """Send a reply; one that cannot be encoded is a failure of this request, and the next one is served."""
        try:
            await request.session.answer(request.number, reply)
        except (ProtocolError, TypeError, ValueError, OverflowError) as error:
            _LOG.exception("%s could not be encoded", type(reply).__name__)
            text = "agent failed to encode {}: {}".format(type(reply).__name__, error)
            await request.session.answer(request.number, AgentFailure(code="internal", message=text[:4096]))

    async def _device(self, message: Record, gone: asyncio.Event) -> Record:
        """Answer a request of the device. Whatever goes wrong with one request, the next one is served.

        `gone` is set when the client is.
        """
        if self._stopping.is_set():
            return AgentFailure(code="shutting_down", message="agent is shutting down")
        try:
            return await self._carry_out(message, gone)
        except Exception as error:
            _LOG.exception("%s failed", type(message).__name__)
            return AgentFailure(code="internal", message="agent failed, its log says more: {}".format(error)[:4096])

    async def _carry_out(self, message: Record, gone: asyncio.Event) -> Record:
        if isinstance(message, LoadBitstream):
            missing = self._blobs.missing([message.bitstream, *_tensors(message.canary)])
            return _blob_missing(missing) if missing else await self._board.load(message)
        if isinstance(message, Reset):
            return await self._board.reset(message)
        if isinstance(message, RunNetwork):
            missing = self._blobs.missing([message.bundle])
            return _blob_missing(missing) if missing else await self._board.run_network(message, gone)
        assert isinstance(message, Measure)
        return await self._measure(message)

    async def _measure(self, message: Measure) -> Record:
        known = self._journal.find(message.trial.key)
        if known is not None:
            return known
        try:
            self._journal.check_room(message.trial.key)
        except JournalError as error:
            return _journal_failure(error)
        missing = self._blobs.missing(_tensors(message.trial))
        if missing:
            return _blob_missing(missing)
        reply = await self._board.measure(message)
        if isinstance(reply, AgentFailure) and reply.code == "blob_missing":
            self._blobs.doubt(_tensors(message.trial))
        if not isinstance(reply, Measured):
            return reply
        try:
            return self._journal.append(reply)
        except JournalError as error:
            _LOG.error("result of %s could not be kept: %s", reply.key, error)
            return _journal_failure(error)

    # --- requests that are answered at once ---

    def _have(self, message: Record) -> Record:
        assert isinstance(message, HasBlobs)
        return MissingBlobs(sha256=tuple(self._blobs.missing(message.sha256)))

    def _put(self, message: Record) -> Record:
        assert isinstance(message, UploadBlob)
        program = self._board.program
        keep = {program.bitstream, *_tensors(program.canary)} if program else set()
        try:
            return self._blobs.put(message, keep)
        except BlobError as error:
            return AgentFailure(code=error.code, message=str(error))

    def _results(self, message: Record) -> Record:
        assert isinstance(message, Results)
        found = self._journal.since(message.since, MAX_RESULTS + 1)
        fitting = _fitting(found[:MAX_RESULTS])
        return ResultsReport(results=tuple(fitting), more=len(found) > len(fitting))

    def _acknowledge(self, message: Record) -> Record:
        assert isinstance(message, Acknowledge)
        try:
            return Acknowledged(through=self._journal.acknowledge(message.through, message.run))
        except JournalError as error:
            return _journal_failure(error)

    def _log(self, message: Record) -> Record:
        assert isinstance(message, Log)
        return LogText(text=tail(self._home.log, message.bytes))

    def _status(self) -> StatusReport:
        disk = os.statvfs(str(self._home.root))
        program = self._board.program
        return StatusReport(
            state=self._board.state,
            holder=self._holder.client if self._holder and not _lease_expired(self._holder) else None,
            bitstream=program.bitstream if program else None,
            worker=self._board.worker_pid,
            worker_restarts=self._board.worker_restarts,
            trials=self._board.trials,
            unacknowledged=len(self._journal),
            agent=self._agent,
            free_bytes=disk.f_bavail * disk.f_frsize,
            uptime_seconds=time.monotonic() - self._started,
            temperature=temperature(),
        )


def _fitting(results: List[Measured]) -> List[Measured]:
    """Return the first results, as many as a frame takes, and one at least: each may hold two thousand figures."""
    fitting: List[Measured] = []
    size = 0
    for result in results:
        size += len(json.dumps(result.to_fields()))
        if fitting and size > _REPORT_BYTES:
            break
        fitting.append(result)
    return fitting


def _lease_expired(holder: HostSession) -> bool:
    return time.monotonic() - holder.heard > LEASE_SECONDS


def boot_id() -> str:
    """Return an identifier that changes with every boot.

    HILT_BOOT_ID holds it for a virtual board, whose kernel is the host's.
    """
    return os.environ.get("HILT_BOOT_ID") or Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def tail(path: Path, count: int) -> bytes:
    """Return the last `count` bytes of a file."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - count))
        return file.read(count)


def _tensors(trial: Optional[TrialRequest]) -> List[str]:
    return [tensor.sha256 for tensor in trial.inputs] + [trial.output.expected] if trial else []


def _code(message: Record) -> bytes:
    if isinstance(message, RunNetwork):
        return message.inputs
    return message.code if isinstance(message, (LoadBitstream, Measure)) else b""


def _blob_missing(names: List[str]) -> AgentFailure:
    text = "not on the board: {}: put them first".format(", ".join(names[:32]))
    return AgentFailure(code="blob_missing", message=text)


def _journal_failure(error: JournalError) -> AgentFailure:
    codes: Tuple[Tuple[Type[JournalError], str], ...] = (
        (JournalFullError, "journal_full"),
        (DiskFullError, "disk_full"),
    )
    return AgentFailure(code=next(code for kind, code in codes if isinstance(error, kind)), message=str(error))
