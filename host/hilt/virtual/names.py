"""`virtual:<board model>[@name][?model=DIGITS][&chaos]`: the name of a virtual board and its injected faults.

`model` names a model of an earlier hilt in the cache by the first digits of its identity; without, the board is made of
today's sources.
"""

from __future__ import annotations

import re

from hilt.virtual import own_models
from hilt.virtual.board_model import BoardModel, board_model
from hilt.virtual.chaos import Chaos, parse_chaos
from hilt.virtual.directory import BoardDirectory
from hilt.virtual.errors import BoardNameError

PREFIX = "virtual:"
_MODEL = re.compile(r"\Amodel=([0-9a-f]{12,64})(?:&|$)")
_DIGITS = 16


def parse_virtual_name(name: str) -> tuple[BoardModel, BoardDirectory]:
    """Return the board model and the directory, which is named as the board model unless it says otherwise.

    Raises UnknownBoardModelError, and BoardNameError for a name that cannot be one.
    """
    kind, at, own_name = name.removeprefix(PREFIX).partition("?")[0].partition("@")
    directory = own_models.directory_name(kind) if own_models.is_file(kind) else kind
    return board_model(kind), BoardDirectory(own_name if at else directory)


def with_chaos(boards: str, chaos: str) -> str:
    """Return the names of virtual boards, with commas between, with the injected faults of an option.

    Raises BoardNameError for a board that is not virtual, and the errors of parse_chaos.
    """
    parse_chaos(chaos)
    for name in boards.split(","):
        if not name.startswith(PREFIX) or "?" in name:
            raise BoardNameError(f"chaos is for virtual boards, and said once; {name} is none, or has it already")
    return ",".join(f"{name}?{chaos.replace(',', '&')}" for name in boards.split(","))


def chaos_of(name: str) -> Chaos | None:
    """Return the injected faults that a name asks for. Raises BoardNameError."""
    _, mark, text = name.partition("?")
    chaos = _MODEL.sub("", text)
    return parse_chaos(chaos) if mark and (chaos or not text) else None


def model_of(name: str) -> str | None:
    """Return the first digits of the identity of the model that a name asks for."""
    found = _MODEL.match(name.partition("?")[2])
    return found and found.group(1)


def with_model(name: str, identity: str) -> str:
    """Return the name of the same virtual board with the kept model of an identity."""
    board, _, text = name.partition("?")
    rest = _MODEL.sub("", text)
    return f"{board}?model={identity[:_DIGITS]}" + (f"&{rest}" if rest else "")
