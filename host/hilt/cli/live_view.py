"""A few lines at the bottom of a terminal that are drawn again several times a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from time import monotonic
from types import TracebackType

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hilt.cli.prose import print_text
from hilt.engine.durations import seconds_text
from hilt.engine.events import BoardChanged, Event, Finished, Logged, NetworkUpdated, RunProgress, StateChanged

Draw = Callable[[RunProgress, str, Mapping[str, str], NetworkUpdated | None], RenderableType]
"""Draws progress, state, the state of each board, and a campaign's latency."""
_LONG_SECONDS = 2.0
"""A state that lasts longer shows its seconds, so that a build of some minutes is seen to go on."""


class LiveView:
    """A hilt.cli.progress.View of a run or a campaign; log lines scroll above it."""

    def __init__(self, console: Console, progress: RunProgress, boards: Mapping[str, str], draw: Draw) -> None:
        self._progress = progress
        self._state, self._since = "starting", monotonic()
        self._network: NetworkUpdated | None = None
        self._boards = dict(boards)
        self._draw = draw
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._render)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def note(self, words: str) -> None:
        print_text(self._live.console, words)

    def show(self, event: Event) -> None:
        if isinstance(event, RunProgress):
            self._progress = event
        elif isinstance(event, NetworkUpdated):
            self._network = event
        elif isinstance(event, StateChanged):
            self._state, self._since = event.detail or event.state, monotonic()
        elif isinstance(event, Finished):
            self._state, self._since = event.state, inf
        elif isinstance(event, BoardChanged):
            self._boards[event.board] = f"{event.state}{': ' if event.detail else ''}{event.detail}"
        elif isinstance(event, Logged):
            self.note(f"{event.level}: {event.text}")

    def _render(self) -> RenderableType:
        spent = monotonic() - self._since
        state = f"{self._state}, {seconds_text(spent)}" if spent >= _LONG_SECONDS else self._state
        return self._draw(self._progress, state, self._boards, self._network)


def facts_table() -> Table:
    """Return a table for rows of a name and a Text. The text is cut where the terminal ends, the name never."""
    facts = Table.grid(padding=(0, 2), expand=True)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
    return facts


def add_boards(facts: Table, boards: Mapping[str, str]) -> None:
    for board, state in boards.items():
        facts.add_row("board", Text(f"{board} {state}"))
