"""One configuration on the command line, and the memory behind the board that it is asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hilt.schedule import Space
    from hilt.simulator.device import MemoryModel

_MOST_DIGITS = 18
_MOST_SHOWN = 40


def configuration_of(words: list[str], space: Space) -> int | dict[str, int]:
    """Return an index, or knob values by name.

    A knob of one value need not be named, nor the loop order where it is TVM's.
    """
    parts = [part for word in words for part in word.replace(",", " ").split()]
    if len(parts) == 1 and _is_number(parts[0]):
        return int(parts[0])
    known = [knob.name for knob in space.knobs]
    knobs = {knob.name: knob.values[0] for knob in space.knobs if len(knob.values) == 1 or knob.name == "loop_order"}
    knobs |= _given(parts, known)
    if missing := [name for name in known if name not in knobs]:
        raise typer.BadParameter(f"a configuration needs {', '.join(missing)} too; `hilt space` lists their values")
    return knobs


def _given(parts: list[str], known: list[str]) -> dict[str, int]:
    """Return the values of KNOB=NUMBER texts by their knobs, which must be `known`."""
    given: dict[str, int] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals or not _is_number(value):
            shown = part if len(part) <= _MOST_SHOWN else f"{part[:_MOST_SHOWN]}..."
            raise typer.BadParameter(f"{shown!r} is neither an index nor KNOB=NUMBER; `hilt space` lists the knobs")
        if name not in known:
            raise typer.BadParameter(f"no knob is called {name!r}; this space has {', '.join(known)}")
        if name in given:
            raise typer.BadParameter(f"{name} is given twice")
        given[name] = int(value)
    return given


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def memory_of_board(board: str) -> MemoryModel:
    """Return a virtual board's memory; for a real board, that of a Zynq-7000, the default of MemoryModel."""
    from hilt.simulator.device import MemoryModel
    from hilt.virtual.names import PREFIX, parse_virtual_name

    if not board.startswith(PREFIX):
        return MemoryModel()
    board_model, _ = parse_virtual_name(board)
    return board_model.memory_model
