"""Output where a stream's encoding lacks a character, as ASCII lacks µ: a likeness of the character is printed."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

_LIKENESSES = {
    "µ": "u", "≈": "~", "…": "...", "→": "->", "–": "-", "×": "x", "°": "deg", "█": "#", "░": ".", "│": "|", "─": "-",
}  # fmt: skip
_NAME = "hilt-likeness"


def likeness(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that cannot be encoded, and where to go on: an error handler of codecs."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_LIKENESSES.get(character, "?") for character in missing), error.end


def allow_any_character(stream: TextIO) -> None:
    """Let a stream print a likeness of each character that its encoding lacks."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        codecs.register_error(_NAME, likeness)
        stream.reconfigure(errors=_NAME)
