"""Text of boards and files without control characters, so that it is never a command to the terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Return the text without control characters, except ends of lines and tabs."""
    return _CONTROL.sub("", text)
