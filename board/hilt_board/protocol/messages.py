# ruff: noqa: RUF009 (checked() makes a dataclass field)
"""Messages between host, daemon and worker. Plain data, every field checked; nothing here executes.

A frame's JSON is {"type": name, "id": number, ...fields}; a reply carries the id of its request. docs/protocol.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple, Type

from .fields import (
    MessageError,
    Record,
    body,
    body_field,
    checked,
    is_boolean,
    is_integer,
    is_number,
    is_sha256,
    is_text,
    list_of,
    one_of,
    optional,
    record,
)
from .frames import MAX_BODY_BYTES, PROTOCOL_VERSION, Frame
from .trials import COUNT, SECONDS, SIZE, Manifest, Measured, TrialRequest

CHUNK_BYTES = 1 << 20
"""Bytes of one `UploadBlob`: large enough to be fast, small enough not to hold up other messages for long."""
MAX_PENDING = 256
"""Requests that a session may have unanswered; the next one is refused with `queue_full`."""
MAX_RESULTS = 128
"""Results in one reply to `Results`."""

FAILURES = (
    "bad_message",  # not a valid message; says which field
    "hello_needed",  # the first message must be Hello
    "board_busy",  # another session has the lease; says which
    "queue_full",  # more than MAX_PENDING requests unanswered
    "blob_missing",  # a sha256 that is not on the board: put it first
    "blob_corrupt",  # the bytes of the blob do not match its sha256
    "blob_order",  # chunks must follow each other from offset 0
    "disk_full",  # nothing was stored
    "journal_full",  # too many results that were never acknowledged
    "not_programmed",  # no bitstream, or not the one that the trial asks for
    "bitstream_refused",  # truncated, of the wrong part, or not loadable
    "identity_mismatch",  # the registers say another accelerator than the manifest
    "program_invalid",  # instructions, relocations and buffers do not fit each other
    "out_of_memory",  # not enough contiguous memory (CMA)
    "network_refused",  # a damaged bundle, one for another accelerator, or inputs that are not the network's
    "board_broken",  # the bitstream cannot be loaded now, or the canary failed after reset, reload and restart
    "shutting_down",
    "worker_failed",  # an error of the agent's own in its worker, as no memory left: says nothing about the program
    "internal",  # a fault of the agent; its log says more
)


# --- the session ---


@dataclass(frozen=True)
class AgentHello(Record):
    """Takes the lease of the board. Answered by Welcome, or Failure `board_busy`."""

    client: str = checked(is_text(200))
    """The name of the client, unlike any other; a client that finds the board busy receives it. A second session of
    the same client replaces the first, whose link is dead."""


@dataclass(frozen=True)
class Limits(Record):
    blob_bytes: int = checked(SIZE)
    chunk_bytes: int = checked(SIZE)
    pending: int = checked(is_integer(1, 1 << 20))


@dataclass(frozen=True)
class Welcome(Record):
    agent: str = checked(is_text(64))
    """SHA-256 of the running agent archive; empty if it runs from a folder."""
    boot_id: str = checked(is_text(64))
    """Changes when the board reboots."""
    device: str = checked(is_text(64))
    """Name of the pynq device."""
    python: str = checked(is_text(64))
    pynq: str = checked(is_text(64))
    numpy: str = checked(is_text(64))
    bitstream: Optional[str] = checked(optional(is_sha256))
    """The bitstream that is loaded, if any."""
    clock_hz: Optional[int] = checked(optional(is_integer(1, 10**10)))
    """Clock of the loaded bitstream, in Hz."""
    time_scale: float = checked(is_number(1.0, 1e9))
    """Wall seconds that a second of the device may take: 1 on a board, more where it is simulated."""
    journal_next: int = checked(COUNT)
    """Sequence number that the next result will get."""
    limits: Limits = checked(record(Limits))


@dataclass(frozen=True)
class AgentFailure(Record):
    """A request that was not carried out; says nothing about a configuration and is never in the journal."""

    code: str = checked(one_of(*FAILURES))
    message: str = checked(is_text(4096))


# --- blobs: tensors and bitstreams, by content ---


@dataclass(frozen=True)
class HasBlobs(Record):
    """A question: are these blobs on the board?"""

    sha256: Tuple[str, ...] = checked(list_of(is_sha256, 4096))


@dataclass(frozen=True)
class MissingBlobs(Record):
    sha256: Tuple[str, ...] = checked(list_of(is_sha256, 4096))


@dataclass(frozen=True)
class UploadBlob(Record):
    """A chunk of a blob. Chunks of one blob follow each other; an offset of 0 begins it anew."""

    sha256: str = checked(is_sha256)
    total: int = checked(SIZE)
    offset: int = checked(SIZE)
    chunk: bytes = body(MAX_BODY_BYTES)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.offset + len(self.chunk) > self.total:
            end = self.offset + len(self.chunk)
            raise MessageError("UploadBlob.chunk: ends at {} of {} bytes".format(end, self.total))


@dataclass(frozen=True)
class BlobStored(Record):
    sha256: str = checked(is_sha256)
    received: int = checked(SIZE)
    complete: bool = checked(is_boolean)


# --- programming ---


@dataclass(frozen=True)
class LoadBitstream(Record):
    """Load a bitstream blob.

    `canary` (with its code) decides later whether the board is sane; without one, a program of a single FINISH.
    """

    bitstream: str = checked(is_sha256)
    manifest: Manifest = checked(record(Manifest))
    canary: Optional[TrialRequest] = checked(optional(record(TrialRequest)), default=None)
    code: bytes = body(MAX_BODY_BYTES)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.canary is not None:
            self.canary.check_code(self.code)
        elif self.code:
            raise MessageError("LoadBitstream.code: code without a canary")


@dataclass(frozen=True)
class BitstreamLoaded(Record):
    bitstream: str = checked(is_sha256)
    clock_hz: int = checked(is_integer(1, 10**10))
    seconds: float = checked(SECONDS)
    """0 if it was loaded already."""


# --- trials ---


@dataclass(frozen=True)
class Measure(Record):
    """Run a trial. Trials of a session run in the order sent; each is answered by Measured or AgentFailure."""

    trial: TrialRequest = checked(record(TrialRequest))
    code: bytes = body(MAX_BODY_BYTES)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.trial.check_code(self.code)


# --- networks ---


@dataclass(frozen=True)
class RunNetwork(Record):
    """Run a compiled network (a bundle that was put before).

    Answered by NetworkRan or AgentFailure; not in the journal, for an inference can be repeated.
    """

    bundle: str = checked(is_sha256)
    name: str = checked(is_text(200))
    """The bundle's name for messages."""
    limit_seconds: float = checked(SECONDS)
    """Device time that all of it may take."""
    images: int = checked(is_integer(1, 1 << 16), default=1)
    """Inferences with different inputs; if there are several, the first axis of every input counts them."""
    repeat: int = checked(is_integer(1, 1 << 16), default=1)
    """Inferences with each of the inputs."""
    keep: bool = checked(is_boolean, default=False)
    """A flag: return every tensor, not the outputs only."""
    inputs: bytes = body(MAX_BODY_BYTES)
    """Arrays by name (hilt_runtime.arrays)."""


