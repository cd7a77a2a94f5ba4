"""A console of rich that filters each piece of text before it is styled."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from hilt.plain_text import plain


class PlainConsole(Console):
    """A console on standard output or standard error, past the filter of hilt.cli.plain_text: it has its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does; text that is no command of rich's own loses its control characters."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)

    @property
    def file(self) -> IO[str]:
        """Return the stream that is written to, whatever stands in its place."""
        stream = self._file or (sys.stderr if self.stderr else sys.stdout)
        stream = getattr(stream, "rich_proxied_file", stream)
        return getattr(stream, "unfiltered", stream)

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream
