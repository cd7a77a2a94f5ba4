"""A line on standard error that counts work done."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

_LINES = 10


def counter(where: str, units: str, *, terminal_only: bool = False) -> Callable[[int, int], None]:
    """Return a function of work done and of all: one line that changes on a terminal, else a line for each tenth.

    Args:
        where: The place or step that does the work.
        units: Its unit, in the plural.
        terminal_only: Write nothing where standard error is no terminal.
    """
    written = 0

    def advance(done: int, count: int) -> None:
        nonlocal written
        if sys.stderr.isatty():
            typer.echo(f"\r{where}: {done:,} of {count:,} {units} ", err=True, nl=done >= count)
        elif not terminal_only and (done >= count or done - written >= max(count // _LINES, 1)):
            typer.echo(f"{where}: {done:,} of {count:,} {units}", err=True)
            written = done

    return advance
