"""The event log of a run: states, boards, confidence and log lines in a file beside the engine's log.

It is for people and reports; nothing depends on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from hilt.engine.events import (
    MAX_EVENT_BYTES,
    BoardChanged,
    EngineProtocolError,
    Event,
    Finished,
    Logged,
    StateChanged,
    TunerUpdated,
    event_line,
    parse_event,
)

MOST_BYTES = 16 * 1024 * 1024
"""A file that has grown so long is begun anew; the one before is kept beside it."""
_QUIET = frozenset({"running", "ready"})
"""States that a board goes through with every group of trials: without a detail they are left out."""


class EventLog:
    """Appends events to `path`; from any thread. A disk that is full loses lines here, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def recording(self, publish: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return `publish` with a copy of the kept events in the file."""

        def publish_and_keep(event: Event) -> None:
            publish(event)
            if is_kept(event):
                self._append(event_line(event))

        return publish_and_keep

    def _append(self, line: bytes) -> None:
        try:
            with self._lock:
                if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
                    self._path.replace(previous(self._path))
                with self._path.open("ab") as file:
                    file.write(line)
        except OSError:
            pass


def previous(path: Path) -> Path:
    """Return the file of the lines before those of `path`."""
    return path.with_name(path.name + ".1")


def read_event_log(path: Path, most_bytes: int = 1024 * 1024) -> list[Event]:
    """Return the last events, oldest first; none if there is no such file. Unreadable lines are left out."""
    found: list[Event] = []
    for log_path in (previous(path), path):
        try:
            with log_path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - most_bytes))
                lines = file.read(most_bytes).split(b"\n")
        except OSError:
            continue
        # Parts of lines: at the begin of the read, and at the end of a killed engine's file.
        for line in lines[1 if size > most_bytes else 0 :]:
            if not line or len(line) > MAX_EVENT_BYTES:
                continue
            try:
                found.append(parse_event(line))
            except EngineProtocolError:
                continue
    return found


def is_kept(event: Event) -> bool:
    """Return whether it is worth a line: a client that attaches later reads here the events it missed."""
    match event:
        case BoardChanged():
            return bool(event.detail) or event.state not in _QUIET
        case StateChanged() | Logged() | Finished():
            return True
        case TunerUpdated(confidence=confidence):
            return confidence is not None
    return False
