"""JSON of an untrusted file: bounded in size, in depth and in the digits of its numbers."""

from __future__ import annotations

import json
from typing import Any

_MOST_BYTES = 1 << 24
_MOST_VALUES = 1 << 20
_MOST_DIGITS = 19


class PlainJsonError(ValueError):
    """Text that is no JSON, or is larger or deeper than any of hilt's."""


def read_json(text: bytes, most_values: int = _MOST_VALUES) -> Any:
    """Return the value of a JSON text in UTF-8, of at most so many values: each takes some 70 bytes.

    Raises PlainJsonError.
    """
    if len(text) > _MOST_BYTES or text.count(b",") + text.count(b"[") + text.count(b"{") > most_values:
        raise PlainJsonError("its JSON of {} bytes is larger than any of hilt's".format(len(text)))
    try:
        return json.loads(text.decode("utf-8"), parse_int=_integer)
    except PlainJsonError:
        raise
    except ValueError as error:
        raise PlainJsonError("its JSON cannot be read: {}".format(error)) from None
    except RecursionError:
        raise PlainJsonError("its JSON is nested too deeply") from None


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise PlainJsonError("its JSON has a number of {} digits".format(len(text)))
    return int(text)
