"""Progress of a command: a line on standard error where that is a terminal, and a file that other processes read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from time import time
from types import TracebackType
from typing import TypeVar

from rich.live import Live
from rich.text import Text

from hilt import paths
from hilt.cli.plain_console import PlainConsole
from hilt.cli.prose import say_text
from hilt.engine.command_progress import CommandFile, CommandProgress

_Item = TypeVar("_Item")
_REFRESHES = 8
"""Drawings a second; the line is drawn while the command computes."""


class CommandWork:
    """One line at the bottom of the terminal, which goes when the work ends. A context manager.

    Print nothing to standard output while it is open; lines to standard error scroll above it. Without a terminal
    a campaign's last stage prints a line for each phase, as all of a campaign that is followed.
    """

    def __init__(self, phase: str = "", *, command: str = "", campaign: str = "") -> None:
        """Make one.

        Args:
            phase: The first phase.
            command: The command for people, as in `quantize ic.onnx`; other processes see those that have one.
            campaign: The uuid of the campaign whose last stage this is.
        """
        self._progress = CommandProgress(command, campaign, phase, time())
        self._stack = ExitStack()
        self._file: CommandFile | None = None
        self._live: Live | None = None

    def __enter__(self) -> CommandWork:
        with ExitStack() as stack:
            if self._progress.command:
                self._file = stack.enter_context(CommandFile(paths.home()))
            if sys.stderr.isatty():
                self._live = Live(
                    console=PlainConsole(stderr=True, highlight=False), transient=True, redirect_stdout=False,
                    refresh_per_second=_REFRESHES, get_renderable=self._render,
                )  # fmt: skip
                stack.enter_context(self._live)
            self._stack = stack.pop_all()
        self._show(self._progress)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def begin(self, phase: str) -> None:
        """Begin a phase without a count: its seconds are shown."""
        self._show(replace(self._progress, phase=phase, began=time(), done=0, count=0, units=""))
        if self._live is not None:
            self._live.refresh()
        elif self._progress.campaign:
            say_text(phase, err=True)

    def counter(self, phase: str, units: str) -> Callable[[int, int], None]:
        """Return a function of the work done and of all; its first call begins the phase."""

        def advance(done: int, count: int) -> None:
            if self._progress.phase != phase or not self._progress.count:
                self.begin(phase)
            self._show(replace(self._progress, done=done, count=count, units=units))

        return advance

    def _show(self, progress: CommandProgress) -> None:
        self._progress = progress
        if self._file is not None:
            self._file.put(progress)

    def _render(self) -> Text:
        return Text(self.line, "dim", overflow="ellipsis", no_wrap=True)

    @property
    def line(self) -> str:
        """The text of this moment, as in `placing: 5 of 26 nodes, 30 s left`."""
        return self._progress.text(time())


def awaited(items: Iterable[_Item], phase: str) -> Iterator[_Item]:
    """Yield the items. While one is made a line shows the phase, which one it is, and its seconds."""
    remaining = iter(items)
    for number in count(1):
        with CommandWork(f"{phase}, step {number}"):
            try:
                item = next(remaining)
            except StopIteration:
                return
        yield item