@dataclass(frozen=True)
class NetworkRan(Record):
    outcome: str = checked(one_of("ok", "timeout", "bus_error", "crash"))
    reason: str = checked(is_text(4096), default="")
    canary: Optional[bool] = checked(optional(is_boolean), default=None)
    """A flag: the board was well again afterwards, if it had to be reset."""
    result: bytes = body(MAX_BODY_BYTES)
    """Arrays by name, and `runs`: seconds and steps of each inference (hilt_runtime.arrays); empty without `ok`."""


# --- the journal ---


@dataclass(frozen=True)
class Results(Record):
    """Results with a sequence number above `since`, oldest first, at most MAX_RESULTS."""

    since: int = checked(COUNT)


@dataclass(frozen=True)
class ResultsReport(Record):
    results: Tuple[Measured, ...] = checked(list_of(record(Measured), MAX_RESULTS))
    more: bool = checked(is_boolean)


@dataclass(frozen=True)
class Acknowledge(Record):
    """The client has these on its own disk: results up to and including `through` may be forgotten."""

    through: int = checked(COUNT)
    run: str = checked(is_text(200), default="")
    """A run: only results whose key begins with "run/", as another host may still want its own. Empty: of all runs."""


@dataclass(frozen=True)
class Acknowledged(Record):
    through: int = checked(COUNT)


# --- upkeep ---


@dataclass(frozen=True)
class AgentStatus(Record):
    """Also a heartbeat; answered at once, whatever the device does, and without the lease."""


