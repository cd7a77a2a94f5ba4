"""Text from a board, a file or a log, made safe to print: a terminal shows it and obeys none of it."""

from __future__ import annotations

import re

# C0 and C1 control characters, and the ones of Unicode that turn the direction of the text around them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Return the text without control characters; ends of lines and tabs stay, halves of characters are replaced."""
    return _CONTROL.sub("", text).encode(errors="replace").decode()
