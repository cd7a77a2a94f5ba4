"""Events as lines of a log."""

from __future__ import annotations

import time

from hilt.engine.events import BoardChanged, Event, Finished, Logged, StateChanged
from hilt.tui import formatting
from hilt.tui.widgets.line_view import Line

_BAD_STATES = ("lost", "quarantined")


def line_of(event: Event, *, date: bool = False) -> Line | None:
    """Return the line with the kind of its style; None for events that are no lines of a log."""
    match event:
        case Logged(level=level, text=text, at=at):
            kind = {"warning": "warning", "error": "error"}.get(level, "")
            return f"{_clock(at, date)} {'' if level == 'info' else level.upper() + ': '}{one_line(text)}", kind
        case BoardChanged(board=board, state=state, detail=detail, at=at):
            kind = "error" if state in _BAD_STATES else "warning" if state == "recovering" else "muted"
            return f"{_clock(at, date)} {board}: {state} {one_line(detail)}".rstrip(), kind
        case StateChanged(state=state, detail=detail, at=at):
            return f"{_clock_or_blank(at, date)} run {state}{': ' if detail else ''}{one_line(detail)}", "heading"
        case Finished(state=state, detail=detail, failure=failure, at=at):
            kind = "error" if failure else "heading"
            return f"{_clock_or_blank(at, date)} run {state}{': ' if detail else ''}{one_line(detail)}", kind
    return None


def one_line(text: str) -> str:
    return " ".join(text.split())


def _clock_or_blank(at: float, date: bool) -> str:
    """Return the time, or as many spaces: records of older versions have no time of a state."""
    return _clock(at, date) if at else " " * len(_clock(0, date))


def _clock(at: float, date: bool) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.localtime(at)) if date else formatting.clock(at)
