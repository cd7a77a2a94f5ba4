"""The engine's log lines and the board's changes, the last thousand of them; all of it is in the run's log file."""

from __future__ import annotations

from collections.abc import Sequence

from textual.widgets import RichLog

from hilt.engine.events import Event
from hilt.tui.event_lines import line_of

_MOST_LINES = 1000


class LogPanel(RichLog):
    """Bounded, plain text; the log screen has all of it."""

    BORDER_TITLE = "log"

    def __init__(self) -> None:
        super().__init__(max_lines=_MOST_LINES, wrap=True, markup=False, highlight=False, min_width=1)

    def add(self, events: Sequence[Event]) -> None:
        for event in events[-_MOST_LINES:]:
            line = line_of(event)
            if line is not None:
                self.write(line[0])
