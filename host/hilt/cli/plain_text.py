"""What a board or a file says is text on the terminal, and never a command to it."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Without control characters but for ends of lines and tabs."""
    return _CONTROL.sub("", text)
