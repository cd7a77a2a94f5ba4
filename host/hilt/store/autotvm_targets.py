"""TVM's targets of boards: the first part of the key by which apply_history_best finds a schedule."""

from __future__ import annotations

from hilt import bitstreams
from hilt.link.board_registry import registered_board
from hilt.link.errors import LinkError
from hilt.link.labgrid_place import PREFIX as LABGRID
from hilt.virtual.errors import VirtualBoardError
from hilt.virtual.names import PREFIX, parse_virtual_name

IMPORTED_PREFIX = "tvm:"
"""A run that was imported from a log has this and the log's own model as its board."""
_TARGETS = {"7z020": "pynq", "zu3eg": "ultra96", "zu7ev": "zcu104", "zu9eg": "zcu102"}
"""TARGET in TVM's vta_config.json, by a piece of the part's name."""
_HINT = "`hilt log export ID FILE --target TARGET` gives one"


class UnknownTargetError(ValueError):
    """A board that TVM has no target for, or that is not known here."""


def target_of(board: str) -> str:
    """Return TVM's target of a board, by its part; of several with commas between, that of the first.

    Args:
        board: A virtual board, one of boards.toml, or the board of an imported log.

    Raises:
        UnknownTargetError: The board is unknown, or TVM has no target for its part.
    """
    first = board.partition(",")[0]
    if first.startswith(IMPORTED_PREFIX):
        return first.removeprefix(IMPORTED_PREFIX).partition("_")[0]
    try:
        part = _part_of(first)
    except (LinkError, VirtualBoardError, bitstreams.BitstreamError) as error:
        raise UnknownTargetError(f"no TVM target for board {first}: {error}; {_HINT}") from error
    for name, target in _TARGETS.items():
        if name in part:
            return target
    raise UnknownTargetError(f"no TVM target for board {first}: TVM has none for its part {part}; {_HINT}")


def _part_of(board: str) -> str:
    if board.startswith(PREFIX):
        return parse_virtual_name(board)[0].part
    return bitstreams.find(registered_board(board.removeprefix(LABGRID)).bitstream).part
