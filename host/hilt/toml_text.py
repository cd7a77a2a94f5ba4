"""Values as TOML writes them, for the files that hilt adds to and people read."""

from __future__ import annotations

import json


def toml_value(value: str | int | float | bool) -> str:
    """JSON's text, numbers, true and false are TOML's, but for two halves of one character, and for the one control
    character that JSON leaves as it is.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
