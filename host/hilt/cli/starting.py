"""A line on the terminal while a command's modules are imported, which takes seconds on a busy machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from threading import Event, Thread
from time import monotonic

_AFTER_SECONDS = 0.3
"""A command that prints earlier shows no such line."""
_CLEAR = "\r\x1b[2K"


class StartingLine:
    """Shows `starting hilt compile` on a terminal until `end`, which comes before the first output. It starts once."""

    def __init__(self) -> None:
        self._ended = Event()
        self._thread: Thread | None = None

    def begin(self, arguments: Sequence[str]) -> None:
        """Begin for the words of a command line. Without a command, for help, or without a terminal nothing shows."""
        if not arguments or not arguments[0].isalpha() or "--help" in arguments:
            return
        if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
            return
        self._thread = Thread(target=self._show, args=(f"starting hilt {arguments[0]}", monotonic()), daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take the line away, for good."""
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None

    def _show(self, text: str, began: float) -> None:
        """Draw the line once a second until the end."""
        if self._ended.wait(_AFTER_SECONDS):
            return
        while True:
            seconds = int(monotonic() - began)
            _write(f"{_CLEAR}{text}, {seconds} s" if seconds else f"{_CLEAR}{text}")
            if self._ended.wait(1.0):
                _write(_CLEAR)
                return


def _write(text: str) -> None:
    """Write to the terminal itself: the filter in place of standard error lets no command to a terminal pass."""
    terminal = sys.__stderr__
    if terminal is not None:
        terminal.write(text)
        terminal.flush()


starting_line = StartingLine()
"""The line of this process."""
