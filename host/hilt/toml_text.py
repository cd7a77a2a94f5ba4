"""Values as TOML writes them, for the files that hilt adds to and people read."""

from __future__ import annotations

import json


def toml_value(value: str | int | float | bool) -> str:
    """Return a value as TOML writes it.

    JSON's text, numbers, true and false are TOML's, except two halves of one character, and the one control
    character that
    JSON leaves as it is.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
