"""`hilt boards`: what can be measured on."""

from __future__ import annotations

from typing import Annotated

import typer

from hilt.cli import tables
from hilt.cli.words import print_json


def boards(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List boards: the real ones of boards.toml, and the virtual ones."""
    from hilt.measure import describe_board
    from hilt.measure.boards import board_names

    described = [describe_board(name) for name in board_names()]
    if as_json:
        print_json(
            [
                {
                    "board": board.name,
                    "parameters": board.accelerator.parameters.name,
                    "isa": str(board.accelerator.isa),
                    "bus_bits": board.accelerator.bus_bits,
                    "hazards": board.accelerator.hazards,
                    "clock_hz": board.clock_hz,
                    "bitstream": board.bitstream,
                    "deterministic": board.deterministic,
                }
                for board in described
            ]
        )
        return
    table = tables.table("board", "parameters", "ISA", ">bus", ">clock", "hazards", "bitstream")
    for board in described:
        table.add_row(
            board.name,
            board.accelerator.parameters.name,
            str(board.accelerator.isa),
            f"{board.accelerator.bus_bits} bit",
            f"{board.clock_hz / 1e6:g} MHz",
            board.accelerator.hazards,
            board.bitstream[:12],
        )
    tables.console().print(table)
