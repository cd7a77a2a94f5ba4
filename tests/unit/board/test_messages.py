"""Fields of the messages between host and board, with their defaults and limits, beside those that were accepted.

Agents of other versions take them so: a change needs another version of the protocol. Then: `build/host-env/bin/pytest
tests/unit/board/test_messages.py --snapshot-update`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from syrupy.assertion import SnapshotAssertion

from hilt_board.protocol import MAX_BODY_BYTES, MAX_HEADER_BYTES, PROTOCOL_VERSION, MessageError, Record

STRANGE = (object(), math.inf, -(1 << 70), "\x00" * 70_000)
"""Values that hardly any field takes: its refusal names its limits."""


def records(kind: type[Record] = Record) -> Iterator[type[Record]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("hilt_board."):
            yield each
            yield from records(each)


def refusals(field: dataclasses.Field[object]) -> list[str]:
    """Return a field's refusals of strange values, each once."""
    said: list[str] = []
    for value in STRANGE:
        try:
            field.metadata["check"](value, "it")
        except MessageError as error:
            said.append(str(error)[:120])
    return list(dict.fromkeys(said))


def test_fields_are_as_they_were(snapshot: SnapshotAssertion) -> None:
    lines = [f"version {PROTOCOL_VERSION}, headers of {MAX_HEADER_BYTES} bytes, bodies of {MAX_BODY_BYTES}"]
    for record in sorted(set(records()), key=lambda each: each.__name__):
        lines.append(record.__name__)
        for field in dataclasses.fields(record):  # type: ignore[arg-type]  # every subclass is a dataclass
            default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
            place = "" if field.metadata.get("on_wire", True) else ", beside the header"
            lines.append(f"  {field.name}{default}{place}: {'; '.join(refusals(field))}")
    assert "\n".join(lines) == snapshot
