"""The engine's events and commands: one JSON object a line, each of bounded size.

Events go out: `hello`, `state`, `trial`, `progress`, `network`, `board`, `tuner`, `log`, `finished`. Commands come in:
`pause`, `resume`, `stop`. On attaching a client gets `hello`, then the latest of every other kind but `trial` and
`log`. It reads earlier trials in the store, after attaching, so that it misses none. `finished` is the last event;
then the engine closes the connection.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, get_args

from hilt.store import RunState
from hilt.trial import Trial

PROTOCOL_VERSION = 2
MAX_EVENT_BYTES = 64 * 1024
MAX_COMMAND_BYTES = 1024
_MAX_TEXT = 4000


class EngineCommand(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"


class FailureCause(StrEnum):
    """The cause of a failure: the input, the board or its link, the database, or hilt itself."""

    INPUT = "input"
    BOARD = "board"
    STORE = "store"
    INTERNAL = "internal"


class EngineProtocolError(ValueError):
    """A line that is not an event or a command of this protocol."""


@dataclass(frozen=True)
class EngineHello:
    kind: ClassVar[str] = "hello"
    run: str
    """uuid"""
    pid: int
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True)
class StateChanged:
    kind: ClassVar[str] = "state"
    state: RunState
    detail: str = ""
    """The activity in that state, for people, as in `stopping after the trials on the board`."""
    at: float = field(default_factory=time.time, compare=False)
    """Seconds since the epoch; 0 in records of older versions, which have no time."""


@dataclass(frozen=True)
class TrialRecorded:
    """A trial that is in the store now."""

    kind: ClassVar[str] = "trial"
    trial: Trial


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run over all its sessions; rate and times are of this one."""

    kind: ClassVar[str] = "progress"
    trials: int
    budget: int
    counts: Mapping[str, int]
    """Trials by outcome."""
    valid: int
    """Trials whose whole output was compared and right."""
    elapsed_seconds: float
    trials_per_second: float | None = None
    seconds_left: float | None = None
    best_number: int | None = None
    best_index: int | None = None
    best_cycles: int | None = None
    best_microseconds: float | None = None
    best_gops: float | None = None
    best_percent_of_bound: float | None = None


@dataclass(frozen=True)
class NetworkUpdated:
    """A campaign begins a slice: the layer that gets it, and the network's latency so far."""

    kind: ClassVar[str] = "network"
    layer: str
    """Its short name: the workload's, or the first node's where the workload is spelled out."""
    layer_microseconds: float | None
    """The best verified latency of one instance."""
    microseconds: float
    """The estimate over all layers."""
    measured_microseconds: float
    """The part of it that trials have measured."""
    measured_layers: int
    layers: int
    gain: float | None
    """Over the fallback, of the layers that have both."""


@dataclass(frozen=True)
class BoardChanged:
    kind: ClassVar[str] = "board"
    board: str
    state: str
    """A word of hilt.measure.BoardState."""
    detail: str
    at: float
    celsius: float | None = None
    """The chip's temperature, if the board told it with this change."""


@dataclass(frozen=True)
class TunerUpdated:
    """The tuner's view after the latest results."""

    kind: ClassVar[str] = "tuner"
    trials: int
    """Results that it was told of."""
    confidence: float | None
    """Its probability that nothing is better than the best by 1 % or more; None if it does not say."""
    at: float
    assessment: str = ""
    """One line for people: the tuner's confidence, why it stops, and the distance between board and timing model."""


@dataclass(frozen=True)
class Logged:
    kind: ClassVar[str] = "log"
    level: str
    """`info`, `warning` or `error`."""
    text: str
    at: float


@dataclass(frozen=True)
class Finished:
    """The run's end in this process: `finished`, `stopped` or `failed`."""

    kind: ClassVar[str] = "finished"
    state: RunState
    detail: str = ""
    failure: FailureCause | None = field(default=None)
    at: float = field(default_factory=time.time, compare=False)
    """Unix time, as in StateChanged."""


Event = (
    EngineHello
    | StateChanged
    | TrialRecorded
    | RunProgress
    | NetworkUpdated
    | BoardChanged
    | TunerUpdated
    | Logged
    | Finished
)

_KINDS: dict[str, type[Event]] = {kind.kind: kind for kind in get_args(Event)}
_WORDS: dict[str, type[StrEnum]] = {"state": RunState, "failure": FailureCause}


def event_line(event: Event) -> bytes:
    """Return the event as a line with its newline. Long texts are cut so that it fits MAX_EVENT_BYTES."""
    if isinstance(event, TrialRecorded):
        trial = replace(event.trial, reason=event.trial.reason[:_MAX_TEXT])
        return json.dumps({"event": event.kind, "trial": trial.to_dict()}, separators=(",", ":")).encode() + b"\n"
    values = {name: value[:_MAX_TEXT] if isinstance(value, str) else value for name, value in asdict(event).items()}
    return json.dumps({"event": event.kind, **values}, separators=(",", ":")).encode() + b"\n"


def parse_event(line: bytes) -> Event:
    """Return the event of a line. Raises EngineProtocolError."""
    values = _object(line)
    kind = _KINDS.get(str(values.pop("event", None)))
    if kind is None:
        raise EngineProtocolError(f"not an event of protocol {PROTOCOL_VERSION}: {line[:80]!r}")
    try:
        if kind is TrialRecorded:
            return TrialRecorded(Trial.from_dict(values["trial"]))
        if kind in (StateChanged, Finished):
            values.setdefault("at", 0.0)
        if kind is not BoardChanged:  # whose state is a word of the measurer's
            values |= {name: _WORDS[name](values[name]) for name in _WORDS if values.get(name) is not None}
        return kind(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise EngineProtocolError(f"a malformed {kind.kind} event: {error}") from error


def command_line(command: EngineCommand) -> bytes:
    return json.dumps({"command": command}).encode() + b"\n"


def parse_command(line: bytes) -> EngineCommand:
    """Return the command of a line. Raises EngineProtocolError."""
    word = _object(line).get("command")
    if word not in list(EngineCommand):
        raise EngineProtocolError(f"no command {str(word)[:40]!r}; there are {', '.join(EngineCommand)}")
    return EngineCommand(word)


def _object(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EngineProtocolError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(values, dict):
        raise EngineProtocolError(f"not a JSON object: {line[:80]!r}")
    return values
