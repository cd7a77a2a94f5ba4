"""The engine's log lines and the board's changes, the last thousand of them; all of it is in the run's log file."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widgets import RichLog

from hilt.engine.events import BoardChanged, Event, Logged
from hilt.tui import words

_MOST_LINES = 1000


class LogPanel(RichLog):
    """Bounded, plain text."""

    BORDER_TITLE = "log"

    def __init__(self) -> None:
        super().__init__(max_lines=_MOST_LINES, wrap=True, markup=False, highlight=False, min_width=1)

    def add(self, events: Sequence[Event]) -> None:
        for event in events[-_MOST_LINES:]:
            match event:
                case Logged():
                    level = "" if event.level == "info" else f"{event.level.upper()}: "
                    self.write(f"{words.clock(event.at)} {level}{event.text}")
                case BoardChanged():
                    self.write(f"{words.clock(event.at)} {event.board}: {event.state} {event.detail}")
