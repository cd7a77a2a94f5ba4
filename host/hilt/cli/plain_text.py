"""The one place where the command line prints: text of boards, files and logs is shown, and the terminal obeys none.

`plain_output` filters all that a command writes to standard output and standard error. A console of rich styles its
text by escape sequences of its own, so `hilt.cli.plain_console` filters each piece of text before it is styled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from hilt.cli.starting import starting_line
from hilt.plain_text import plain

__all__ = ["plain", "plain_output"]


class _PlainStream:
    """A text stream that leaves control characters out of written text. Who writes ends the line of the start."""

    def __init__(self, unfiltered: TextIO) -> None:
        self._unfiltered = unfiltered

    @property
    def unfiltered(self) -> TextIO:
        starting_line.end()
        return self._unfiltered

    def write(self, text: str) -> int:
        self.unfiltered.write(plain(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unfiltered, name)


@contextmanager
def plain_output() -> Iterator[None]:
    """Filter standard output and standard error while the context is open."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _PlainStream(before[0]), _PlainStream(before[1])
    try:
        yield
    finally:
        starting_line.end()
        sys.stdout, sys.stderr = before
