"""The options of the commands that tune."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilt.cli.for_tvm import User, for_tvm
from hilt.run_choices import SpaceName
from hilt.store import ROUNDS

if TYPE_CHECKING:
    from hilt.engine.run_spec import RunSpec

SHORT_RUN_PLANS = 4
LARGEST_PLAN = 64
"""AutoTVM's plan size is 64: in a run as short as that its model would never be used. Such a run is four plans."""
_LARGEST_NUMBER = (1 << 31) - 1
"""The largest absolute value of a tuner's option: the libraries below take 32 bits."""


Tuner = Annotated[str, typer.Option(help="A tuner of `hilt tuners`.")]
SpaceKind = Annotated[
    SpaceName,
    typer.Option("--space", help="TVM's knobs and a loop order, ML2Tuner's, or row programs (docs/silicon.md)."),
]
Orders = Annotated[
    int | None, typer.Option(help="Loop orders of the autotvm space: 4 unless given; 1 is exactly TVM's space.")
]
Repeat = Annotated[
    str,
    typer.Option(
        metavar="N|auto",
        help="Times that each program is timed; the median counts. auto: once, and at the end the best trials are "
        "measured again as often as their noise needs.",
    ),
]
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
        help="Inject faults on virtual boards: share of the trials with a fault, and the kinds (all).",
    ),
]
Detach = Annotated[bool, typer.Option("--detach", help="Start it and return; it goes on by itself.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for a board that is in use, instead of failing.")]
Boards = Annotated[
    list[str] | None,
    typer.Option("--board", help="A board of `hilt boards`; virtual:pynq unless given. Equal boards measure together."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        file_okay=False, help="Folder of a campaign's schedule, AutoTVM log and report; in HILT_HOME unless given."
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object on standard output; all else goes to standard error.")
]


def repeats(text: str) -> tuple[int, int | None]:
    """Return the times that each program is timed, and the rounds of the confirmation; None where the noise decides.

    Raises typer.BadParameter.
    """
    if text == "auto":
        return 1, None
    if not text.isascii() or not text.isdecimal():
        raise typer.BadParameter(f"--repeat is a number or auto, not {text!r}")
    return int(text), ROUNDS


def with_options(spec: RunSpec, repeat: str, tuner_option: list[str] | None, user: User) -> RunSpec:
    """Return a run's settings with its repeats, its tuner's options and its user. Raises typer.BadParameter."""
    times, rounds = repeats(repeat)
    options = tuner_options(spec.tuner, max(spec.batch, spec.trials // SHORT_RUN_PLANS), tuner_option or [])
    spec = replace(spec, repeat=times, rounds=rounds, tuner_options=options)
    return for_tvm(spec) if user is User.TVM else spec


def board_names(boards: list[str] | None, chaos: str | None) -> str:
    """Return the boards with commas between, virtual:pynq where none is named. Raises typer.BadParameter."""
    from hilt.virtual.errors import VirtualBoardError
    from hilt.virtual.names import with_chaos
    from hilt.virtual.own_models import canonical

    names = ",".join(canonical(name) for text in boards or ["virtual:pynq"] for name in text.split(","))
    try:
        return names if chaos is None else with_chaos(names, chaos)
    except VirtualBoardError as error:
        raise typer.BadParameter(str(error)) from error


def tuner_options(tuner: str, plan_size: int, given: list[str]) -> dict[str, object]:
    """Parse NAME=VALUE options; values are JSON where they parse as JSON, else text.

    Args:
        tuner: The tuner's name.
        plan_size: The default of the tuners that plan.
        given: The options of the command line.

    Raises:
        typer.BadParameter: An option has no `=`, or a value that no tuner can take.
    """
    options: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--tuner-option {text!r} is not NAME=VALUE")
        try:
            options[name] = json.loads(value)
        except (ValueError, RecursionError):
            options[name] = value
        if isinstance(word := options[name], str) and not _is_text(word):
            raise typer.BadParameter(f"--tuner-option {name} is {word!r}, which is no text")
        number = options[name]
        if isinstance(number, int | float) and not abs(number) <= _LARGEST_NUMBER:  # NaN fails too
            raise typer.BadParameter(f"--tuner-option {name} is a number up to {_LARGEST_NUMBER:,} either way")
    if tuner in ("autotvm", "treegru"):
        options.setdefault("plan_size", min(LARGEST_PLAN, plan_size))
    return options


def _is_text(value: str) -> bool:
    """Return whether it encodes: JSON can spell halves of characters, which no file has in its name."""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True
