"""`hilt tuners`."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from hilt.cli import tables
from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.tables import column


def tuners(
    name: Annotated[
        str | None, typer.Argument(help="A tuner, or FILE.py:CLASS, for its options; all tuners unless given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """List the tuners, or the options of one: default, meaning and unit, as --tuner-option takes them."""
    from hilt import tune

    if name is None:
        summaries = tune.tuner_summaries()
        if as_json:
            print_json({"tuners": summaries}, "tuners")
            return
        table = tables.table("tuner", column("", wraps=True))
        for tuner, summary in summaries.items():
            table.add_row(tuner, summary)
        tables.console().print(table)
        return
    options = tune.tuner_options(name)
    if as_json:
        print_json({"tuner": name, "options": [dataclasses.asdict(option) for option in options]}, "tuner")
        return
    if not options:
        say_text(f"{name} has no options")
        return
    table = tables.table("option", column("default"), column("type", drop=1), column("meaning", wraps=True))
    for option in options:
        table.add_row(option.name, json.dumps(option.default), option.type, option.meaning)
    tables.console().print(table)
