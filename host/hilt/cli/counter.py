"""Progress on standard error: the work done, and the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

import typer

from hilt.cli.formatting import seconds_text

_LINES = 10


def counter(where: str, units: str, *, terminal_only: bool = False) -> Callable[[int, int], None]:
    """Return a function of work done and of all: one line that changes on a terminal, else a line for each tenth.

    Args:
        where: The place or step that does the work.
        units: Its unit, in the plural.
        terminal_only: Write nothing where standard error is no terminal.
    """
    written, began = 0, monotonic()

    def advance(done: int, count: int) -> None:
        nonlocal written
        if sys.stderr.isatty():
            left = (monotonic() - began) / done * (count - done) if done else 0.0
            text = f", {seconds_text(left)} left" if left >= 1 else ""
            typer.echo(f"\r{where}: {done:,} of {count:,} {units}{text}\x1b[K", err=True, nl=done >= count)
        elif not terminal_only and (done >= count or done - written >= max(count // _LINES, 1)):
            typer.echo(f"{where}: {done:,} of {count:,} {units}", err=True)
            written = done

    return advance
