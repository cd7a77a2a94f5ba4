"""The options that whatever tunes has, alike in each command."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class CheckLevel(StrEnum):
    STRICT = "strict"
    COMPILER = "compiler"
    TVM = "tvm"
    OFF = "off"


class SpaceName(StrEnum):
    AUTOTVM = "autotvm"
    ML2 = "ml2"


Tuner = Annotated[str, typer.Option(help="A tuner of `hilt tuners`.")]
SpaceKind = Annotated[SpaceName, typer.Option("--space", help="TVM's knobs and a loop order, or ML2Tuner's.")]
Orders = Annotated[
    int | None, typer.Option(help="Loop orders of the autotvm space: 4 unless given; 1 is exactly TVM's space.")
]
Repeat = Annotated[int, typer.Option(help="Times that each program is timed; the median counts.")]
Number = Annotated[int, typer.Option(help="Runs averaged into each of these times, as TVM's number.")]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        help="Seconds a program may run, by the board's clock; unless given, 100 times the roofline bound, "
        "at least 0.05."
    ),
]
TunerOptions = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of the tuner (`hilt tuners NAME`), such as plan_size=32."),
]
Chaos = Annotated[
    str | None,
    typer.Option(
        metavar="rate=0.1,seed=1,kinds=hang+freeze",
        help="Faults on purpose, on virtual boards: which share of the trials is struck, and by what (all kinds).",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object on standard output; all else goes to standard error.")
]


def board_names(boards: list[str] | None, chaos: str | None) -> str:
    """As settings have them, with commas between; virtual:pynq where none is named. Raises typer.BadParameter."""
    from hilt.virtual.errors import VirtualBoardError
    from hilt.virtual.names import with_chaos
    from hilt.virtual.own_models import canonical

    names = ",".join(canonical(name) for text in boards or ["virtual:pynq"] for name in text.split(","))
    try:
        return names if chaos is None else with_chaos(names, chaos)
    except VirtualBoardError as error:
        raise typer.BadParameter(str(error)) from error
