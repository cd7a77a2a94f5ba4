"""Measurers that answer a batch of programs: boards, and recorded datasets beside them.

Importing this loads neither a network library nor a simulator; opening a measurer does.
"""

from __future__ import annotations

from .interfaces import BoardDescription, BoardEvent, BoardState, FleetError, Listen, Measurer, Report, Request

__all__ = [
    "DATASET_PREFIX",
    "BoardDescription",
    "BoardEvent",
    "BoardState",
    "FleetError",
    "Listen",
    "Measurer",
    "Report",
    "Request",
    "board_names_of",
    "describe_board",
    "open_measurer",
]


DATASET_PREFIX = "dataset:"
"""The prefix of the names of boards that only answer from a dataset."""


def describe_board(name: str) -> BoardDescription:
    """Return the description of the board of that name; no connection is made.

    A name is `virtual:<board model>[@name]`, one of HILT_HOME/boards.toml, several boards with commas between, or
    `dataset:NAME`.

    Raises UnknownBoardError, UnknownBoardModelError or BoardFileError (all of hilt.link.errors and hilt.virtual),
    FleetError if several are not alike, DatasetError.
    """
    if name.startswith(DATASET_PREFIX):
        from .dataset import measurer

        return measurer.describe(name)
    from .board_description import resolve

    described = [resolve(board).description for board in board_names_of(name)]
    if len(described) == 1:
        return described[0]
    from .fleet import describe_fleet

    return describe_fleet(described)


def open_measurer(name: str, listen: Listen = lambda event: None) -> Measurer:
    """Connect to the board, deploy its agent and load its bitstream; a virtual board is built and switched on.

    Several boards, with commas between, measure together. Once open, the measurer recovers from faults of the board
    within `measure`.

    Raises LinkError (unknown or changed host key, refused key, unreachable, board busy, wrong bitstream, quarantined,
    ...), with a line that names the remedy.
    """
    if name.startswith(DATASET_PREFIX):
        from .dataset.measurer import DatasetMeasurer

        return DatasetMeasurer.open(name)
    from .board_description import resolve
    from .board_measurer import BoardMeasurer
    from .fleet import FleetMeasurer

    targets = [resolve(board) for board in board_names_of(name)]
    return BoardMeasurer.open(targets[0], listen) if len(targets) == 1 else FleetMeasurer.open(targets, listen)


def name_with_model(name: str, bitstream: str) -> str | None:
    """Return the name of the same virtual boards with the model of that identity; None if the cache has it not."""
    from hilt.virtual.bitstream import kept_model
    from hilt.virtual.names import PREFIX, parse_virtual_name, with_model

    boards = board_names_of(name)
    if not all(board.startswith(PREFIX) for board in boards):
        return None
    if any(kept_model(parse_virtual_name(board)[0], bitstream) is None for board in boards):
        return None
    return ",".join(with_model(board, bitstream) for board in boards)


def board_names_of(name: str) -> list[str]:
    """Return the single boards of `a,b`; a dataset is one, whatever its name."""
    if name.startswith(DATASET_PREFIX):
        return [name]
    return [board.strip() for board in name.split(",") if board.strip()] or [name]
