"""`virtual:<personality>[@name][?chaos]`: which virtual board is meant, and what is to happen to it."""

from __future__ import annotations

from hilt.virtual.chaos import Chaos, parse_chaos
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.personality import Personality, personality

PREFIX = "virtual:"


def parse_virtual_name(name: str) -> tuple[Personality, BoardDirectory]:
    """The personality and the directory, which is named as the personality unless it says otherwise.

    Raises UnknownPersonalityError, and VirtualBoardError for a name that cannot be one.
    """
    kind, at, own_name = name.removeprefix(PREFIX).partition("?")[0].partition("@")
    return personality(kind), BoardDirectory(own_name if at else kind)


def chaos_of(name: str) -> Chaos | None:
    """The faults on purpose that a name asks for. Raises VirtualBoardError."""
    _, mark, text = name.partition("?")
    return parse_chaos(text) if mark else None
