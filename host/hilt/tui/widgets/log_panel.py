"""The engine's log lines and the board's changes, the last thousand of them; all of it is in the run's log file."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from hilt.engine.events import Event
from hilt.tui.event_lines import line_of
from hilt.tui.widgets.line_view import Line, LineView

_MOST_LINES = 1000


class LogPanel(LineView):
    """Bounded; the newest is followed while the cursor is there. The log screen has all of it."""

    BORDER_TITLE = "log"

    def __init__(self) -> None:
        super().__init__(follow=True)
        self._latest: deque[Line] = deque(maxlen=_MOST_LINES)

    def add(self, events: Sequence[Event]) -> None:
        self._latest.extend(line for event in events if (line := line_of(event)) is not None)
        self.set_lines(self._latest)
