"""One configuration on the command line, and the memory behind the board that it is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hilt.schedule import Space
    from hilt.simulator.device import MemoryModel


def configuration_of(words: list[str], space: Space) -> int | dict[str, int]:
    """An index, or knob values by name. A knob of one value need not be named, nor the loop order where it is TVM's."""
    parts = [part for word in words for part in word.replace(",", " ").split()]
    if len(parts) == 1 and parts[0].isdecimal():
        return int(parts[0])
    knobs = {each.name: each.values[0] for each in space.knobs if len(each.values) == 1 or each.name == "loop_order"}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or not value.isdecimal():
            raise typer.BadParameter(f"{part!r} is neither an index nor KNOB=NUMBER; `hilt space` lists the knobs")
        knobs[name] = int(value)
    return knobs


def memory_of_board(board: str) -> MemoryModel:
    """A virtual board's memory; a real board's is taken to be that of a Zynq-7000, which is what MemoryModel is."""
    from hilt.simulator.device import MemoryModel
    from hilt.virtual.names import PREFIX, parse_virtual_name

    if not board.startswith(PREFIX):
        return MemoryModel()
    personality, _ = parse_virtual_name(board)
    return personality.memory_model
