"""The host's end of the agent's protocol: typed calls, many at once, over any stream of bytes."""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from typing import Protocol, TypeVar

from hilt.link.deadline import Deadline
from hilt.link.errors import (
    AgentError,
    BitstreamRefusedError,
    BoardBusyError,
    LinkError,
    LinkLostError,
    LinkTimeoutError,
    OutOfMemoryError,
    ProtocolViolationError,
    RefusedError,
)
from hilt.plain_text import plain
from hilt_board.protocol import (
    CHUNK_BYTES,
    Acknowledge,
    Acknowledged,
    AgentFailure,
    AgentHello,
    AgentStatus,
    BitstreamLoaded,
    BlobStored,
    FrameDecoder,
    HasBlobs,
    LoadBitstream,
    Log,
    LogText,
    Manifest,
    Measure,
    Measured,
    MissingBlobs,
    ProtocolError,
    Record,
    Reset,
    ResetDone,
    Results,
    ResultsReport,
    Shutdown,
    ShuttingDown,
    StatusReport,
    TrialRequest,
    UploadBlob,
    Welcome,
    encode_frame,
    from_frame,
    to_frame,
)

HEARTBEAT_SECONDS = 5.0
SILENT_SECONDS = 15.0
_CHUNKS_IN_FLIGHT = 4
_BEAT = encode_frame(to_frame(AgentStatus()))
"""The frame of request 0, for whose answer nobody waits."""
_UNREQUESTED = 0

R = TypeVar("R", bound=Record)


class ByteStream(Protocol):
    """The stream that the client speaks over; hilt.link.session.ExecStream is one."""

    def receive(self) -> bytes: ...
    def send(self, data: bytes) -> None: ...
    def errors(self) -> str: ...
    def close(self) -> None: ...


