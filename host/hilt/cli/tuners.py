"""`hilt tuners`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hilt.cli.formatting import print_json


def tuners(
    name: Annotated[str | None, typer.Argument(help="A tuner, for its options; all of them in a line each.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """List the tuners, or the options of one with their defaults, as --tuner-option takes them."""
    from hilt import tune

    found: dict[str, object] = {**tune.tuner_summaries()}
    if name is not None:
        found = tune.resolve_options(name)
    if as_json:
        print_json(found)
        return
    width = max(map(len, found), default=0)
    for key, value in found.items():
        typer.echo(f"{key:{width}}  {value if name is None else json.dumps(value)}")