@dataclass(frozen=True)
class StatusReport(Record):
    state: str = checked(one_of("unprogrammed", "ready", "busy", "recovering", "broken"))
    holder: Optional[str] = checked(optional(is_text(200)))
    bitstream: Optional[str] = checked(optional(is_sha256))
    worker: Optional[int] = checked(optional(COUNT))
    """Process id of the worker, if there is one."""
    worker_restarts: int = checked(COUNT)
    trials: int = checked(COUNT)
    """Run since the daemon was started."""
    unacknowledged: int = checked(COUNT)
    agent: str = checked(is_text(64))
    """The same as Welcome.agent."""
    free_bytes: int = checked(COUNT)
    """Free bytes of the disk that holds blobs and journal."""
    uptime_seconds: float = checked(SECONDS)
    temperature: Optional[float] = checked(optional(is_number(-273.15, 1000.0)), default=None)
    """Temperature of the chip, in degrees Celsius; None if the kernel shows no sensor."""


@dataclass(frozen=True)
class Reset(Record):
    """Take one recovery step, then run the canary: `soft` (reset register), `reload` (bitstream) or `worker`."""

    step: str = checked(one_of("soft", "reload", "worker"))


@dataclass(frozen=True)
class ResetDone(Record):
    step: str = checked(one_of("soft", "reload", "worker"))
    canary: bool = checked(is_boolean)
    seconds: float = checked(SECONDS)


@dataclass(frozen=True)
class Log(Record):
    """The end of the agent's log."""

    bytes: int = checked(is_integer(1, 1 << 20))


@dataclass(frozen=True)
class LogText(Record):
    text: bytes = body(1 << 20)
    """UTF-8, as written."""


@dataclass(frozen=True)
class Shutdown(Record):
    """Finish the trial that is running, answer it, then end the worker and the daemon."""


@dataclass(frozen=True)
class ShuttingDown(Record):
    pass


# --- between daemon and worker only ---


@dataclass(frozen=True)
class Ready(Record):
    """The worker's first message: it has the device."""

    device: str = checked(is_text(64))
    python: str = checked(is_text(64))
    pynq: str = checked(is_text(64))
    numpy: str = checked(is_text(64))
    time_scale: float = checked(is_number(1.0, 1e9))


@dataclass(frozen=True)
class Beat(Record):
    """The worker has begun with the request, or is alive and waiting for the device."""


@dataclass(frozen=True)
class StopNetwork(Record):
    """Ask the worker to end its network after the image that runs: nobody waits for the answer. Not answered."""


MESSAGES: Dict[str, Type[Record]] = {
    "hello": AgentHello,
    "welcome": Welcome,
    "failure": AgentFailure,
    "has_blobs": HasBlobs,
    "missing_blobs": MissingBlobs,
    "upload_blob": UploadBlob,
    "blob_stored": BlobStored,
    "load_bitstream": LoadBitstream,
    "bitstream_loaded": BitstreamLoaded,
    "measure": Measure,
    "measured": Measured,
    "run_network": RunNetwork,
    "network_ran": NetworkRan,
    "results": Results,
    "results_report": ResultsReport,
    "acknowledge": Acknowledge,
    "acknowledged": Acknowledged,
    "status": AgentStatus,
    "status_report": StatusReport,
    "reset": Reset,
    "reset_done": ResetDone,
    "log": Log,
    "log_text": LogText,
    "shutdown": Shutdown,
    "shutting_down": ShuttingDown,
    "ready": Ready,
    "beat": Beat,
    "stop_network": StopNetwork,
}
_NAMES = {cls: name for name, cls in MESSAGES.items()}
_ID = is_integer(0, 0xFFFFFFFF)


def to_frame(message: Record, request: int = 0) -> Frame:
    """Return the frame of a message. `request`: its own number for a request, the request's for a reply."""
    field = body_field(type(message))
    header: Dict[str, Any] = {"type": _NAMES[type(message)], "id": _ID(request, "id"), **message.to_fields()}
    return Frame(header, getattr(message, field) if field else b"")


def from_frame(frame: Frame) -> Tuple[int, Record]:
    """(request number, message). Raises MessageError for an unknown type, field or value; nothing is half accepted."""
    values = dict(frame.header)
    request = request_id(frame)
    values.pop("id", None)
    kind = values.pop("type", None)
    cls = MESSAGES.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise MessageError("unknown message type {!r} (protocol version {})".format(str(kind)[:64], PROTOCOL_VERSION))
    field = body_field(cls)
    if field is None:
        if frame.body:
            raise MessageError("{}: a body that it does not have".format(kind))
        return request, cls.from_fields(values, str(kind))
    if field in values:
        raise MessageError("{}: field {!r} travels in the body".format(kind, field))
    return request, cls.from_fields(values, str(kind), **{field: frame.body})


def request_id(frame: Frame) -> int:
    """Return the id of a frame, also of one whose message is invalid. Raises MessageError if it has none."""
    return int(_ID(frame.header.get("id"), "id"))