class AgentClient:
    """A connection to the agent. Calls may come from any thread; requests are answered in the order the agent chooses.

    Once the connection is lost every open and later call raises the same LinkError; a client is never revived.
    """

    def __init__(self, stream: ByteStream, board: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._board = board
        self._clock = clock
        self._numbers = itertools.count(1)
        self._pending: dict[int, Future[Record]] = {}
        self._state = threading.Lock()
        self._sending = threading.Lock()
        self._lost: LinkError | None = None
        self._closing = threading.Event()
        self._heard = clock()
        self._reader = threading.Thread(target=self._read, name=f"agent {board}", daemon=True)
        self._heart = threading.Thread(target=self._beat, name=f"heartbeat {board}", daemon=True)
        self._reader.start()

    # --- typed calls ---

    def hello(self, client: str, deadline: Deadline) -> Welcome:
        """Take the lease of the board. Raises BoardBusyError.

        From then on silence ends the connection. Until then the deadline does, for the agent answers nothing else
        while its worker starts.
        """
        welcome = self._call(AgentHello(client), Welcome, deadline)
        self._heart.start()
        return welcome

    def missing_blobs(self, blobs: Iterable[str], deadline: Deadline) -> set[str]:
        """Return the SHA-256 in `blobs` that the board does not have."""
        return set(self._call(HasBlobs(tuple(blobs)), MissingBlobs, deadline).sha256)

    def put(self, data: bytes, deadline: Deadline) -> str:
        """Store a blob in chunks and return its SHA-256. Raises RefusedError (`disk_full`, `blob_corrupt`)."""
        digest = hashlib.sha256(data).hexdigest()
        self.upload_blob(digest, data, deadline)
        return digest

    def upload_blob(self, sha256: str, data: bytes, deadline: Deadline) -> None:
        """Store `data` as the blob `sha256`; the board refuses data with another SHA-256."""
        waiting: list[Future[Record]] = []
        for offset in range(0, max(len(data), 1), CHUNK_BYTES):
            waiting.append(self.send(UploadBlob(sha256, len(data), offset, data[offset : offset + CHUNK_BYTES])))
            if len(waiting) > _CHUNKS_IN_FLIGHT:
                self.reply(waiting.pop(0), BlobStored, deadline)
        stored = [self.reply(future, BlobStored, deadline) for future in waiting]
        if not stored[-1].complete:
            raise AgentError(f"agent on {self._board} took {stored[-1].received} of {len(data)} bytes and is content")

    def program(
        self,
        bitstream: str,
        manifest: Manifest,
        deadline: Deadline,
        canary: TrialRequest | None = None,
        code: bytes = b"",
    ) -> BitstreamLoaded:
        """Load a bitstream.

        Raises BitstreamRefusedError (wrong part, damaged, registers of another accelerator).
        """
        return self._call(LoadBitstream(bitstream, manifest, canary, code), BitstreamLoaded, deadline)

    def measure(self, trial: TrialRequest, code: bytes) -> Future[Record]:
        """Send a trial; `reply(future, Measured, deadline)` waits for its result."""
        return self.send(Measure(trial, code))

    def results(self, since: int, deadline: Deadline) -> list[Measured]:
        """Return the results in the journal above a sequence number, oldest first."""
        found: list[Measured] = []
        while True:
            report = self._call(Results(found[-1].sequence if found else since), ResultsReport, deadline)
            found += report.results
            if not report.more or not report.results:
                return found

    def acknowledge(self, through: int, deadline: Deadline, run: str = "") -> None:
        """Let the board forget results up to this sequence number, of one run if that is named."""
        self._call(Acknowledge(through, run), Acknowledged, deadline)

    def status(self, deadline: Deadline) -> StatusReport:
        return self._call(AgentStatus(), StatusReport, deadline)

    def reset(self, step: str, deadline: Deadline) -> ResetDone:
        """`soft`, `reload` or `worker`; then the canary."""
        return self._call(Reset(step), ResetDone, deadline)

    def log(self, count: int, deadline: Deadline) -> str:
        """Return the last `count` bytes of the agent's log."""
        return self._call(Log(count), LogText, deadline).text.decode("utf-8", "replace")

    def shutdown(self, deadline: Deadline) -> None:
        """End the agent after the trial that is running; return when the connection has ended."""
        self._call(Shutdown(), ShuttingDown, deadline)
        self._reader.join(deadline.remaining("the agent's end"))

    # --- requests and replies ---

    def send(self, message: Record) -> Future[Record]:
        """Send a request; its future holds the reply, or the LinkError that prevented it."""
        future: Future[Record] = Future()
        number = next(self._numbers)
        with self._state:
            if self._lost is not None:
                raise self._lost
            self._pending[number] = future
        data = encode_frame(to_frame(message, number))
        try:
            with self._sending:
                self._stream.send(data)
        except LinkError as error:
            self._fail(error)
        return future

    def reply(self, future: Future[Record], expected: type[R], deadline: Deadline) -> R:
        """Wait for a reply. Raises RefusedError, BoardBusyError, BitstreamRefusedError, LinkError."""
        try:
            message = future.result(deadline.remaining(f"the agent on {self._board}"))
        except FutureTimeoutError:
            raise LinkTimeoutError(f"the agent on {self._board} took too long for its answer") from None
        if isinstance(message, AgentFailure):
            raise _refusal(message)
        if not isinstance(message, expected):
            raise ProtocolViolationError(
                f"agent on {self._board} answered {type(message).__name__}, not {expected.__name__}"
            )
        return message

    @property
    def lost(self) -> LinkError | None:
        """Why the connection is of no use any more; None while it is."""
        with self._state:
            return self._lost

    def close(self) -> None:
        """End the connection and with it the lease; the agent continues its current work."""
        self._fail(LinkLostError(f"connection to {self._board} was closed"))
        self._reader.join()
        if self._heart.is_alive():
            self._heart.join()

    def _call(self, message: Record, expected: type[R], deadline: Deadline) -> R:
        return self.reply(self.send(message), expected, deadline)

    def _read(self) -> None:
        decoder = FrameDecoder()
        try:
            while data := self._stream.receive():
                self._heard = self._clock()
                for frame in decoder.feed(data):
                    self._settle(*from_frame(frame))
            decoder.end()
            complaint = self._stream.errors()
            if complaint:
                raise AgentError(f"agent on {self._board}: {plain(complaint[-500:])}")
            raise LinkLostError(f"connection to {self._board} ended")
        except ProtocolError as error:
            self._fail(ProtocolViolationError(f"agent on {self._board} does not speak the protocol: {error}"))
        except LinkError as error:
            self._fail(error)

    def _settle(self, number: int, message: Record) -> None:
        """Hand a message to the request that it answers. Raises ProtocolViolationError if nobody asked for it."""
        if number == _UNREQUESTED and isinstance(message, (StatusReport, AgentFailure)):
            return  # the answer to a heartbeat, or the reason for the end of the stream that follows
        with self._state:
            future = self._pending.pop(number, None)
            closed = self._lost is not None
        if future is not None:
            future.set_result(message)
        elif not closed:
            raise ProtocolViolationError(
                f"agent on {self._board} sent {type(message).__name__} for request {number}, which does not wait for it"
            )

    def _beat(self) -> None:
        """Send heartbeats. A peer that answers nothing, not even these, is gone, whatever TCP reports."""
        beaten = self._heard = self._clock()
        while not self._closing.wait(HEARTBEAT_SECONDS):
            if self._clock() - self._heard > SILENT_SECONDS:
                self._fail(LinkLostError(f"{self._board} has been silent for {SILENT_SECONDS:.0f} s"))
            elif self._heard >= beaten and self._sending.acquire(blocking=False):
                # One beat unanswered at most, and none while something else is sent, which is answered too: this
                # thread must never wait for a peer that takes nothing.
                try:
                    beaten = self._clock()
                    self._stream.send(_BEAT)
                except LinkError as error:
                    self._fail(error)
                finally:
                    self._sending.release()

    def _fail(self, error: LinkError) -> None:
        with self._state:
            if self._lost is None:
                self._lost = error
            abandoned, self._pending = list(self._pending.values()), {}
        self._closing.set()
        for future in abandoned:
            future.set_exception(self._lost)
        self._stream.close()  # last: a peer that takes nothing can hold it up


def _refusal(failure: AgentFailure) -> LinkError:
    failure = replace(failure, message=plain(failure.message))
    if failure.code == "out_of_memory":
        return OutOfMemoryError(failure.code, failure.message)
    if failure.code == "board_busy":
        return BoardBusyError(failure.message)
    if failure.code in ("bitstream_refused", "identity_mismatch"):
        return BitstreamRefusedError(failure.code, failure.message)
    return RefusedError(failure.code, failure.message)
