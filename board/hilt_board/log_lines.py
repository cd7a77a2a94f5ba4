"""Lines of a stream that arrives in chunks of any size."""

from __future__ import annotations

import codecs
from typing import List

MOST = 1000
"""Characters of a line that are kept."""


class LogLines:
    """Splits bytes into lines; a character or a line may be cut anywhere. Blank lines are left out."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._tail = ""

    def feed(self, data: bytes) -> List[str]:
        """Return the lines that these bytes complete."""
        return self._lines(self._decoder.decode(data))

    def end(self) -> List[str]:
        """Return the last line, if it had no end."""
        return self._lines(self._decoder.decode(b"", True) + "\n")

    def _lines(self, text: str) -> List[str]:
        *lines, tail = (self._tail + text).replace("\r", "\n").split("\n")
        self._tail = tail[:MOST]
        return [line[:MOST] for line in lines if line.strip()]
