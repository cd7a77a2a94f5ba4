"""`virtual:<personality>[@name]`: which virtual board is meant."""

from __future__ import annotations

from hilt.virtual.directory import BoardDirectory
from hilt.virtual.personality import Personality, personality

PREFIX = "virtual:"


def parse_virtual_name(name: str) -> tuple[Personality, BoardDirectory]:
    """The personality and the directory, which is named as the personality unless it says otherwise.

    Raises UnknownPersonalityError, and VirtualBoardError for a name that cannot be one.
    """
    kind, at, own_name = name.removeprefix(PREFIX).partition("@")
    return personality(kind), BoardDirectory(own_name if at else kind)
