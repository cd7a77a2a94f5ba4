"""Sentences of a command: wrapped at spaces on a terminal, one line each elsewhere."""

from __future__ import annotations

import sys
from textwrap import fill
from typing import TYPE_CHECKING

from hilt.cli.plain_text import plain

if TYPE_CHECKING:
    from rich.console import Console


def print_text(console: Console, words: str) -> None:
    """Print text, wrapped on a terminal; in a file each line stays one. A word longer than a line stays whole."""
    text = plain(words)
    if console.is_terminal:
        lines = text.split("\n")
        text = "\n".join(fill(line, console.width, break_long_words=False, break_on_hyphens=False) for line in lines)
    console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say_text(words: str, *, err: bool = False) -> None:
    """Print text to standard output, or to standard error."""
    from hilt.cli.plain_console import PlainConsole

    console = PlainConsole(stderr=err)
    with console.capture() as captured:
        print_text(console, words)
    # Through the stream that stands in place of standard error while a line of progress is drawn on it.
    (sys.stderr if err else sys.stdout).write(captured.get())
