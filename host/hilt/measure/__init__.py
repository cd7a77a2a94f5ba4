"""Who answers a batch of programs: boards now, the twin and recorded landscapes beside them.

Importing this loads neither a network library nor a simulator; opening a measurer does.
"""

from __future__ import annotations

from .types import BoardDescription, BoardEvent, BoardState, Listen, Measurer, Report, Request

__all__ = [
    "BoardDescription",
    "BoardEvent",
    "BoardState",
    "Listen",
    "Measurer",
    "Report",
    "Request",
    "describe_board",
    "open_measurer",
]


def describe_board(name: str) -> BoardDescription:
    """The board of that name (`virtual:<personality>[@name]`, or one of HILT_HOME/boards.toml); no connection is made.

    Raises UnknownBoardError, UnknownPersonalityError or BoardFileError (all of hilt.link.errors and hilt.virtual).
    """
    from .boards import resolve

    return resolve(name).description


def open_measurer(name: str, listen: Listen = lambda event: None) -> Measurer:
    """Connects to the board, deploys its agent and programs its bitstream; a virtual board is built and switched on.

    Raises LinkError (unknown or changed host key, refused key, unreachable, board busy, wrong bitstream, ...), with a
    line that says what to do. Once open, faults of the board are recovered from within `measure`.
    """
    from .board import BoardMeasurer
    from .boards import resolve

    return BoardMeasurer.open(resolve(name), listen)
