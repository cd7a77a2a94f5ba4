"""Progress of a command on standard error: its phase, the work done, and the time left. Nothing without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from types import TracebackType

from rich.live import Live
from rich.text import Text

from hilt.cli.formatting import seconds_text
from hilt.cli.plain_console import PlainConsole

_REFRESHES = 8
"""Drawings a second; the line is drawn while the command computes."""
_LEAST_SECONDS = 1.0
"""Shorter times are not shown."""


class CommandWork:
    """One line at the bottom of the terminal, which goes when the work ends. A context manager.

    Print nothing to standard output while it is open; lines to standard error scroll above it.
    """

    def __init__(self, phase: str = "") -> None:
        self._phase, self._units = phase, ""
        self._done, self._count = 0, 0
        self._began = monotonic()
        self._live: Live | None = None

    def __enter__(self) -> CommandWork:
        if sys.stderr.isatty():
            self._live = Live(
                console=PlainConsole(stderr=True, highlight=False), transient=True, redirect_stdout=False,
                refresh_per_second=_REFRESHES, get_renderable=self._render,
            )  # fmt: skip
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def begin(self, phase: str) -> None:
        """Begin a phase without a count: its seconds are shown."""
        self._phase, self._done, self._count, self._began = phase, 0, 0, monotonic()
        if self._live is not None:
            self._live.refresh()

    def counter(self, phase: str, units: str) -> Callable[[int, int], None]:
        """Return a function of the work done and of all; its first call begins the phase."""

        def advance(done: int, count: int) -> None:
            if self._phase != phase or not self._count:
                self.begin(phase)
                self._units = units
            self._done, self._count = done, count

        return advance

    def _render(self) -> Text:
        return Text(self.line, "dim", overflow="ellipsis", no_wrap=True)

    @property
    def line(self) -> str:
        """The text of this moment, as in `placing: 5 of 26 nodes, 30 s left`."""
        spent = monotonic() - self._began
        if not self._count:
            return self._phase + (f", {seconds_text(spent)}" if self._phase and spent >= _LEAST_SECONDS else "")
        left = spent / self._done * (self._count - self._done) if self._done else 0.0
        text = f"{self._phase}: {self._done:,} of {self._count:,} {self._units}"
        if left >= _LEAST_SECONDS:
            return f"{text}, {seconds_text(left)} left"
        return text if self._done and spent < _LEAST_SECONDS else f"{text}, {seconds_text(spent)}"
